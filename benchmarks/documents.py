"""What a user gets for XML: documents in as bytes, ids out, beside compiled XPaths of lxml one by one and bare parsing.

Subscriptions are branching XPaths drawn from the documents, which are NASA's where $HARKEN_DATA has them, else made up.
An engine is fresh (subscribed to) or reloaded (saved and loaded); documents come in one batch or one at a time. lxml
parses each document and evaluates every compiled XPath on it, on as many documents as a turn has time for. All take
turns in one process; times are processor time of one thread, parsing included. Answers are compared with those of lxml
outside the timer. libxml2 reads `1e3` as a number, which XPath 1.0 does not: what differs for that is counted, and the
reference has to agree. With --save the result goes to benchmarks/results/documents.json. (A script called xml.py would
hide the standard library's `xml` from all scripts beside it.)
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Sequence
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from lxml import etree

from harken import Engine
from harken.events.xml import read_documents
from harken_lab.harness.environment import environment
from harken_lab.harness.result_files import to_json
from harken_lab.workloads.nasa import Nasa

RESULTS = Path(__file__).parent / "results" / "documents.json"
SIZES = (10, 100, 1_000, 10_000, 100_000)
LARGE = 1_000_000
MOST_EVALUATED = 100_000
"""XPaths that lxml evaluates in a turn, over all documents: about a second."""
MOST_COMPILED = 100_000
"""Beyond so many subscriptions lxml is left out."""
MOST_RENEWED = 10_000
"""Up to so many subscriptions every round has a fresh engine."""
CHUNK = 100_000
_DECLARED = re.compile(r"declare namespace (\w+)='([^']*)'; ")
_ORDER = re.compile(r" [<>]=? ")

Answer = list[set[str]]


class OneByOne:
    """The plain way: a compiled XPath a subscription, all evaluated on the tree of every document."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._paths = [
            etree.XPath(f"boolean({_DECLARED.sub('', text)})", namespaces=dict(_DECLARED.findall(text)) or None)
            for text in texts
        ]

    def match(self, document: bytes) -> list[int]:
        tree = etree.ElementTree(etree.fromstring(document))
        return [place for place, path in enumerate(self._paths) if path(tree)]


def subscribed(texts: Sequence[str]) -> tuple[Engine, float]:
    """A fresh engine, and the seconds that it took to take them in."""
    engine = Engine()
    started = process_time()
    for first in range(0, len(texts), CHUNK):
        chunk = texts[first : first + CHUNK]
        report = engine.subscribe_many(
            {"id": str(first + place), "where": text, "language": "xpath"} for place, text in enumerate(chunk)
        )
        assert report.accepted == len(chunk), report.faults[:3]
        engine.stats()  # what came is indexed when it is looked at
    return engine, process_time() - started


def parsed(documents: Sequence[bytes]) -> Callable[[], object]:
    """Reading all documents, and nothing else."""
    data = np.frombuffer(b"".join(documents), np.uint8)
    offsets = np.array([0, *accumulate(map(len, documents))], np.int64)
    owner = np.arange(len(documents), dtype=np.int32)
    return lambda: read_documents(data, offsets, owner)


def seconds(work: Callable[[], object]) -> float:
    started = process_time()
    work()
    return process_time() - started


def measure(model: Nasa, size: int, documents: Sequence[bytes], rounds: int, folder: Path, seed: int) -> dict[str, Any]:
    texts = list(model.texts(size, np.random.default_rng(seed)))
    engine, loading = subscribed(texts)
    counts = engine.match_batch(documents).counts
    engine.save(folder / str(size))
    reloaded = Engine.load(folder / str(size))
    loop = OneByOne(texts) if size <= MOST_COMPILED else None
    few = Random(seed).sample(list(documents), max(1, min(len(documents), MOST_EVALUATED // size)))
    deviations = check(engine, reloaded, loop, few) if loop else None
    some = documents[: max(1, len(documents) // 4)]
    parse = parsed(documents)

    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        fresh = subscribed(texts)[0] if size <= MOST_RENEWED else engine
        turns: dict[str, tuple[Callable[[], object], int]] = {
            "fresh_first_batch": (lambda fresh=fresh: fresh.match_batch(documents).ids, len(documents)),
            "parse": (parse, len(documents)),
            "fresh_batch": (lambda fresh=fresh: fresh.match_batch(documents).ids, len(documents)),
            "fresh_match": (lambda fresh=fresh: [fresh.match(each).ids for each in some], len(some)),
            "reloaded_batch": (lambda: reloaded.match_batch(documents).ids, len(documents)),
            "reloaded_match": (lambda: [reloaded.match(each).ids for each in some], len(some)),
        }
        if loop is not None:
            turns["lxml"] = (lambda: [loop.match(each) for each in few], len(few))
        for name, (work, count) in turns.items():
            if name not in ("fresh_first_batch", "lxml"):
                work()  # what ran before has left its memory in another state
            found.setdefault(name, []).append(count / seconds(work))
    if size > MOST_RENEWED:
        del found["fresh_first_batch"]  # the engine is the same in all rounds
    rates = {name: {"median": round(median(each), 1), "most": round(max(each), 1)} for name, each in found.items()}
    shares = [batch / parse for batch, parse in zip(found["fresh_batch"], found["parse"], strict=True)]
    return {
        "subscriptions": size,
        "matches_per_document": round(sum(counts) / len(documents), 3),
        "documents_per_second": rates,
        "share_of_parsing": round(median(shares), 3),
        "times_lxml": round(median(found["fresh_batch"]) / median(found["lxml"]), 1) if loop else None,
        "loaded_per_second": round(size / loading),
        "bytes_per_subscription": round(sum(engine.stats()["documents"]["memory"].values()) / size, 1),
        "compared": {"documents": len(few), "deviations": deviations} if loop else None,
    }


def check(engine: Engine, reloaded: Engine, loop: OneByOne, documents: Sequence[bytes]) -> int:
    """Compare all answers with lxml's. Returns how many differ because libxml2 reads more as a number than XPath."""
    expected = [set(map(str, loop.match(each))) for each in documents]
    batches = [set(ids) for ids in engine.match_batch(documents).ids]
    assert batches == [set(ids) for ids in reloaded.match_batch(documents).ids], "the reloaded engine differs"
    for document, ids in islice(zip(documents, batches, strict=True), 20):
        assert ids == set(engine.match(document).ids) == set(reloaded.match(document).ids), "one at a time differs"
    differing = [
        (document, id, id in ids)
        for document, ids, others in zip(documents, batches, expected, strict=True)
        for id in ids ^ others
    ]
    for document, id, is_found in differing:
        where = engine.subscription(id).where
        assert _ORDER.search(where), f"lxml does not agree on {where}"
        assert engine.explain(id, document).matched == is_found, f"neither lxml nor the reference agrees on {where}"
    return len(differing)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options.add_argument("--large", action="store_true", help=f"{LARGE:,} subscriptions as well")
    options.add_argument("--documents", type=int, default=2_435, help="the most documents")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--save", action="store_true", help="write the result over the one that is committed")
    given = options.parse_args()
    model = Nasa()
    documents = list(model.collection()[: given.documents])
    with tempfile.TemporaryDirectory() as folder:
        warm = list(model.texts(100, np.random.default_rng(0)))
        measure(model, len(warm), documents[:200], 1, Path(folder), given.seed)
        rows = []
        for size in [*given.sizes, *([LARGE] if given.large else [])]:
            rows.append(measure(model, size, documents, given.rounds, Path(folder), given.seed))
            print(json.dumps(rows[-1]), flush=True)
    result = {
        "what": "documents a second of processor time, bytes in, ids out, parsing included, one thread",
        "collection": model.documents,
        "documents": len(documents),
        "bytes": sum(map(len, documents)),
        "rounds": given.rounds,
        "seed": given.seed,
        "sizes": rows,
        "environment": environment("lxml"),
    }
    if given.save:
        RESULTS.write_text(to_json(result), encoding="utf-8")


if __name__ == "__main__":
    main()
