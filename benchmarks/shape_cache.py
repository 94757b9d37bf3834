"""The rate at which texts become normal forms, with each shape parsed once and with every text parsed.

Both sides parse, check and normalise; only the parse of a shape is shared, no normal form is. With --save the result
goes to benchmarks/results/shape_cache.json, which README quotes.
"""

from __future__ import annotations

import argparse
import random
import resource
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter

from harken import Engine
from harken.language import Compiler, normalise
from harken.language.sql import check, parse
from harken_lab.harness.environment import environment
from harken_lab.harness.result_files import to_json
from harken_lab.harness.rounds import interleaved

RESULTS = Path(__file__).parent / "results" / "shape_cache.json"
SHAPES = 1_000
NAMES = [f"attribute_{number}" for number in range(40)]
PREDICATES = (
    "{name} = '{word}'",
    "{name} = {number}",
    "{name} < {number}",
    "{name} >= {decimal}",
    "{name} BETWEEN {number} AND {larger}",
    "{name} IN ('{word}', '{word}', '{word}')",
    "{name} LIKE '{word}%'",
    "({name} = {number} OR {name}_too > {decimal})",
)
WEIGHTS = (6, 4, 4, 4, 1, 1, 1, 1)


def shapes(rng: random.Random) -> list[list[str]]:
    """Distinct shapes of one to five predicates, each a list of predicates without constants."""
    by_text: dict[str, list[str]] = {}
    while len(by_text) < SHAPES:
        names = rng.sample(NAMES, rng.randint(1, 5))
        parts = [rng.choices(PREDICATES, WEIGHTS)[0].replace("{name}", name) for name in names]
        by_text[" AND ".join(parts)] = parts
    return list(by_text.values())


def texts(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    patterns = shapes(rng)
    return [" AND ".join(filled(part, rng) for part in patterns[number % SHAPES]) for number in range(count)]


def filled(part: str, rng: random.Random) -> str:
    while "{word}" in part:
        part = part.replace("{word}", f"word{rng.randint(0, 99_999)}", 1)
    number = rng.randint(-9_999, 99_999)
    return part.format(number=number, larger=number + rng.randint(1, 999), decimal=round(rng.uniform(0, 9_999), 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=200_000, help="texts a round with the cache")
    parser.add_argument("--uncached", type=int, default=10_000, help="texts a round without it")
    parser.add_argument("--load", type=int, default=1_000_000, help="texts that are added to an engine, once")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", action="store_true", help="replace the committed result")
    arguments = parser.parse_args()

    sample = texts(arguments.texts, arguments.seed)
    compiler = Compiler()
    for text in sample[:SHAPES]:
        assert compiler.compile(text).normal_form == normalise(parse(text)), text

    def without_cache() -> None:
        for text in sample[: arguments.uncached]:
            expression = parse(text)
            check(expression)
            normalise(expression)

    def with_cache() -> None:
        warm = Compiler()
        for text in sample:
            warm.compile(text)

    timings = interleaved({"without": without_cache, "with": with_cache}, arguments.rounds)
    scale = arguments.texts / arguments.uncached
    ratios = [scale * each for each in timings["without"].times(timings["with"])]
    counts = {"without": arguments.uncached, "with": arguments.texts}
    result = {
        "what": "texts a second through parse, check and normalise; every round starts with an empty cache",
        "texts": counts,
        "shapes": SHAPES,
        "mean_length": round(sum(map(len, sample)) / len(sample), 1),
        "seed": arguments.seed,
        "rounds": arguments.rounds,
        "texts_per_second": {name: timing.rates(counts[name]) for name, timing in timings.items()},
        "ratio": {"median": round(median(ratios), 2), "least": round(min(ratios), 2)},
        "load": load(arguments.load, arguments.seed),
        "environment": environment(),
    }
    if arguments.save:
        RESULTS.write_text(to_json(result), encoding="utf-8")
    print(to_json(result), end="")


def load(count: int, seed: int) -> dict[str, float]:
    """Seconds to add many texts to an engine, and the growth of peak memory, in a fresh process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(loaded, count, seed).result()


def loaded(count: int, seed: int) -> dict[str, float]:
    Engine().subscribe_many([("first", "attribute_1 = 1")])  # triggers lazy imports
    many = [(str(number), text) for number, text in enumerate(texts(count, seed))]
    engine = Engine()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = perf_counter()
    report = engine.subscribe_many(many)
    seconds = perf_counter() - started
    assert report.accepted == count, report.faults[:3]
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "texts": count,
        "seconds": round(seconds, 1),
        "grown_mib": round(grown / 1024, 1),
        "bytes_a_text": round(grown * 1024 / count),
    }


if __name__ == "__main__":
    main()
