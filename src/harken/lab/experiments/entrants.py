"""Who takes part: an algorithm with options, filled with a workload, and ready to match its events.

The papers' algorithms take rows of arrays and show their parts. The columnar index goes through its contestant of the
benchmarks. All others go through the protocol of matchers, which takes subscriptions one by one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from harken.codes.flat import Flat
from harken.errors import CapabilityError, LimitError
from harken.events import EventBatch, validate
from harken.lab.bench.answers import Answers
from harken.lab.bench.contestants import ColumnarContestant, Ids, Offsets, dictionary_bytes, encode_table, ready
from harken.lab.experiments.rows import Row
from harken.lab.workloads.workload import Workload
from harken.language import Compiler
from harken.language.normal_form import NormalForm
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers import Entry, MatchResult, create_matcher

COLUMNAR = "columnar"
NOT_INDEX = ("rows", "labels")
"""What of a matcher's memory is not its index: the rows, by which a subscription is found again, and the constants."""
_KNOWN = {"subscriptions", "rows", "predicates", "bytes", "memory", "events", "examined"}


@dataclass(frozen=True, slots=True)
class Entrant:
    """An algorithm under the name that it has in results."""

    name: str
    algorithm: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, algorithm: str, name: str | None = None, **options: Any) -> Entrant:
        return cls(name or algorithm, algorithm, options)


class Filled(ABC):
    """An algorithm with all subscriptions of a workload, and some of the workload's events."""

    fill_seconds: float
    events: int
    """How many it has ready."""
    event_seconds: float = 0.0
    """What an event takes, by a first try."""

    @abstractmethod
    def take(self, events: pa.Table) -> None:
        """Have these events ready."""

    @abstractmethod
    def find(self) -> object:
        """Match all events: what is timed."""

    @abstractmethod
    def found(self) -> tuple[Ids, Offsets]:
        """The subscriptions of all events behind each other, and where those of each event end."""

    def answers(self, events: int) -> Answers:
        """What the first events match."""
        ids, offsets = self.found()
        return Answers(ids[: offsets[events]], offsets[: events + 1])

    @abstractmethod
    def examined(self, events: int) -> float | None:
        """How many things were looked at for each of the first events. What they are depends on the algorithm."""

    @abstractmethod
    def memory(self) -> dict[str, int]:
        """Bytes by structure. There are none where an algorithm does not tell."""

    def details(self) -> dict[str, Any]:
        """What else the algorithm says of its index."""
        return {}


def fill(entrant: Entrant, workload: Workload, sample: pa.Table, limits: Limits = DEFAULT_LIMITS) -> Filled:
    """Fill an algorithm, by the clock. Raises HarkenError where it refuses."""
    if entrant.algorithm == COLUMNAR:
        return FilledColumnar(workload, sample)
    matcher: Any = create_matcher(entrant.algorithm, limits, **entrant.options)
    takes_rows = all(hasattr(matcher, name) for name in ("add_flat", "encode", "find", "rows"))
    return FilledRows(matcher, workload) if takes_rows else FilledOneByOne(matcher, workload)


def takes_one_by_one(entrant: Entrant) -> bool:
    """Whether filling it means to compile every subscription. Raises HarkenError if there is no such algorithm."""
    return not hasattr(create_matcher(entrant.algorithm, **entrant.options), "add_flat")


def refusal(error: LimitError | CapabilityError) -> Row:
    """A refusal as a row says it, with the limit if there is one."""
    message = str(error).partition("\n")[0]
    if isinstance(error, LimitError):
        return {"refused": f"stopped at {error.limit}: {message}", "limit": error.limit}
    return {"refused": f"cannot: {message}"}


def one_row_each(workload: Workload, first: int) -> list[Flat]:
    """The subscriptions as rows of arrays, each apart, numbered from the first on."""
    numbers = np.arange(first, first + workload.subscriptions, dtype=np.int32)
    flat = Flat.of_predicates(numbers, workload.predicates)
    return [flat.only(numbers == number) for number in numbers]


def entries_of(workload: Workload, first: int = 0) -> list[Entry]:
    """The subscriptions, normalised, numbered from the first on."""
    compiler = Compiler()
    return [Entry(number, compiler.compile(text)) for number, text in enumerate(workload.texts().to_pylist(), first)]


class FilledRows(Filled):
    """One of the papers' algorithms."""

    def __init__(self, matcher: Any, workload: Workload) -> None:
        numbers = np.arange(workload.subscriptions, dtype=np.int32)
        predicates = workload.predicates
        started = perf_counter()
        matcher.add_flat(Flat.of_predicates(numbers, predicates))
        self.fill_seconds = perf_counter() - started
        self.matcher = matcher

    def take(self, events: pa.Table) -> None:
        self.events, self._events = events.num_rows, events
        self._encoded = self.matcher.encode(validate(events).batch)

    def find(self) -> object:
        return self.matcher.find(self._encoded)

    def satisfied(self) -> int:
        """How many predicates hold over all events: the first of two stages."""
        return int(self.matcher.satisfied(self._encoded))

    def found(self) -> tuple[Ids, Offsets]:
        offsets, rows = self.matcher.find(self._encoded)
        return self.matcher.rows.numbers[rows], offsets

    def examined(self, events: int) -> float | None:
        batch = validate(self._events.slice(0, events)).batch
        return float(self.matcher.match(batch, never_asked).candidates.mean())

    def memory(self) -> dict[str, int]:
        return {name: int(size) for name, size in self.matcher.stats()["memory"].items()}

    def details(self) -> dict[str, Any]:
        return {name: value for name, value in self.matcher.stats().items() if name not in _KNOWN}


class FilledColumnar(Filled):
    """The columnar index, planned by a sample of other events."""

    def __init__(self, workload: Workload, sample: pa.Table) -> None:
        predicates = workload.predicates
        started = perf_counter()
        self._conjunctions, self._contestant = ready(ColumnarContestant, predicates, workload.subscriptions, sample)
        self.fill_seconds = perf_counter() - started

    def take(self, events: pa.Table) -> None:
        self.events = events.num_rows
        self._encoded = encode_table(events, self._conjunctions)
        self._offsets = np.zeros(self.events + 1, np.int64)

    def find(self) -> object:
        return self._contestant.find(self._encoded, self._offsets)

    def found(self) -> tuple[Ids, Offsets]:
        return self._contestant.find(self._encoded, self._offsets), self._offsets

    def examined(self, events: int) -> float | None:
        return self._contestant.candidates(self._encoded.part(0, events))

    def memory(self) -> dict[str, int]:
        return {"index": self._contestant.nbytes, "labels": dictionary_bytes(self._conjunctions)}


class FilledOneByOne(Filled):
    """A matcher by its protocol. Compiling subscriptions is not in the time that filling takes."""

    def __init__(self, matcher: Any, workload: Workload) -> None:
        entries = entries_of(workload)
        started = perf_counter()
        matcher.add(entries)
        self.fill_seconds = perf_counter() - started
        self._forms = {entry.number: entry.compiled.normal_form for entry in entries}
        self.matcher = matcher

    def take(self, events: pa.Table) -> None:
        self.events = events.num_rows
        self._batch: EventBatch = validate(events).batch
        self._found: MatchResult | None = None

    def find(self) -> object:
        self._found = self.matcher.match(self._batch, self._forms.__getitem__)
        return self._found

    def found(self) -> tuple[Ids, Offsets]:
        # They are so slow that what was found is kept.
        if self._found is None:
            self.find()
        assert self._found is not None
        return self._found.numbers, self._found.offsets

    def examined(self, events: int) -> float | None:
        return None

    def memory(self) -> dict[str, int]:
        return {}


def never_asked(number: int) -> NormalForm:
    """In place of the subscriptions' normal forms, where they need not be kept."""
    raise AssertionError(f"the rows of workloads are exact, and subscription {number} was verified")
