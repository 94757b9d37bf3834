"""The grid: which cells are measured, and the target of each, relative to a loop of closures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

FRESH, RELOADED, DELETED = "fresh", "reloaded", "deleted"
STATES = (FRESH, RELOADED, DELETED)
"""Freshly subscribed; saved and loaded; after one subscription in a hundred was deleted."""
DICTS, JSON, ARROW = "dicts", "JSON", "Arrow"
IDS, NUMBERS = "ids", "numbers"

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
FEWER = SIZES[:-1]
"""For workloads that have only texts, which take long to load."""
SHAPES: dict[str, tuple[int, ...]] = {
    "w4": SIZES,
    "le-subscribe": SIZES,
    "stock": SIZES,
    "gryphon": SIZES,
    "orders": SIZES,
    "ranges": SIZES,
    "attributes-many": SIZES,
    "disjunctive": FEWER,
    "text": FEWER,
    "detections": tuple(sorted({*FEWER, 3_500})),  # the number of rules in the rule set that it imitates
}
"""The numbers of subscriptions that each workload is measured with."""

QUICK_SIZES = (10, 1_000, 10_000)


class Way(NamedTuple):
    """How an engine is called: events a call, the form of the events, what is returned, and in which states."""

    call: int
    given: str
    wanted: str
    states: tuple[str, ...] = (FRESH,)
    is_quick: bool = True
    """Whether the quick grid measures this way, in its first state."""


WAYS = (
    Way(1, DICTS, IDS, (FRESH, RELOADED, DELETED)),
    Way(1, JSON, IDS, (FRESH,), is_quick=False),
    Way(100, DICTS, IDS, (FRESH, DELETED)),
    Way(100, JSON, IDS, (RELOADED,), is_quick=False),
    Way(100, ARROW, NUMBERS, (RELOADED,), is_quick=False),
    Way(10_000, DICTS, IDS, (RELOADED,)),
    Way(10_000, JSON, IDS, (FRESH,)),
    Way(10_000, ARROW, NUMBERS, (FRESH, DELETED)),
    Way(10_000, ARROW, IDS, (FRESH,), is_quick=False),
)


class Cell(NamedTuple):
    """One point of the grid. `given` is the form of the events, `wanted` what the call returns."""

    shape: str
    size: int
    state: str
    call: int
    given: str
    wanted: str

    @property
    def way(self) -> str:
        """The call in a few words, without the shape and the size."""
        return f"{self.call:,} {self.given} → {self.wanted}, {self.state}"

    def __str__(self) -> str:
        return f"{self.shape} {self.size:,}: {self.way}"

    def target(self) -> str:
        """The most that Harken may take, in words."""
        if self.call == 1:
            return "no slower than closures" if self.size >= 1_000 else "at most 40 µs above closures"
        return "no slower than closures" if self.size >= 100 else "at most twice closures"

    def meets_target(self, harken: float, closures: float) -> bool:
        """Whether these times, in µs an event, meet the target."""
        if self.call == 1:
            return harken <= closures if self.size >= 1_000 else harken <= closures + 40
        return harken <= closures * (1 if self.size >= 100 else 2)


def cells(shapes: Sequence[str] = tuple(SHAPES), sizes: Sequence[int] = (), quick: bool = False) -> Iterator[Cell]:
    """The selected cells in order of measuring. `sizes` replaces the sizes of each shape."""
    for shape in shapes:
        for size in sizes or (QUICK_SIZES if quick else SHAPES[shape]):
            for state in STATES:
                for way in WAYS:
                    if state in (way.states[:1] if quick else way.states) and (way.is_quick or not quick):
                        yield Cell(shape, size, state, way.call, way.given, way.wanted)
