"""The mixed workload: as much of every kind, interleaved, with attributes of their own."""

from __future__ import annotations

import numpy as np
import pytest

from harken_lab.workloads import generate
from harken_lab.workloads.workload import Workload

KINDS = ("w4", "le-subscribe", "stock", "gryphon")
PREFIXES = ("w4_", "le_subscribe_", "stock_", "gryphon_")


def rows_of_kinds(workload: Workload) -> list[np.ndarray]:
    """The rows that test an attribute of each kind."""
    return [
        np.unique(np.concatenate([each.rows for each in workload.conditions if each.attribute.startswith(prefix)]))
        for prefix in PREFIXES
    ]


@pytest.mark.parametrize("subscriptions", [1_000, 1_001, 1_003])
def test_every_subscription_is_of_one_kind(subscriptions: int) -> None:
    rows = rows_of_kinds(generate("mixed", subscriptions, 0))
    assert np.sort(np.concatenate(rows)).tolist() == list(range(subscriptions))
    assert max(map(len, rows)) - min(map(len, rows)) <= 1


def test_they_are_interleaved() -> None:
    for rows in rows_of_kinds(generate("mixed", 4_000, 0)):
        assert rows.mean() == pytest.approx(2_000, abs=150)
        assert len(set(np.diff(rows))) >= 4, "not in turn"


def test_events_come_in_turn_with_their_own_attributes() -> None:
    workload = generate("mixed", 0, 403)
    for number, event in enumerate(workload.events.to_pylist()):
        carried = [name for name, value in event.items() if value is not None]
        assert all(name.startswith(PREFIXES[number % 4]) for name in carried)
        if number % 4 != 1:
            assert carried, "only le-subscribe has empty events"


def test_the_parts_are_what_it_was_mixed_from() -> None:
    workload = generate("mixed", 1_002, 42)
    assert tuple(workload.parts) == KINDS
    texts = workload.texts().to_numpy()
    for number, (part, rows) in enumerate(zip(workload.parts.values(), rows_of_kinds(workload), strict=True)):
        assert part.texts().to_pylist() == texts[rows].tolist()
        in_turn = workload.events.select(part.events.column_names).take(list(range(number, 42, 4)))
        assert part.events.to_pylist() == in_turn.to_pylist()


def test_other_kinds() -> None:
    workload = generate("mixed", 9, 9, kinds=["w0", "stock", "w4"])
    assert [part.subscriptions for part in workload.parts.values()] == [3, 3, 3]


def test_others_have_no_parts() -> None:
    assert generate("w4", 1, 1).parts == {}
