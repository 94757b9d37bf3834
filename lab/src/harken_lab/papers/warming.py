"""Compiles all kernels of the papers' algorithms, by running a small engine with each of them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from harken import Engine
from harken.matchers.algorithm_registry import ALGORITHMS, algorithm_traits
from harken.matchers.base import Trait

_VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "counting_lists": ({}, {"index": "table"}),
    **dict.fromkeys(("counting_bits", "counting_bytes"), ({}, {"index": "table"}, {"deletion": "matrix"})),
    **dict.fromkeys(("equality_preferred", "quarantine"), ({}, {"threads": 2})),
    "matching_tree": ({}, {"collapse": False}, {"successors": False}, {"successors": "ahead"}, {"factor": 1}),
    "gough": ({}, {"share": False}),
}
"""By algorithm, the options with kernels of their own."""
KERNELS = 224
"""Approximate number of kernels that are compiled if none is cached."""


def warm_up_papers(progress: Callable[[str], None] | None = None) -> int:
    """Compile every kernel of the papers' algorithms that is not cached yet. Returns the number of matches."""
    matches = 0
    for name, target in ALGORITHMS.items():
        if target.startswith("harken_lab.papers."):
            if progress is not None:
                progress(name)
            matches += sum(_exercise(name, options) for options in _VARIANTS.get(name, ({},)))
    return matches


def _exercise(algorithm: str, options: dict[str, Any]) -> int:
    """Fill an engine, match, change it, and match again. Returns the number of matches."""
    draw = Random(2)
    engine = Engine(algorithm=algorithm, **options)
    engine.subscribe_many(
        (f"s{n}", f"category = 'c{n % 7}' AND size <= {draw.randrange(9)}" + (f" AND price > {n % 5}" if n % 2 else ""))
        for n in range(120)
    )
    events = [{"category": f"c{n % 8}", "size": draw.randrange(9), "price": draw.randrange(9)} for n in range(50)]
    matches = sum(engine.match_batch(events).counts) + len(engine.match(events[0]).ids)
    engine.subscribe("new", "size <> 3 AND price BETWEEN 2 AND 4")
    if Trait.UNSUBSCRIBE in algorithm_traits(algorithm):
        for number in range(0, 120, 3):
            engine.unsubscribe(f"s{number}")
    return matches + sum(engine.match_batch(events).counts)
