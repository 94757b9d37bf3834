"""Engines full of XPath subscriptions, verified and timed on documents as bytes, for the experiments on XML.

Whole engines are measured, unlike contestants: the time includes parsing, as it does in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, islice
from random import Random
from statistics import median
from time import perf_counter

import numpy as np

from harken.engine import Engine
from harken.events.xml import read_documents
from harken_lab.experiments.figure_rows import Row
from harken_lab.experiments.running import Run, timed
from harken_lab.harness.result_files import WrongAnswerError
from harken_lab.harness.rounds import interleaved
from harken_lab.workloads.recipes import find_recipe
from harken_lab.workloads.workload import Model

XPATH = "xpath"
_CHUNK = 100_000
"""Subscriptions added at once. Only these are in memory both as texts and as expressions."""
_WARM_UP = 200
_VERIFIED, _EXPLAINED = 4, 60
"""Documents that are verified; and random subscriptions that are explained for each, besides matching ones."""


def model_of(name: str, **parameters: object) -> Model:
    """The model of a workload, to draw from it in parts."""
    return find_recipe(name).model_with(parameters)


def streams(seed: int) -> list[np.random.Generator]:
    """The random streams of subscriptions and of events, as in `generate`."""
    return list(map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2)))


def filled_engine(texts: Iterable[str], tell: Callable[[str], None], **options: str) -> tuple[Engine, float]:
    """An engine with these subscriptions, and the seconds of adding them. Drawing them is not timed.

    `options` are those of the engine.
    """
    engine, seconds = Engine(**options), 0.0  # type: ignore[arg-type]
    source = iter(texts)
    while chunk := list(islice(source, _CHUNK)):
        first = len(engine)
        records = [{"id": f"s{first + place}", "where": text, "language": XPATH} for place, text in enumerate(chunk)]
        started = perf_counter()
        report = engine.subscribe_many(records)
        engine.stats()  # reading statistics indexes new subscriptions
        seconds += perf_counter() - started
        if report.faults:
            raise WrongAnswerError(f"a subscription was rejected: {report.faults[0].error}")
        tell(f"{len(engine):,} subscriptions loaded")
    return engine, seconds


def warm_up(texts: Iterable[str], documents: Sequence[bytes]) -> None:
    """Do a little of everything, so that no figure includes compiling kernels."""
    engine, _ = filled_engine(islice(texts, _WARM_UP), lambda text: None)
    _parse(documents[:_WARM_UP])
    engine.match_batch(documents[:_WARM_UP])


def measure_documents(run: Run, engine: Engine, documents: Sequence[bytes]) -> Row:
    """The times of matching documents for the first time, of matching them again, and of parsing alone."""
    first = _seconds(lambda: engine.match_batch(documents))
    verify_documents(engine, documents, run.seed)
    turns = {"parse": lambda: _parse(documents), XPATH: lambda: engine.match_batch(documents)}
    timings = interleaved(turns, run.pace.rounds)
    matches = sum(engine.match_batch(documents).counts)
    stats = engine.stats()["documents"]
    seconds = timings[XPATH].median
    return {
        **timed(timings[XPATH].microseconds(len(documents))),
        "events": len(documents),
        "notifications": matches,
        "matches_per_event": round(matches / len(documents), 3),
        "examined_per_event": stats["seen_programs"],
        "seconds": round(seconds, 4),
        "first_seconds": round(first, 4),
        "parse_seconds": round(timings["parse"].median, 4),
        "parse_share": round(median(timings["parse"].times(timings[XPATH])), 4),
        "documents_per_second": round(len(documents) / seconds, 1),
        "tag_paths": stats["tag_paths"],
        "bytes": sum(stats["memory"].values()),
    }


def verify_documents(engine: Engine, documents: Sequence[bytes], seed: int) -> None:
    """Raise WrongAnswerError unless explaining subscriptions, random and matching ones, agrees with matching."""
    rng = Random(seed)
    for document in rng.sample(list(documents), min(_VERIFIED, len(documents))):
        matches = set(engine.match(document).ids)
        chosen = {f"s{rng.randrange(len(engine))}" for _ in range(_EXPLAINED)}
        for id in chosen | set(islice(matches, _EXPLAINED)):
            if engine.explain(id, document).matched != (id in matches):
                outcome = "matches" if id in matches else "does not match"
                raise WrongAnswerError(
                    f"{engine.subscription(id).where} {outcome}, but its explanation says otherwise: {document!r:.500}"
                )


def _parse(documents: Sequence[bytes]) -> object:
    offsets = np.array([0, *accumulate(map(len, documents))], np.int64)
    data = np.frombuffer(b"".join(documents), np.uint8)
    return read_documents(data, offsets, np.arange(len(documents), dtype=np.int32))


def _seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started
