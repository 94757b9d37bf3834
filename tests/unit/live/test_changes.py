"""Changes of a log: what they come to, and an engine that follows them from any place on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from drawn import needs_laboratory
from harken import Engine, Limits
from harken.errors import CapabilityError, LanguageError
from harken.internals import join_engines
from harken.live.changes import Change, changes_between, latest
from harken.live.subscriptions import Record
from harken.matchers import ALGORITHMS


def record(id: str, where: str, **fields: object) -> Record:
    return Record(0, id, where, fields=fields)


def put(sequence: int, id: str, where: str) -> Change:
    return Change(sequence, id, record(id, where))


def gone(sequence: int, id: str) -> Change:
    return Change(sequence, id, None)


def texts(engine: Engine) -> dict[str, str]:
    return {each.id: each.where for each in engine}


def test_the_last_change_of_an_id_counts() -> None:
    found = latest([put(1, "a", "x = 1"), put(2, "b", "x = 2"), gone(3, "a"), put(4, "b", "x = 3")])
    assert found == {"a": None, "b": record("b", "x = 3")}


def test_the_changes_between_two_sets() -> None:
    before = {"same": record("same", "x = 1"), "left": record("left", "x = 2"), "other": record("other", "x = 3")}
    after = {"other": record("other", "x = 4"), "same": record("same", "x = 1"), "new": record("new", "x = 5")}
    found = changes_between(before, after, sequence=7)
    assert found == [
        Change(8, "left", None),
        Change(9, "other", record("other", "x = 4")),
        Change(10, "new", record("new", "x = 5")),
    ]
    assert changes_between(after, after) == []


@pytest.mark.parametrize("changed", [record("a", "x = 1", owner="eve"), Record(0, "a", "x = 1", "other")])
def test_other_fields_or_another_language_are_a_change(changed: Record) -> None:
    assert changes_between({"a": record("a", "x = 1")}, {"a": changed}) == [Change(1, "a", changed)]


def test_where_it_stood_is_no_change() -> None:
    assert changes_between({"a": Record(3, "a", "x = 1", line=4)}, {"a": Record(5, "a", "x = 1", line=6)}) == []


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_an_engine_follows_a_log_from_any_place_on(algorithm: str, tmp_path: Path) -> None:
    draw = Random(4)
    log = [
        gone(number, f"s{draw.randrange(9)}")
        if draw.random() < 0.3
        else put(number, f"s{draw.randrange(9)}", f"x = {draw.randrange(5)}")
        for number in range(1, 61)
    ]
    whole = Engine(algorithm=algorithm)
    whole.apply(log)
    begun = Engine(algorithm=algorithm)
    begun.apply(log[:23])
    begun.save(tmp_path)
    resumed = Engine.load(tmp_path)
    assert resumed.sequence == 23
    resumed.apply(log[17:40])  # some of them once more
    for change in log[40:]:
        resumed.apply([change])
    assert texts(whole) == texts(resumed)
    assert whole.sequence == resumed.sequence == 60
    for value in range(5):
        assert sorted(whole.match({"x": value}).ids) == sorted(resumed.match({"x": value}).ids)


def test_a_record_that_is_rejected_is_reported_and_leaves_no_older_text() -> None:
    engine = Engine()
    engine.apply([put(1, "bad", "x = 1"), put(2, "good", "x = 1")])
    report = engine.apply([put(3, "bad", "x = "), put(4, "good", "x = 2")])
    assert report.accepted == 1
    (fault,) = report.faults
    assert fault.id == "bad"
    assert isinstance(fault.error, LanguageError)
    assert texts(engine) == {"good": "x = 2"}
    assert engine.match({"x": 1}).ids == []
    assert engine.sequence == 4


def test_what_no_log_told_has_no_sequence() -> None:
    engine = Engine()
    engine.subscribe("a", "x = 1")
    assert engine.apply([]).accepted == 0
    assert engine.sequence is None


def test_to_remove_what_is_not_there_is_no_fault() -> None:
    engine = Engine()
    assert engine.apply([gone(1, "nobody")]).faults == []
    assert engine.sequence == 1


def test_unsaved_changes_of_a_log_are_changes(tmp_path: Path) -> None:
    engine = Engine()
    engine.apply([put(1, "a", "x = 1")])
    engine.save(tmp_path)
    other = Engine.load(tmp_path)
    other.apply([gone(2, "a")])
    other.save(tmp_path)
    assert engine.refresh()
    assert engine.sequence == 2
    assert len(engine) == 0


def test_limits_reject_what_does_not_fit() -> None:
    engine = Engine(limits=Limits(max_text_length=20))
    report = engine.apply([put(1, "a", "x = 1"), put(2, "b", "x = 1 OR x = 2 OR x = 3 OR x = 4")])
    assert (report.accepted, [fault.id for fault in report.faults]) == (1, ["b"])


def test_a_match_sees_none_or_all_of_the_changes() -> None:
    """Two subscriptions swap what they ask for, over and over: exactly one is true of the event at every moment."""
    engine = Engine()
    engine.apply([put(1, "a", "x = 1"), put(2, "b", "x = 2")])
    stop = threading.Event()
    wrong: list[list[str]] = []

    def match() -> None:
        while not stop.is_set():
            found = engine.match({"x": 1}).ids
            if len(found) != 1:
                wrong.append(found)

    reader = threading.Thread(target=match)
    reader.start()
    for turn in range(300):
        first, second = ("x = 2", "x = 1") if turn % 2 == 0 else ("x = 1", "x = 2")
        engine.apply([put(2 * turn + 3, "a", first), put(2 * turn + 4, "b", second)])
    stop.set()
    reader.join()
    assert wrong == []


def test_an_algorithm_that_only_adds_rejects_to_remove(monkeypatch: pytest.MonkeyPatch) -> None:
    from harken.matchers.naive import Naive

    monkeypatch.setattr(Naive, "traits", frozenset())
    engine = Engine(algorithm="naive")
    engine.apply([put(1, "a", "x = 1")])
    with pytest.raises(CapabilityError, match="cannot do: unsubscribe"):
        engine.apply([gone(2, "a")])
    assert engine.match({"x": 1}).ids == ["a"]
    assert engine.sequence == 1


def test_what_was_applied_before_changes_nothing() -> None:
    engine = Engine()
    engine.apply([put(1, "a", "x = 1")])
    engine.apply([gone(2, "a")])
    assert engine.apply([put(1, "a", "x = 1")]).accepted == 0
    assert "a" not in engine
    assert engine.sequence == 2


def test_no_changes_are_no_change(tmp_path: Path) -> None:
    Engine().save(tmp_path)
    idle, busy = Engine.load(tmp_path), Engine.load(tmp_path)
    idle.apply([])
    busy.subscribe("a", "x = 1")
    busy.save(tmp_path)
    assert idle.refresh()
    assert "a" in idle


@needs_laboratory
def test_what_is_gone_leaves_also_where_what_comes_does_not_fit() -> None:
    engine = Engine(algorithm="counting_bytes", limits=Limits(max_matrix_bytes=64))
    engine.apply([put(1, "a", "x = 1"), put(2, "b", "x = 2")])
    large = " AND ".join(f"x{number} = 1" for number in range(80))
    report = engine.apply([gone(3, "a"), put(4, "b", "x = "), put(5, "c", large)])
    assert sorted(str(fault.id) for fault in report.faults) == ["b", "c"]
    assert texts(engine) == {}
    assert engine.sequence == 5


def test_parts_know_the_log_as_far_as_the_whole() -> None:
    engine = Engine()
    engine.apply([put(7, "a", "x = 1"), put(8, "b", "x = 2")])
    parts = engine.internals.cut(2)
    assert [each.sequence for each in parts] == [8, 8]
    parts[0].apply([put(9, "c", "x = 3")])
    assert join_engines(parts)[0].sequence == 8
    assert join_engines([parts[0], Engine()])[0].sequence is None


@pytest.mark.parametrize("how", ["subscribe_many", "apply"])
def test_nothing_is_lost_where_a_follower_takes_over_another_version_meanwhile(how: str, tmp_path: Path) -> None:
    writer = Engine()
    writer.subscribe("old", "x = 1")
    writer.save(tmp_path)
    follower = Engine.load(tmp_path, follow=True)

    def source() -> Iterator[Change]:
        yield put(1, "n1", "y = 1")
        writer.subscribe("late", "x = 1")
        writer.save(tmp_path)
        assert follower.match({"x": 1}).ids
        yield put(2, "n2", "y = 2")

    records = (each.record for each in source())
    report = follower.apply(source()) if how == "apply" else follower.subscribe_many(records)
    assert report.accepted == 2
    assert {each.id for each in follower} == {"old", "late", "n1", "n2"}
