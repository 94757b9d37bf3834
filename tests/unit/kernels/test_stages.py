"""Stages: kernels that are called by their address."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from harken.kernels.compile import inner, kernel
from harken.kernels.frozen import frozen, thawing
from harken.kernels.stages import NO_STAGE, Batch, Stage, call_stage, frozen_batch, stage


class Needed(NamedTuple):
    factors: NDArray[np.int64]
    limit: int


_needed, _batch, _stage = thawing(Needed), thawing(Batch), thawing(Stage)


@inner
def weigh(words, deleted, batch, codes, out, first, events):
    """Writes the codes of some events, times a factor by column. Returns how many are not skipped."""
    needed, given = _needed(words), _batch(batch)
    if events > needed.limit:
        raise ValueError("too many events")
    count = np.int64(0)
    for event in range(first, first + events):
        out[event] = 0
        for column in range(codes.shape[0]):
            if given.has_value[column]:
                out[event] += np.int32(codes[column, event] * needed.factors[column])
        count += not given.skipped[event]
        given.candidates[event] = given.offsets[event] + given.reserved[event]
    return count


@kernel
def _call(words, deleted, batch, codes, out, first, events):
    step = _stage(words)
    return call_stage(step, deleted, batch, codes, out, first, events) if step.address else np.int64(-1)


def given() -> Batch:
    skipped = np.array([False, True, False, False])
    return Batch(np.array([True, False]), skipped, np.arange(4), np.arange(10, 15), np.zeros(4, np.int64))


NOTHING = np.empty(0, np.int64)


def test_a_stage_is_called_with_what_it_needs() -> None:
    needed, batch = Needed(np.array([10, 1_000]), 9), given()
    codes, out = np.array([[1, 2, 3, 4], [7, 7, 7, 7]], np.uint32), np.full(4, -1, np.int32)
    step = stage(weigh, needed)
    assert _call(frozen(step), NOTHING, frozen_batch(batch), codes, out, 1, 3) == 2
    assert out.tolist() == [-1, 20, 30, 40]
    assert batch.candidates.tolist() == [0, 12, 14, 16]


def test_what_a_stage_raises_reaches_whoever_called_the_kernel() -> None:
    needed, batch = Needed(np.array([10, 1_000]), 2), given()
    step = stage(weigh, needed)
    codes, out = np.zeros((2, 4), np.uint32), np.empty(4, np.int32)
    with pytest.raises(ValueError, match="too many events"):
        _call(frozen(step), NOTHING, frozen_batch(batch), codes, out, 0, 3)


def test_a_stage_that_an_index_does_not_need_has_no_address() -> None:
    codes, out = np.zeros((2, 4), np.uint32), np.empty(4, np.int32)
    assert _call(frozen(NO_STAGE), NOTHING, frozen_batch(given()), codes, out, 0, 3) == -1


def test_a_batch_is_frozen_as_any_tuple_is() -> None:
    batch = given()
    assert frozen_batch(batch).tolist() == frozen(batch).tolist()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("skipped", np.zeros(4, np.int64)), ("offsets", np.arange(5, dtype=np.int32)), ("candidates", np.zeros(8)[::2])],
)
def test_a_batch_with_other_arrays_is_rejected(name: str, wrong: np.ndarray) -> None:
    with pytest.raises(Exception, match="is expected"):
        frozen_batch(given()._replace(**{name: wrong}))
