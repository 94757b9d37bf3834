"""What it costs to add one subscription, and to remove it, where there are many already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from harken.codes.flat import Flat
from harken.errors import CapabilityError, LimitError
from harken.events import EventBatch, validate
from harken.lab.experiments.entrants import COLUMNAR, Entrant, entries_of, never_asked, one_row_each, refusal
from harken.lab.experiments.rows import Row
from harken.lab.experiments.running import Run, row_of, title
from harken.lab.workloads import generate
from harken.lab.workloads.workload import Workload
from harken.language.normal_form import NormalForm
from harken.limits import DEFAULT_LIMITS
from harken.matchers import Entry, create_matcher

_OTHER_SEED = 500_009


def measure_changes(run: Run, workload: Workload, entrants: Sequence[Entrant]) -> list[Row]:
    """For every entrant the time of one addition, normalised already and as a row of arrays, and of one removal.

    What was put off until the next event is counted in: by how much a match after the changes is longer than one at
    rest.
    """
    others = generate(workload.name, run["changes"], 0, run.seed + _OTHER_SEED, **workload.parameters)
    entries, rows = entries_of(others, workload.subscriptions), one_row_each(others, workload.subscriptions)
    found = []
    for entrant in entrants:
        run.tell(f"{title(workload)}: changing {entrant.name}")
        row = row_of(entrant, workload)
        try:
            found.append(row | _Changing(run, entrant, workload, entries, rows).measured())
        except (LimitError, CapabilityError) as error:
            found.append(row | refusal(error))
    return found


class _Changing:
    """A matcher that is full, and subscriptions that come and go."""

    def __init__(self, run: Run, entrant: Entrant, workload: Workload, entries: list[Entry], rows: list[Flat]) -> None:
        self._matcher = _made(entrant)
        self._run = run
        self._workload = workload
        self._entries, self._rows = entries, rows
        self._batch = _nothing(workload.events)
        if hasattr(self._matcher, "add_flat"):
            numbers = np.arange(workload.subscriptions, dtype=np.int32)
            self._matcher.add_flat(Flat.of_predicates(numbers, workload.predicates))
        elif workload.subscriptions <= run.pace.one_by_one:
            self._matcher.add(entries_of(workload))
        else:
            raise CapabilityError(f"it takes subscriptions one by one, and gets {run.pace.one_by_one:,} at most")
        if hasattr(self._matcher, "learn"):
            self._matcher.learn(validate(run.sample_of(workload)).batch)
            self._matcher.merge()

    def measured(self) -> Row:
        count = self._count()
        entries, numbers = self._entries[:count], [each.number for each in self._entries[:count]]
        found: dict[str, list[float]] = {"insert_us": [], "delete_us": []}
        if hasattr(self._matcher, "add_flat"):
            found["insert_rows_us"] = []
        for _ in range(self._run.pace.rounds):
            found["insert_us"].append(self._seconds(lambda: self._add(entries)))
            found["delete_us"].append(self._seconds(lambda: self._remove(numbers)))
            if "insert_rows_us" in found:
                found["insert_rows_us"].append(self._seconds(lambda: self._add_rows(self._rows[:count])))
                self._remove(numbers)
        return {"changes": count} | {name: round(median(times) / count * 1e6, 3) for name, times in found.items()}

    def _count(self) -> int:
        """How many changes there is time for. The first one is for what is compiled or made ready once."""
        for _ in range(2):
            seconds = self._seconds(lambda: self._add(self._entries[:1]))
            self._seconds(lambda: self._remove([self._entries[0].number]))
        return max(1, min(len(self._entries), int(self._run.pace.seconds / max(seconds, 1e-6))))

    def _seconds(self, change: Callable[[], None]) -> float:
        if not hasattr(self._matcher, "add_flat"):  # it has nothing to put off, and matches slowly
            return _elapsed(change)
        self._match()
        rest = _elapsed(self._match)
        changing = _elapsed(change)
        return changing + max(0.0, _elapsed(self._match) - rest)

    def _add(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._matcher.add([entry])

    def _add_rows(self, rows: list[Flat]) -> None:
        for flat in rows:
            self._matcher.add_flat(flat)

    def _remove(self, numbers: list[int]) -> None:
        for number in numbers:
            self._matcher.remove([number])

    def _match(self) -> None:
        self._matcher.match(self._batch, self._form)

    def _form(self, number: int) -> NormalForm:
        """What the subscription of a number says: for matchers that verify what came last."""
        place = number - self._workload.subscriptions
        if place < 0:
            return never_asked(number)
        return self._entries[place].compiled.normal_form


def _made(entrant: Entrant) -> Any:
    # What the columnar matcher puts in the background would be in no figure.
    options = {"background": False} if entrant.algorithm == COLUMNAR else {}
    return create_matcher(entrant.algorithm, DEFAULT_LIMITS, **entrant.options, **options)


def _nothing(events: pa.Table) -> EventBatch:
    """An event without attributes: matching it costs little, and has all done that was put off."""
    columns = {name: pa.nulls(1, events.schema.field(name).type) for name in events.schema.names}
    return validate(pa.table(columns)).batch


def _elapsed(run: Callable[[], None]) -> float:
    started = perf_counter()
    run()
    return perf_counter() - started
