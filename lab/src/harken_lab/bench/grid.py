"""Measures the grid: in every cell Harken, a loop of closures and `scan` take turns, in processor time."""

from __future__ import annotations

import gc
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from math import ceil
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import pyarrow as pa

from harken.engine import Engine
from harken.errors import HarkenError
from harken.events import read_events
from harken_lab.bench.grid_cells import (
    ARROW,
    DELETED,
    DICTS,
    IDS,
    JSON,
    RELOADED,
    SHAPES,
    Cell,
    cells,
)
from harken_lab.bench.grid_result import GridResult, MeasuredCell, Spread
from harken_lab.bench.updates import wait_for_merges
from harken_lab.harness.closures import ClosureLoop, arrays_of
from harken_lab.harness.environment import environment
from harken_lab.harness.result_files import Unavailable, WrongAnswerError
from harken_lab.workloads import generate
from harken_lab.workloads.workload import Workload

Tell = Callable[[str], None]
Ids = list[list[str]]

_MOST_EVENTS = 10_000
_MOST_VALUES = 10_000_000
"""Most values in a table of events: with thousands of attributes there are fewer events."""
_MOST_CHECKED = 32
"""Most events whose answers are verified."""
_LONGEST_CHECK = 0.5
"""Most seconds for computing the expected answers."""
_DELETED_ONE_IN = 100
"""For the state `deleted`, one subscription in this many is removed."""
_AT_ONCE = 16
"""Calls with one event that are timed together, so that reading the clock does not count."""


@dataclass(frozen=True, slots=True)
class GridSettings:
    """What is measured, and how often. The committed result uses the defaults."""

    shapes: tuple[str, ...] = tuple(SHAPES)
    sizes: tuple[int, ...] = ()
    """Empty: the sizes of each shape."""
    rounds: int = 5
    seed: int = 0
    turn: float = 0.06
    """Seconds that a contestant's turn should last."""
    longest_call: float = 0.3
    """Most seconds of one call: a call with many events gets fewer if it would take longer."""
    closures: int = 20_000
    """Most closures. With more subscriptions the loop has an even sample of them, and its time is scaled."""
    scanned: int = 100_000
    """Most subscriptions for `scan`."""
    is_quick: bool = False

    def quick(self) -> GridSettings:
        """About a tenth of the cells, with fewer rounds: about three minutes."""
        return replace(self, rounds=3, turn=0.03, is_quick=True)

    def cells(self) -> Iterator[Cell]:
        return cells(self.shapes, self.sizes, self.is_quick)


@dataclass(frozen=True, slots=True)
class _EventPool:
    """The events of a shape, in all forms that engines accept."""

    table: pa.Table
    dicts: list[dict[str, Any]]
    lines: list[bytes]

    def __len__(self) -> int:
        return len(self.dicts)


@dataclass(slots=True)
class _Contestant:
    """A contestant in a cell, and its times."""

    run: Callable[[int, int], object]
    """Matches events: from which place on, and how many."""
    events: int
    """The number of events in the pool."""
    step: int
    """Events a run."""
    repeats: int = 1
    """Runs a turn."""
    at: int = 0
    """The place of the next event."""
    scale: float = 1.0
    microseconds: list[float] = field(default_factory=list)
    """µs an event, of each turn."""

    def warm_up(self, turn: float, longest: float) -> None:
        """Choose events a run and runs a turn: a run lasts at most `longest` seconds, a turn about `turn`."""
        most, self.step = min(self.step, self.events), 1
        self._seconds()
        while self.step < most and self._seconds() < longest / 4:
            self.step = min(most, 4 * self.step)
        self.repeats = max(1, min(1_000, ceil(turn / max(self._seconds(), 1e-7))))

    def turn(self) -> None:
        seconds = sum(self._seconds() for _ in range(self.repeats))
        self.microseconds.append(seconds / self.repeats / self.step * 1e6 * self.scale)

    def _seconds(self) -> float:
        if self.at + self.step > self.events:
            self.at = 0
        started = process_time()
        self.run(self.at, self.step)
        took = process_time() - started
        self.at += self.step
        return took


class _Prepared:
    """The engines and the loop of one shape and size, in one state."""

    def __init__(self, settings: GridSettings, pool: _EventPool, workload: Workload) -> None:
        self.settings = settings
        self.pool = pool
        self.size = workload.subscriptions
        self.engine = _filled(Engine(), workload)
        self.scan: Engine | None = None
        if self.size <= settings.scanned:
            with suppress(Unavailable, HarkenError):  # the cell is then measured without `scan`
                self.scan = _filled(Engine(algorithm="scan"), workload)
        texts = workload.texts().to_pylist()
        every = range(0, self.size, ceil(self.size / settings.closures))
        self.loop = ClosureLoop(((f"s{number}", texts[number]) for number in every), arrays_of(pool.table))
        self.sampled_ids = None if len(every) == self.size else {f"s{number}" for number in every}
        self.scale = self.size / len(every)
        self._set_expected()

    def reload(self) -> None:
        """Replace the engine by one that is loaded from its saved copy. The caller keeps the original."""
        with tempfile.TemporaryDirectory() as folder:
            self.engine.save(Path(folder, "engine"))
            self.engine = Engine.load(Path(folder, "engine"))
            self.engine.match_batch(self.pool.dicts[:1])

    def delete(self) -> None:
        removed = [f"s{number}" for number in range(0, self.size, _DELETED_ONE_IN)]
        for engine in filter(None, (self.engine, self.scan)):
            for id in removed:
                engine.unsubscribe(id)
        self.loop.remove(removed)
        self._set_expected()

    def _set_expected(self) -> None:
        """Compute the loop's answers for the first events, for as many as `_LONGEST_CHECK` allows."""
        self.expected: Ids = []
        started = process_time()
        for event in self.pool.dicts[:_MOST_CHECKED]:
            self.expected.append(sorted(self.loop.match(event)))
            if process_time() - started > _LONGEST_CHECK and len(self.expected) > 1:
                break

    def measure(self, cell: Cell) -> MeasuredCell:
        settings, pool = self.settings, self.pool
        call = _call(self.engine, pool, cell)
        self._verify("the engine", cell, self.engine)
        step = _AT_ONCE if cell.call == 1 else cell.call
        contestants = {
            "harken": _Contestant(call, len(pool), step),
            "closures": _Contestant(_loop_call(self.loop, pool, cell), len(pool), _MOST_EVENTS, scale=self.scale),
        }
        if self.scan is not None:
            self._verify("scan", cell, self.scan)
            contestants["scan"] = _Contestant(_call(self.scan, pool, cell), len(pool), step)
        wait_for_merges()
        for name, each in contestants.items():
            longest = settings.longest_call if name == "harken" and cell.call > 1 else settings.turn
            each.warm_up(settings.turn, longest)
        wait_for_merges()
        gc.collect()
        gc.freeze()  # the collector then skips objects made before this cell is timed
        for _ in range(settings.rounds):
            for each in contestants.values():
                each.turn()
        gc.unfreeze()
        spreads = {name: Spread.of(each.microseconds) for name, each in contestants.items()}
        used = contestants["harken"].step if cell.call > 1 else 1
        inside, matches = self._inside(cell, contestants["harken"].step)
        return MeasuredCell(
            cell,
            used,
            matches,
            spreads["harken"],
            spreads["closures"],
            len(self.loop),
            spreads.get("scan"),
            expected_cost(self.engine.stats()),
            inside,
        )

    def _inside(self, cell: Cell, step: int) -> tuple[float, float]:
        """µs an event of encoding and matching alone, and the matches of an event."""
        events = self.pool.dicts[:step] if cell.given != ARROW else self.pool.table.slice(0, step)
        if cell.call == 1:
            results = [self.engine.match(event) for event in self.pool.dicts[:step]]
            matches = sum(len(each.ids) for each in results) / step
            return median(each.seconds["match"] for each in results) * 1e6, matches
        batches = [self.engine.match_batch(events) for _ in range(3)]
        return median(each.seconds["match"] for each in batches) / step * 1e6, len(batches[0].numbers) / step

    def _verify(self, name: str, cell: Cell, engine: Engine) -> None:
        """Raise WrongAnswerError unless an engine, called as the cell says, gives the loop's answers."""
        answers = _call(engine, self.pool, cell._replace(wanted=IDS))(0, len(self.expected))
        for event, (ids, expected) in enumerate(zip(answers, self.expected, strict=True)):
            shared = ids if self.sampled_ids is None else [id for id in ids if id in self.sampled_ids]
            if sorted(shared) != expected:
                raise WrongAnswerError(
                    f"{cell}, event {event}: {name} finds {len(shared):,} subscriptions, the loop {len(expected):,}, "
                    "and they are not the same"
                )


def run_grid(
    settings: GridSettings, tell: Tell = lambda text: None, keep: Callable[[GridResult], None] = lambda result: None
) -> GridResult:
    """Measure all cells. Wrong answers are fatal; cells whose subscriptions are rejected are noted as not measured.

    `keep` is called with the result so far after each shape.
    """
    result = GridResult(_plain(asdict(settings)), environment("numba"))
    for shape, of_shape in groupby(settings.cells(), lambda cell: cell.shape):
        tell(f"{shape}: drawing events")
        pool = _event_pool(shape, settings.seed)
        for size, of_size in groupby(of_shape, lambda cell: cell.size):
            _measure_size(result, settings, pool, shape, size, list(of_size), tell)
        keep(result)
    return result


def _measure_size(
    result: GridResult, settings: GridSettings, pool: _EventPool, shape: str, size: int, chosen: list[Cell], tell: Tell
) -> None:
    tell(f"{shape}: {size:,} subscriptions")
    try:
        prepared = _Prepared(settings, pool, generate(shape, size, 0, settings.seed))
    except (Unavailable, HarkenError) as reason:
        result.not_measured.append({"shape": shape, "size": size, "cells": len(chosen), "reason": str(reason)})
        tell(f"{shape}: {size:,} subscriptions cannot be measured: {reason}")
        return
    fresh = prepared.engine
    for state, of_state in groupby(chosen, lambda cell: cell.state):
        prepared.engine = fresh
        if state == RELOADED:
            prepared.reload()
        elif state == DELETED:
            prepared.delete()
        for cell in of_state:
            measured = prepared.measure(cell)
            result.cells.append(measured)
            if not measured.meets_target:
                tell(f"{cell}: {measured.harken.median:,.4g} µs, closures {measured.closures.median:,.4g} µs")


def _filled(engine: Engine, workload: Workload) -> Engine:
    """Fill an engine, from a table if the workload has one. Raises Unavailable if subscriptions are rejected."""
    if workload.has_table:
        source: Any = workload.table()
    else:
        source = ((f"s{number}", text) for number, text in enumerate(workload.written or ()))
    report = engine.subscribe_many(source)
    if report.faults:
        raise Unavailable(f"{len(report.faults):,} subscriptions are rejected, the first: {report.faults[0].error}")
    return engine


def _event_pool(shape: str, seed: int) -> _EventPool:
    columns = generate(shape, 0, 0, seed).events.num_columns
    table = generate(shape, 0, min(_MOST_EVENTS, _MOST_VALUES // columns), seed).events
    dicts = [_without_nulls(row) for batch in table.to_batches(256) for row in batch.to_pylist()]
    return _EventPool(table.combine_chunks(), dicts, [json.dumps(each).encode() for each in dicts])


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _call(engine: Engine, pool: _EventPool, cell: Cell) -> Callable[[int, int], Any]:
    """A function that matches events as a user would: in one call, or one call for each."""
    table, dicts, lines = pool.table, pool.dicts, pool.lines
    if cell.call == 1:
        if cell.given == ARROW:
            return lambda at, count: [engine.match_batch(table.slice(at + k, 1)).ids[0] for k in range(count)]
        if cell.given == JSON:
            return lambda at, count: [engine.match(json.loads(line)).ids for line in lines[at : at + count]]
        return lambda at, count: [engine.match(event).ids for event in dicts[at : at + count]]

    def match(at: int, count: int) -> Any:
        if cell.given == DICTS:
            result = engine.match_batch(dicts[at : at + count])
        elif cell.given == ARROW:
            result = engine.match_batch(table.slice(at, count))
        else:
            stream = io.BytesIO(b"\n".join(lines[at : at + count]))
            (decoded,) = read_events(stream, "jsonl", batch_size=count + 1, names=engine.attributes())
            result = engine.match_batch(decoded)
        return result.ids if cell.wanted == IDS else result.numbers

    return match


def _loop_call(loop: ClosureLoop, pool: _EventPool, cell: Cell) -> Callable[[int, int], Ids]:
    """A function that matches events in the cell's form by the loop, decoding included."""
    table, dicts, lines, match = pool.table, pool.dicts, pool.lines, loop.match
    if cell.given == ARROW:
        return lambda at, count: [match(event) for event in table.slice(at, count).to_pylist()]
    if cell.given == JSON:
        return lambda at, count: [match(json.loads(line)) for line in lines[at : at + count]]
    return lambda at, count: [match(event) for event in dicts[at : at + count]]


def expected_cost(stats: Any) -> float | None:
    """µs an event that all plans in an engine's statistics expect together; None if none has an estimate."""
    estimates = list(_named("expected_ns", stats))
    return sum(estimates) / 1e3 if estimates else None


def _named(name: str, data: Any) -> Iterator[float]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key == name and value is not None:
                yield value
            else:
                yield from _named(name, value)
    elif isinstance(data, list | tuple):
        for each in data:
            yield from _named(name, each)


def _plain(value: Any) -> Any:
    """Turn tuples into lists, as JSON has them."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
