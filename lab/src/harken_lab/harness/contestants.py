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
"""Events of each kind that an index is planned by. They are never those that are measured."""
_SAMPLE_SEED = 1_000_003
NOT_INDEX = ("rows", "labels")
"""What of a matcher's memory is not its index: the rows, which a removal needs, and the constants."""


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

    def fill(self, workload: Workload, sample: pa.Table | None, limits: Limits = DEFAULT_LIMITS) -> Filled:
        """A matcher with all subscriptions of a workload, planned by a sample. Raises HarkenError where it refuses.

        Only adding the subscriptions is timed: neither compiling them, where they are added one by one, nor planning.
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

    def fill_rows(self, flat: Flat) -> Filled:
        """A matcher with these rows, planned without a sample."""
        matcher = self.matcher()
        return _added(matcher, matcher.add_flat, flat, never_verified)


class Filled:
    """A matcher with all subscriptions of a workload, and events for it to match.

    Where it takes codes, events are encoded beforehand and only matching is timed.
    """

    events = 0
    """How many it has."""

    def __init__(self, matcher: Any, fill_seconds: float, form_of: FormOf) -> None:
        self.matcher = matcher
        self.fill_seconds = fill_seconds
        self.form_of = form_of
        self.takes_codes = isinstance(matcher, MatchesCodes)

    def take(self, events: pa.Table) -> Filled:
        """Have these events. Raises CapabilityError for events that an index alone cannot judge."""
        self.table, self.events = events, events.num_rows
        self._batch = validate(events).batch
        if self.takes_codes:
            self.encoded = self.matcher.encode(self._batch)
            if len(self.encoded.several):
                raise CapabilityError("events with arrays have to be verified, which an index alone does not")
        else:
            self._last: tuple[Offsets, Numbers] | None = None
        return self

    def on(self, events: pa.Table) -> Filled:
        """The same matcher with other events."""
        return copy(self).take(events)

    def find(self) -> tuple[Offsets, Numbers]:
        """Match all events: what is timed. What it returns may be overwritten by the next call."""
        if self.takes_codes:
            found: tuple[Offsets, Numbers] = self.matcher.find(self.encoded)
            return found
        matched = self.matcher.match(self._batch, self.form_of)
        self._last = matched.offsets, matched.numbers
        return self._last

    def found(self) -> tuple[Offsets, Numbers]:
        """Where the matches of each event end, and the numbers of the subscriptions, not timed."""
        if self.takes_codes:
            offsets, found = self.find()
            return offsets, self.matcher.numbers_of(found)
        # What does not take codes is so slow that the last answer is used again.
        return self._last or self.find()

    def answers(self, events: int | None = None) -> Answers:
        """What the first events match, or all of them."""
        offsets, numbers = self.found()
        if events is not None:
            offsets = offsets[: events + 1]
        return Answers(numbers[: offsets[-1]], offsets)

    def examined(self, events: int) -> float | None:
        """How many candidates the first events had on average; None where that is not counted."""
        if not self.takes_codes:
            return None
        batch = validate(self.table.slice(0, events)).batch
        return float(self.matcher.match(batch, self.form_of).candidates.mean())

    def memory(self) -> dict[str, int]:
        """Bytes by structure; empty where an algorithm does not tell."""
        return {name: int(size) for name, size in self.matcher.stats().get("memory", {}).items()}

    def index_bytes(self) -> int:
        """The bytes of the index alone."""
        return sum(size for name, size in self.memory().items() if name not in NOT_INDEX)


def sample_of(name: str, seed: int, **parameters: Any) -> Workload:
    """Other events of the same kind to plan by: SAMPLE of them or, of a mixture, SAMPLE of each of its kinds."""
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
    """In place of the normal forms of subscriptions whose rows are exact, so that nothing has to be verified."""
    raise AssertionError(f"the rows of workloads are exact, and subscription {number} was verified")


def _added(matcher: Any, add: Callable[[Any], None], subscriptions: Any, form_of: FormOf) -> Filled:
    started = perf_counter()
    add(subscriptions)
    return Filled(matcher, perf_counter() - started, form_of)
