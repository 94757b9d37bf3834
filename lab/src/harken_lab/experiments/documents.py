"""What experiments on XML documents share: engines full of XPath subscriptions, timed on documents as bytes.

Unlike flat contestants these are whole engines: parsing is part of the time, as it is in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
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
"""Subscriptions that are texts and expressions at the same time."""
_LITTLE = 200
_VERIFIED, _EXPLAINED = 4, 60
"""Documents that are verified, and subscriptions that are explained for each, besides some that match."""
_RELOADED = 3
"""Times that an engine is reloaded: the quickest counts."""


def model_of(name: str, **parameters: object) -> Model:
    """The model of a workload, for one who draws a little at a time."""
    return find_recipe(name).model_with(parameters)


def streams(seed: int) -> list[np.random.Generator]:
    """The random streams of subscriptions and of events, as in `generate`."""
    return list(map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2)))


def filled(texts: Iterable[str], tell: Callable[[str], None], **options: str) -> tuple[Engine, float]:
    """An engine with these subscriptions, and the seconds that it took to take them in. Drawing them is not timed.

    `options` are those of the engine.
    """
    engine, seconds = Engine(**options), 0.0  # type: ignore[arg-type]
    source = iter(texts)
    while chunk := list(islice(source, _CHUNK)):
        first = len(engine)
        records = [{"id": f"s{first + place}", "where": text, "language": XPATH} for place, text in enumerate(chunk)]
        started = perf_counter()
        report = engine.subscribe_many(records)
        engine.stats()  # what came is indexed when it is looked at
        seconds += perf_counter() - started
        if report.faults:
            raise WrongAnswerError(f"a subscription was refused: {report.faults[0].error}")
        tell(f"{len(engine):,} subscriptions loaded")
    return engine, seconds


def warm_up(texts: Iterable[str], documents: Sequence[bytes]) -> None:
    """Do a little of everything, so that compiling kernels is in no figure."""
    engine, _ = filled(islice(texts, _LITTLE), lambda text: None)
    _parse(documents[:_LITTLE])
    engine.match_batch(documents[:_LITTLE])
    _reloaded_seconds(engine, documents[:_LITTLE])


def measure_documents(run: Run, engine: Engine, documents: Sequence[bytes]) -> Row:
    """The time of an engine that has seen none of these documents, of one that has, and of parsing alone."""
    first = _seconds(lambda: engine.match_batch(documents))
    verify_documents(engine, documents, run.seed)
    turns = {"parse": lambda: _parse(documents), XPATH: lambda: engine.match_batch(documents)}
    found = interleaved(turns, run.pace.rounds)
    matches = sum(engine.match_batch(documents).counts)
    known = engine.stats()["documents"]
    fresh, again = _reloaded_seconds(engine, documents)
    seconds = found[XPATH].median
    return {
        **timed(found[XPATH].microseconds(len(documents))),
        "events": len(documents),
        "notifications": matches,
        "matches_per_event": round(matches / len(documents), 3),
        "examined_per_event": known["seen_programs"],
        "seconds": round(seconds, 4),
        "first_seconds": round(first, 4),
        "parse_seconds": round(found["parse"].median, 4),
        "parse_share": round(median(found["parse"].times(found[XPATH])), 4),
        "path_seconds": round(max(0.0, fresh - again), 4),
        "documents_per_second": round(len(documents) / seconds, 1),
        "tag_paths": known["tag_paths"],
        "bytes": sum(known["memory"].values()),
    }


def verify_documents(engine: Engine, documents: Sequence[bytes], seed: int) -> None:
    """Raise WrongAnswerError unless explaining subscriptions, drawn and matching ones, gives what matching gives."""
    rng = Random(seed)
    for document in rng.sample(list(documents), min(_VERIFIED, len(documents))):
        found = set(engine.match(document).ids)
        asked = {f"s{rng.randrange(len(engine))}" for _ in range(_EXPLAINED)}
        for id in asked | set(islice(found, _EXPLAINED)):
            if engine.explain(id, document).matched != (id in found):
                told = "is found" if id in found else "is not found"
                raise WrongAnswerError(
                    f"{engine.subscription(id).where} {told}, and should not be so: {document!r:.500}"
                )


def _reloaded_seconds(engine: Engine, documents: Sequence[bytes]) -> tuple[float, float]:
    """The first and the second match of an engine that knows what is rare, but of no linear path what it fits."""
    with TemporaryDirectory() as folder:
        engine.save(Path(folder, "engine"))
        found = []
        for _ in range(_RELOADED):
            reloaded = Engine.load(Path(folder, "engine"))
            found.append([_seconds(lambda each=reloaded: each.match_batch(documents)) for _ in range(2)])  # type: ignore[misc]
        first, second = map(min, zip(*found, strict=True))
        return first, second


def _parse(documents: Sequence[bytes]) -> object:
    offsets = np.array([0, *accumulate(map(len, documents))], np.int64)
    data = np.frombuffer(b"".join(documents), np.uint8)
    return read_documents(data, offsets, np.arange(len(documents), dtype=np.int32))


def _seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started
