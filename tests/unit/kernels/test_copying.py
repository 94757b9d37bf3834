"""Copying runs of ids: every id at its place, and nothing else touched."""

from __future__ import annotations

import numpy as np
import pytest

from harken.kernels.compile import kernel
from harken.kernels.copying import RunCopying, copy_runs, repeat_lines
from harken.kernels.deletes import NONE_DELETED, Deleted
from harken.kernels.frozen import frozen, thawing
from harken.kernels.runs import Runs
from harken.kernels.stages import Batch, Stage, call_stage, stage
from harken.kernels.vector import LANES, ROWS, aligned

IDS = 3_000
CANARY = -77
_thawed = thawing(Stage)


@kernel
def _call(copying, deleted, batch, codes, out, events):
    return call_stage(_thawed(copying), deleted, batch, codes, out, 0, events)


def copy(drawn: Drawn, ends: np.ndarray, room: int, out: np.ndarray, *, streaming: bool) -> None:
    """Have the stage copy all runs of a chunk."""
    events, nothing = len(ends), np.empty(0, np.int64)
    words, counts = np.empty(0, np.uint64), np.empty(0, np.int32)
    offsets = np.append(ends, ends[-1] + len(out))
    copying = RunCopying(drawn.runs, drawn.ids, ends, aligned(room, np.int32), -1 if streaming else 1 << 40)
    deleted = Deleted(NONE_DELETED, words, counts, drawn.ids)
    batch = Batch(np.empty(0, np.bool_), np.empty(0, np.bool_), nothing, offsets, nothing)
    copier = stage(copy_runs, copying)
    _call(frozen(copier), frozen(deleted), frozen(batch), np.empty((0, events), np.uint32), out, events)


class Drawn:
    """Runs of some events, as finding them leaves them, and the ids that each event is to get."""

    def __init__(self, rng: np.random.Generator, events: int, longest: int) -> None:
        self.ids = np.concatenate([rng.permutation(IDS), np.full(ROWS, -1)]).astype(np.int32)
        self._passed: list[int] = []
        sizes = rng.permutation(np.concatenate([np.arange(2 * LANES + 2), rng.integers(0, longest, 60)]))
        whole: list[list[tuple[int, list[int]]]] = [[] for _ in range(events)]
        part: list[list[tuple[int, bool, list[int]]]] = [[] for _ in range(events)]
        for size, kind, event in zip(
            sizes, rng.integers(0, 3, len(sizes)), rng.integers(0, events, len(sizes)), strict=True
        ):
            slots = self._drawn(rng, int(size), int(kind))
            if len(slots) == 0:
                continue
            if kind == 0:
                whole[event].append((int(slots[0]), self.ids[slots].tolist()))
            else:
                part[event].append((self._keep(slots, is_bits=kind == 2), kind == 2, self.ids[slots].tolist()))
        passed = np.array(self._passed, np.uint64)
        width = max(len(front) + len(back) for front, back in zip(whole, part, strict=True))
        of_event = np.zeros((width, events), np.uint64)
        self.expected: list[list[int]] = []
        for event, (front, back) in enumerate(zip(whole, part, strict=True)):
            for i, (start, ids) in enumerate(front):
                of_event[i, event] = start | len(ids) << 32
            # Whatever was kept is known by now: where bits begin counts from behind all of it.
            for i, (start, is_bits, ids) in enumerate(back):
                of_event[width - 1 - i, event] = start + is_bits * len(passed) | len(ids) << 32
            self.expected.append([each for *_, ids in (*front, *back) for each in ids])
        self.runs = Runs(
            of_event=of_event,
            whole=np.array([len(each) for each in whole]),
            part=np.array([len(each) for each in part]),
            passed=passed,
            numbers=np.empty(0, np.int32),
            active=np.empty(0, np.int32),
            begins=np.empty(0, np.int64),
            stops=np.empty(0, np.int64),
        )

    @staticmethod
    def _drawn(rng: np.random.Generator, size: int, kind: int) -> np.ndarray:
        begin = int(rng.integers(0, IDS - 2 * size - 1))
        if kind == 0:
            return np.arange(begin, begin + size)
        return np.sort(rng.permutation(2 * size)[:size]) + begin

    def _keep(self, slots: np.ndarray, *, is_bits: bool) -> int:
        at = len(self._passed)
        if not is_bits:
            self._passed += slots.tolist()
            return at
        first = int(slots[0])
        words = [0] * ((int(slots[-1]) - first) // ROWS + 1)
        for slot in slots.tolist():
            words[(slot - first) // ROWS] |= 1 << (slot - first) % ROWS
        self._passed += [first, *words]
        return at


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("room", [4 * ROWS, 2_000])
def test_every_id_is_copied_to_its_place(streaming: bool, gaps: bool, room: int) -> None:
    rng = np.random.default_rng([streaming, gaps, room])
    for events, longest, shift in ((1, 40, 0), (7, 40, 3), (40, 400, 5), (40, 1_400, 15), (7, 400, 16)):
        drawn = Drawn(rng, events, longest)
        counts = np.array([len(each) for each in drawn.expected])
        before = rng.integers(0, 40, events) if gaps else np.zeros(events, np.int64)
        begins = np.cumsum(before + counts) - counts
        space = aligned(int(shift + begins[-1] + counts[-1] + LANES), np.int32)
        space[:] = CANARY
        out = space[shift : len(space) - LANES]
        ends = begins.copy()
        copy(drawn, ends, room, out, streaming=streaming)
        assert ends.tolist() == (begins + counts).tolist()
        untouched = np.ones(len(space), np.bool_)
        for begin, expected in zip(begins.tolist(), drawn.expected, strict=True):
            assert out[begin : begin + len(expected)].tolist() == expected
            untouched[shift + begin : shift + begin + len(expected)] = False
        assert (space[untouched] == CANARY).all()


def test_no_runs_leave_everything_as_it_was() -> None:
    rng = np.random.default_rng(1)
    drawn = Drawn(rng, 3, 40)
    drawn.runs.whole[:] = drawn.runs.part[:] = 0
    out, ends = np.full(20, CANARY, np.int32), np.array([3, 5, 9])
    copy(drawn, ends, 4 * ROWS, out, streaming=True)
    assert ends.tolist() == [3, 5, 9]
    assert (out == CANARY).all()


@pytest.mark.parametrize("size", [0, 15, 16, 47, 48, 200])
def test_lines_are_repeated_up_to_the_last_whole_one(size: int) -> None:
    source, space = aligned(3 * LANES, np.int32), aligned(size + LANES, np.int32)
    source[:], space[:] = np.arange(3 * LANES), CANARY
    repeat_lines(source, space[:size])
    whole = size // LANES * LANES
    assert space[:whole].tolist() == [at % (3 * LANES) for at in range(whole)]
    assert (space[whole:] == CANARY).all()
