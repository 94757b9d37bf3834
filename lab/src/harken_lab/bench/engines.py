"""Engines and live matchers filled with a workload.

A matcher whose index is saved with an engine is measured at all sizes. Loading an engine with another matcher compiles
all texts, at some 20,000 a second: such matchers are not measured beyond `engine_size`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from harken.engine import Engine
from harken.language import Compiler
from harken.matchers import Entry
from harken.matchers.roles import Persists, Plans
from harken_lab.harness.contestants import Contestant
from harken_lab.harness.live import LiveMatcher
from harken_lab.harness.result_files import Unavailable, WrongAnswerError
from harken_lab.harness.verified_answers import Answers
from harken_lab.workloads.workload import Workload

_MOST_ENTRIES = 10_000
_CHECKED = 8


def live_of(algorithm: str, workload: Workload, sample: pa.Table, engine_size: int) -> LiveMatcher:
    """A matcher with all subscriptions, an even sample of which can be removed and added. Raises Unavailable."""
    contestant, size = Contestant.of(algorithm), workload.subscriptions
    _reject_slow_filling(contestant, size, engine_size)
    compiler, texts = Compiler(), workload.texts()
    numbers = range(0, size, max(1, size // max(1, min(_MOST_ENTRIES, engine_size))))
    entries = [Entry(number, compiler.compile(texts[number].as_py())) for number in numbers]
    return LiveMatcher(contestant.fill(workload, sample), entries)


def engines_of(
    workload: Workload, sample: pa.Table, matchers: Iterable[str], engine_size: int
) -> dict[str, Engine | Unavailable]:
    """An engine for each matcher, or why there is none."""
    engines: dict[str, Engine | Unavailable] = {}
    for matcher in matchers:
        try:
            engines[matcher] = _filled(Contestant.of(matcher), workload, sample, engine_size)
        except Unavailable as reason:
            engines[matcher] = reason
    return engines


def reject_wrong_engine(engine: Engine, events: pa.Table, expected: Answers) -> None:
    """Raise WrongAnswerError unless an engine gives the expected answers for the first events."""
    for event, ids in enumerate(engine.match_batch(events.slice(0, _CHECKED)).ids):
        if sorted(ids) != sorted(f"s{number}" for number in expected.of(event).tolist()):
            raise WrongAnswerError(f"event {event}: an engine with {engine.algorithm} answers otherwise than its index")


def reject_wrong_live(live: LiveMatcher, events: pa.Table, expected: Answers) -> None:
    """Raise WrongAnswerError unless a matcher gives the expected answers for the first events."""
    answers = live.answers(events.slice(0, _CHECKED))
    for event in range(len(answers)):
        if not np.array_equal(answers.of(event), expected.of(event)):
            raise WrongAnswerError(f"event {event}: after changes were made and undone, a matcher gives other answers")


def _filled(contestant: Contestant, workload: Workload, sample: pa.Table, engine_size: int) -> Engine:
    _reject_slow_filling(contestant, workload.subscriptions, engine_size)
    engine = Engine(algorithm=contestant.algorithm)
    report = engine.subscribe_many(workload.table())
    if report.faults or report.accepted != workload.subscriptions:
        count = len(report.faults)
        raise RuntimeError(f"{count:,} subscriptions of {workload.name} were rejected: {report.faults[:1]}")
    if isinstance(contestant.matcher(), Plans):
        engine.learn(sample)
    return engine


def _reject_slow_filling(contestant: Contestant, size: int, engine_size: int) -> None:
    if size > engine_size and not isinstance(contestant.matcher(), Persists):
        raise Unavailable(
            f"its index is not saved: it gets {engine_size:,} subscriptions at most; --engine-size raises that"
        )
