"""Engines and matchers with a workload in them, alive: what goes on in them can be changed and asked for.

A matcher whose index is saved with an engine is measured at all sizes. The others are filled from texts when an engine
is loaded, at some 20,000 a second, so that sizes beyond `engine_size` are not measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from harken.codes.flat import Flat
from harken.engine import Engine
from harken.events import EventBatch, validate
from harken.lab.bench.answers import Answers
from harken.lab.bench.figures import Unavailable, WrongAnswerError
from harken.lab.workloads.workload import Workload
from harken.language import Compiler
from harken.matchers import Entry, create_matcher
from harken.matchers.base import Matcher
from harken.matchers.registry import ALGORITHMS

_MOST_ENTRIES = 10_000
_CHECKED = 8


class Live:
    """A matcher by its protocol, with all subscriptions of a workload in it, and some of these to take out and in."""

    def __init__(self, algorithm: str, workload: Workload, sample: pa.Table, engine_size: int) -> None:
        matcher: Any = create_matcher(algorithm) if algorithm in ALGORITHMS else None
        _refuse(algorithm, matcher, workload.subscriptions, engine_size)
        self._compiler = Compiler()
        self._texts = workload.texts()
        if _takes_arrays(matcher):
            numbers = np.arange(workload.subscriptions, dtype=np.int32)
            matcher.add_flat(Flat.of_predicates(numbers, workload.predicates))
        else:
            matcher.add(map(self._entry, range(workload.subscriptions)))
        if hasattr(matcher, "learn"):
            matcher.learn(validate(sample).batch)
            matcher.merge()
        self.matcher: Matcher = matcher
        step = max(1, workload.subscriptions // max(1, min(_MOST_ENTRIES, engine_size)))
        self.entries = list(map(self._entry, range(0, workload.subscriptions, step)))
        """Evenly from all, already normalised."""

    def match(self, batch: EventBatch) -> Answers:
        """What a batch matches."""
        found = self.matcher.match(batch, lambda number: self._entry(number).compiled.normal_form)
        return Answers(found.numbers, found.offsets)

    def match_only(self, batch: EventBatch) -> None:
        """The same for the clock."""
        self.matcher.match(batch, lambda number: self._entry(number).compiled.normal_form)

    def _entry(self, number: int) -> Entry:
        return Entry(number, self._compiler.compile(self._texts[number].as_py()))


def engines_of(
    workload: Workload, sample: pa.Table, matchers: Iterable[str], engine_size: int
) -> dict[str, Engine | Unavailable]:
    """An engine for each matcher, or why there is none."""
    found: dict[str, Engine | Unavailable] = {}
    for matcher in matchers:
        try:
            engine = _filled(matcher, workload, engine_size)
            if hasattr(create_matcher(matcher), "learn"):
                engine.learn(sample)
            found[matcher] = engine
        except Unavailable as reason:
            found[matcher] = reason
    return found


def refuse_wrong_engine(engine: Engine, events: pa.Table, expected: Answers) -> None:
    """Raise WrongAnswerError unless an engine has these answers to the first events."""
    for event, ids in enumerate(engine.match_batch(events.slice(0, _CHECKED)).ids):
        if sorted(ids) != sorted(f"s{number}" for number in expected.of(event).tolist()):
            raise WrongAnswerError(f"event {event}: an engine with {engine.algorithm} has other answers than its index")


def refuse_wrong_live(live: Live, events: pa.Table, expected: Answers) -> None:
    """Raise WrongAnswerError unless a matcher has these answers to the first events."""
    found = live.match(validate(events.slice(0, _CHECKED)).batch)
    for event in range(len(found)):
        if not np.array_equal(found.of(event), expected.of(event)):
            raise WrongAnswerError(f"event {event}: after changes were made and undone, a matcher has other answers")


def _filled(algorithm: str, workload: Workload, engine_size: int) -> Engine:
    """An engine with all subscriptions of a workload. Raises Unavailable."""
    matcher = create_matcher(algorithm) if algorithm in ALGORITHMS else None
    _refuse(algorithm, matcher, workload.subscriptions, engine_size)
    engine = Engine(algorithm=algorithm)
    report = engine.subscribe_many(workload.table())
    if report.faults or report.accepted != workload.subscriptions:
        raise RuntimeError(f"{len(report.faults):,} subscriptions of {workload.name} were refused: {report.faults[:1]}")
    return engine


def _takes_arrays(matcher: Any) -> bool:
    return hasattr(matcher, "add_flat")


def _is_saved(matcher: Any) -> bool:
    return hasattr(matcher, "state")


def _refuse(algorithm: str, matcher: Any, size: int, engine_size: int) -> None:
    """Raise Unavailable if there is no such algorithm, or filling it would take too long."""
    if matcher is None:
        raise Unavailable(f"no engine has the algorithm `{algorithm}` yet")
    if size > engine_size and not _is_saved(matcher):
        raise Unavailable(
            f"its index is not saved, and it gets {engine_size:,} subscriptions at most; --engine-size raises that"
        )
