"""XML as a user calls it: documents in as bytes, ids out, beside compiled XPaths of lxml one by one and bare parsing.

Subscriptions are branching XPaths drawn from the documents: the NASA data set if $HARKEN_DATA has it, else made up.
An engine is fresh (subscribed to) or reloaded (saved and loaded); documents come in one batch or one at a time. lxml
parses each document and evaluates every compiled XPath on it, for as many documents as a turn allows. All take
turns in one process; times are processor time of one thread, parsing included. Answers are compared with those of lxml
outside the timer. libxml2 reads `1e3` as a number, which XPath 1.0 does not: answers that differ for that are counted,
and the reference has to agree with Harken. With --save the result goes to benchmarks/results/documents.json. (A script
called xml.py would hide the standard library's `xml` from all scripts beside it.)
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
"""Most XPaths that lxml evaluates in a turn, over all documents: about a second."""
MOST_COMPILED = 100_000
"""Most subscriptions for lxml."""
MOST_RENEWED = 10_000
"""Most subscriptions with a fresh engine in every round."""
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
    """A fresh engine with these subscriptions, and the seconds that adding them took."""
    engine = Engine()
    started = process_time()
    for first in range(0, len(texts), CHUNK):
        chunk = texts[first : first + CHUNK]
        report = engine.subscribe_many(
            {"id": str(first + place), "where": text, "language": "xpath"} for place, text in enumerate(chunk)
        )
        assert report.accepted == len(chunk), report.faults[:3]
        engine.stats()  # builds the index
    return engine, process_time() - started


def parsed(documents: Sequence[bytes]) -> Callable[[], object]:
    """A function that parses all documents, and nothing else."""
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

    speeds: dict[str, list[float]] = {}
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
                work()  # warm-up: the turn before left caches and memory in another state
            speeds.setdefault(name, []).append(count / seconds(work))
    if size > MOST_RENEWED:
        del speeds["fresh_first_batch"]  # the engine is the same in all rounds
    rates = {name: {"median": round(median(each), 1), "most": round(max(each), 1)} for name, each in speeds.items()}
    shares = [batch / parse for batch, parse in zip(speeds["fresh_batch"], speeds["parse"], strict=True)]
    return {
        "subscriptions": size,
        "matches_per_document": round(sum(counts) / len(documents), 3),
        "documents_per_second": rates,
        "share_of_parsing": round(median(shares), 3),
        "times_lxml": round(median(speeds["fresh_batch"]) / median(speeds["lxml"]), 1) if loop else None,
        "loaded_per_second": round(size / loading),
        "bytes_per_subscription": round(sum(engine.stats()["documents"]["memory"].values()) / size, 1),
        "compared": {"documents": len(few), "deviations": deviations} if loop else None,
    }


def check(engine: Engine, reloaded: Engine, loop: OneByOne, documents: Sequence[bytes]) -> int:
    """Compare all answers with lxml's. Returns how many differ for texts that only libxml2 reads as numbers."""
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
    for document, id, matches in differing:
        where = engine.subscription(id).where
        assert _ORDER.search(where), f"lxml does not agree on {where}"
        assert engine.explain(id, document).matched == matches, f"neither lxml nor the reference agrees on {where}"
    return len(differing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--large", action="store_true", help=f"also measure {LARGE:,} subscriptions")
    parser.add_argument("--documents", type=int, default=2_435, help="most documents")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", action="store_true", help="replace the committed result")
    arguments = parser.parse_args()
    model = Nasa()
    documents = list(model.collection()[: arguments.documents])
    with tempfile.TemporaryDirectory() as folder:
        warm = list(model.texts(100, np.random.default_rng(0)))
        measure(model, len(warm), documents[:200], 1, Path(folder), arguments.seed)
        rows = []
        for size in [*arguments.sizes, *([LARGE] if arguments.large else [])]:
            rows.append(measure(model, size, documents, arguments.rounds, Path(folder), arguments.seed))
            print(json.dumps(rows[-1]), flush=True)
    result = {
        "what": "documents a second of processor time, bytes in, ids out, parsing included, one thread",
        "collection": model.documents,
        "documents": len(documents),
        "bytes": sum(map(len, documents)),
        "rounds": arguments.rounds,
        "seed": arguments.seed,
        "sizes": rows,
        "environment": environment("lxml"),
    }
    if arguments.save:
        RESULTS.write_text(to_json(result), encoding="utf-8")


if __name__ == "__main__":
    main()
