"""Contestants: an algorithm with options, filled with a workload, and driven over the workload's events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from harken.codes.flat import Flat
from harken.errors import CapabilityError
from harken.events import validate
from harken.language import Compiler
from harken.language.normal_form import NormalForm
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers import Entry, create_matcher
from harken.matchers.base import FormOf
from harken.matchers.roles import AddsInBulk, MatchesCodes
from harken_lab.harness.learning import plan_by
from harken_lab.harness.verified_answers import Answers, Numbers, Offsets
from harken_lab.workloads import generate
from harken_lab.workloads.workload import Workload

SAMPLE = 256
"""Events of each kind by which an index is planned. They are never the measured ones."""
_SAMPLE_SEED = 1_000_003
NOT_INDEX = ("rows", "labels")
"""Structures of a matcher that are not its index: the rows, which removing needs, and the constants."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """An algorithm under the name that it has in results."""

    name: str
    algorithm: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, algorithm: str, name: str | None = None, **options: Any) -> Contestant:
        return cls(name or algorithm, algorithm, options)

    def matcher(self, limits: Limits = DEFAULT_LIMITS) -> Any:
        """An empty matcher. Raises CapabilityError if there is no such algorithm or option."""
        return create_matcher(self.algorithm, limits, **self.options)

    def fill(self, workload: Workload, sample: pa.Table | None, limits: Limits = DEFAULT_LIMITS) -> FilledMatcher:
        """A matcher that holds a workload's subscriptions, planned by a sample. Raises HarkenError if it cannot.

        Only adding the subscriptions is timed. Planning is not, nor is compiling those that are added one by one.
        """
        matcher = self.matcher(limits)
        if isinstance(matcher, AddsInBulk):
            filled = _added(matcher, matcher.add_flat, rows_of(workload), never_verified)
        else:
            entries = entries_of(workload)
            forms = {entry.number: entry.compiled.normal_form for entry in entries}
            filled = _added(matcher, matcher.add, entries, forms.__getitem__)
        if sample is not None:
            plan_by(matcher, sample)
        return filled

    def fill_rows(self, flat: Flat) -> FilledMatcher:
        """A matcher with these rows, planned without a sample."""
        matcher = self.matcher()
        return _added(matcher, matcher.add_flat, flat, never_verified)


class FilledMatcher:
    """A matcher with all subscriptions of a workload, and events for it to match.

    If the matcher takes codes, events are encoded beforehand, so that a timer around `find` measures matching alone.
    """

    events = 0
    """The number of its events."""

    def __init__(self, matcher: Any, fill_seconds: float, form_of: FormOf) -> None:
        self.matcher = matcher
        self.fill_seconds = fill_seconds
        self.form_of = form_of
        self.takes_codes = isinstance(matcher, MatchesCodes)

    def take(self, events: pa.Table) -> FilledMatcher:
        """Replace the events. Raises CapabilityError for events that an index alone cannot decide."""
        self.table, self.events = events, events.num_rows
        self._batch = validate(events).batch
        if self.takes_codes:
            self.encoded = self.matcher.encode(self._batch)
            if len(self.encoded.several):
                raise CapabilityError("events with arrays have to be verified, and an index alone does not verify")
        else:
            self._last: tuple[Offsets, Numbers] | None = None
        return self

    def on(self, events: pa.Table) -> FilledMatcher:
        """The same matcher with other events."""
        return copy(self).take(events)

    def find(self) -> tuple[Offsets, Numbers]:
        """Match all events. This is the call to time; the next one may overwrite its result."""
        if self.takes_codes:
            matches: tuple[Offsets, Numbers] = self.matcher.find(self.encoded)
            return matches
        result = self.matcher.match(self._batch, self.form_of)
        self._last = result.offsets, result.numbers
        return self._last

    def matches(self) -> tuple[Offsets, Numbers]:
        """Where the matches of each event begin and end, and the numbers of the subscriptions. Not to be timed."""
        if self.takes_codes:
            offsets, rows = self.find()
            return offsets, self.matcher.numbers_of(rows)
        # Matchers that take no codes are so slow that the last answer is used again.
        return self._last or self.find()

    def answers(self, events: int | None = None) -> Answers:
        """The matches of the first events, or of all."""
        offsets, numbers = self.matches()
        if events is not None:
            offsets = offsets[: events + 1]
        return Answers(numbers[: offsets[-1]], offsets)

    def examined(self, events: int) -> float | None:
        """Mean candidates of the first events; None if the matcher does not count them."""
        if not self.takes_codes:
            return None
        batch = validate(self.table.slice(0, events)).batch
        return float(self.matcher.match(batch, self.form_of).candidates.mean())

    def memory(self) -> dict[str, int]:
        """Bytes by structure; empty if the algorithm does not report them."""
        return {name: int(size) for name, size in self.matcher.stats().get("memory", {}).items()}

    def index_bytes(self) -> int:
        """The bytes of the index alone."""
        return sum(size for name, size in self.memory().items() if name not in NOT_INDEX)


def sample_of(name: str, seed: int, **parameters: Any) -> Workload:
    """Other events of a workload, to plan by: SAMPLE of them or, of a mixture, SAMPLE of each of its kinds."""
    kinds = len(generate(name, 0, 0, **parameters).parts) or 1
    return generate(name, 0, SAMPLE * kinds, seed + _SAMPLE_SEED, **parameters)


def rows_of(workload: Workload, first: int = 0) -> Flat:
    """The subscriptions as rows of arrays, numbered from the first on."""
    numbers = np.arange(first, first + workload.subscriptions, dtype=np.int32)
    return Flat.of_predicates(numbers, workload.predicates)


def entries_of(workload: Workload, first: int = 0) -> list[Entry]:
    """The subscriptions, compiled, numbered from the first on."""
    compiler = Compiler()
    return [Entry(number, compiler.compile(text)) for number, text in enumerate(workload.texts().to_pylist(), first)]


def never_verified(number: int) -> NormalForm:
    """Stands in for the normal forms of subscriptions whose rows are exact: nothing has to be verified."""
    raise AssertionError(f"the rows of workloads are exact, and subscription {number} was verified")


def _added(matcher: Any, add: Callable[[Any], None], subscriptions: Any, form_of: FormOf) -> FilledMatcher:
    started = perf_counter()
    add(subscriptions)
    return FilledMatcher(matcher, perf_counter() - started, form_of)
