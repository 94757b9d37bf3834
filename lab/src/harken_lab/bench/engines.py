"""Engines and live matchers with a workload in them.

A matcher whose index is saved with an engine is measured at all sizes. Others are filled from texts when an engine is
loaded, at some 20,000 a second, and are not measured beyond `engine_size`.
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
from harken_lab.harness.live import Live
from harken_lab.harness.result_files import Unavailable, WrongAnswerError
from harken_lab.harness.verified_answers import Answers
from harken_lab.workloads.workload import Workload

_MOST_ENTRIES = 10_000
_CHECKED = 8


def live_of(algorithm: str, workload: Workload, sample: pa.Table, engine_size: int) -> Live:
    """A matcher with all subscriptions, of which some, evenly from all, come and go. Raises Unavailable."""
    contestant, size = Contestant.of(algorithm), workload.subscriptions
    _refuse_slow_filling(contestant, size, engine_size)
    compiler, texts = Compiler(), workload.texts()
    numbers = range(0, size, max(1, size // max(1, min(_MOST_ENTRIES, engine_size))))
    entries = [Entry(number, compiler.compile(texts[number].as_py())) for number in numbers]
    return Live(contestant.fill(workload, sample), entries)


def engines_of(
    workload: Workload, sample: pa.Table, matchers: Iterable[str], engine_size: int
) -> dict[str, Engine | Unavailable]:
    """An engine for each matcher, or why there is none."""
    found: dict[str, Engine | Unavailable] = {}
    for matcher in matchers:
        try:
            found[matcher] = _filled(Contestant.of(matcher), workload, sample, engine_size)
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
    found = live.answers(events.slice(0, _CHECKED))
    for event in range(len(found)):
        if not np.array_equal(found.of(event), expected.of(event)):
            raise WrongAnswerError(f"event {event}: after changes were made and undone, a matcher has other answers")


def _filled(contestant: Contestant, workload: Workload, sample: pa.Table, engine_size: int) -> Engine:
    _refuse_slow_filling(contestant, workload.subscriptions, engine_size)
    engine = Engine(algorithm=contestant.algorithm)
    report = engine.subscribe_many(workload.table())
    if report.faults or report.accepted != workload.subscriptions:
        raise RuntimeError(f"{len(report.faults):,} subscriptions of {workload.name} were refused: {report.faults[:1]}")
    if isinstance(contestant.matcher(), Plans):
        engine.learn(sample)
    return engine


def _refuse_slow_filling(contestant: Contestant, size: int, engine_size: int) -> None:
    if size > engine_size and not isinstance(contestant.matcher(), Persists):
        raise Unavailable(
            f"its index is not saved, and it gets {engine_size:,} subscriptions at most; --engine-size raises that"
        )
