"""The cost of adding one subscription to many, and of removing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from time import perf_counter

import pyarrow as pa

from harken.codes.flat import Flat
from harken.errors import CapabilityError, LimitError
from harken.matchers import Entry
from harken.matchers.roles import AddsInBulk, Plans
from harken_lab.experiments.figure_rows import Row
from harken_lab.experiments.running import Run, rejection, row_of
from harken_lab.experiments.spreads import ROUNDS
from harken_lab.harness.contestants import Contestant, entries_of, rows_of
from harken_lab.harness.live import LiveMatcher
from harken_lab.harness.verified_answers import title
from harken_lab.workloads import generate
from harken_lab.workloads.workload import Workload

_OTHER_SEED = 500_009


def measure_changes(run: Run, workload: Workload, contestants: Sequence[Contestant]) -> list[Row]:
    """A row for each contestant: the time to add a subscription, compiled or as a row of arrays, and to remove one.

    Work that a matcher puts off until the next event is included, as the extra time of a match after the changes.
    """
    others = generate(workload.name, run["changes"], 0, run.seed + _OTHER_SEED, **workload.parameters)
    entries, rows = entries_of(others, workload.subscriptions), one_row_each(others, workload.subscriptions)
    measured = []
    for contestant in contestants:
        run.tell(f"{title(workload)}: changing {contestant.name}")
        row = row_of(contestant, workload)
        try:
            measured.append(row | _Changing(run, contestant, workload, entries, rows).measured())
        except (LimitError, CapabilityError) as error:
            measured.append(row | rejection(error))
    return measured


def one_row_each(workload: Workload, first: int) -> list[Flat]:
    """Each subscription as a row of arrays of its own. Numbers ascend from `first`."""
    flat = rows_of(workload, first)
    return [flat.only(flat.numbers == number) for number in flat.numbers]


class _Changing:
    """A full matcher, and other subscriptions that are added and removed."""

    def __init__(
        self, run: Run, contestant: Contestant, workload: Workload, entries: list[Entry], rows: list[Flat]
    ) -> None:
        empty = contestant.matcher()
        self._pace = run.pace
        self._in_bulk = isinstance(empty, AddsInBulk)
        if not self._in_bulk and workload.subscriptions > run.pace.one_by_one:
            raise CapabilityError(f"it does not add in bulk, and gets at most {run.pace.one_by_one:,} subscriptions")
        # No figure would include a merge in the background.
        options = {"background": False} if isinstance(empty, Plans) else {}
        contestant = replace(contestant, options={**contestant.options, **options})
        filled = contestant.fill(workload, run.sample_of(workload))
        self._live, self._rows = LiveMatcher(filled, entries), rows
        self._event = _without_attributes(workload.events)

    def measured(self) -> Row:
        count = self._count()
        live, entries, rows = self._live, self._live.entries[:count], self._rows[:count]
        seconds: dict[str, list[float]] = {"insert_us": [], "delete_us": []}
        for _ in range(self._pace.rounds):
            seconds["insert_us"].append(self._seconds(lambda: live.add(entries)))
            seconds["delete_us"].append(self._seconds(lambda: live.remove(entries)))
            if self._in_bulk:
                seconds.setdefault("insert_rows_us", []).append(self._seconds(lambda: self._add_rows(rows)))
                live.remove(entries)
        rounds = {name: [round(each / count * 1e6, 3) for each in times] for name, times in seconds.items()}
        return {"changes": count} | {name: median(times) for name, times in rounds.items()} | {ROUNDS: rounds}

    def _count(self) -> int:
        """The number of changes that fit a turn. The first try only warms up."""
        one = self._live.entries[:1]
        for _ in range(2):
            seconds = self._seconds(lambda: self._live.add(one))
            self._seconds(lambda: self._live.remove(one))
        return max(1, min(len(self._live.entries), int(self._pace.seconds / max(seconds, 1e-6))))

    def _seconds(self, change: Callable[[], None]) -> float:
        if not self._in_bulk:  # such matchers put nothing off, and match slowly
            return _elapsed(change)
        self._match()
        rest = _elapsed(self._match)
        changing = _elapsed(change)
        return changing + max(0.0, _elapsed(self._match) - rest)

    def _add_rows(self, rows: list[Flat]) -> None:
        for flat in rows:
            self._live.matcher.add_flat(flat)

    def _match(self) -> None:
        self._live.match(self._event)


def _without_attributes(events: pa.Table) -> pa.Table:
    """One event without attributes: matching it costs little, and does the work that was put off."""
    return pa.table({name: pa.nulls(1, events.schema.field(name).type) for name in events.schema.names})


def _elapsed(run: Callable[[], None]) -> float:
    started = perf_counter()
    run()
    return perf_counter() - started
