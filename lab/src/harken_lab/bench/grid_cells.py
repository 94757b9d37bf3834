"""The grid: which cells are measured, and what each of them has to hold against a loop of closures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

FRESH, RELOADED, DELETED = "fresh", "reloaded", "deleted"
STATES = (FRESH, RELOADED, DELETED)
"""Freshly subscribed; saved and loaded again; after one subscription in a hundred left."""
DICTS, JSON, ARROW = "dicts", "JSON", "Arrow"
IDS, NUMBERS = "ids", "numbers"

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
FEWER = SIZES[:-1]
"""For what is loaded from texts alone, for the time that it takes."""
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
    "detections": tuple(sorted({*FEWER, 3_500})),  # as many as the rules that it is shaped after
}
"""The workloads, with how many subscriptions they are measured."""

QUICK_SIZES = (10, 1_000, 10_000)


class Way(NamedTuple):
    """How an engine is called: so many events a call, as what they come, what is asked for, and in which states."""

    call: int
    given: str
    wanted: str
    states: tuple[str, ...] = (FRESH,)
    is_quick: bool = True
    """Whether it is part of the quick grid, in its first state."""


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
    """One point of the grid."""

    shape: str
    size: int
    state: str
    call: int
    given: str
    wanted: str

    @property
    def way(self) -> str:
        """All but the shape and the size, in a few words."""
        return f"{self.call:,} {self.given} → {self.wanted}, {self.state}"

    def __str__(self) -> str:
        return f"{self.shape} {self.size:,}: {self.way}"

    def floor(self) -> str:
        """What has to hold, in words."""
        if self.call == 1:
            return "no slower than closures" if self.size >= 1_000 else "at most 40 µs above closures"
        return "no slower than closures" if self.size >= 100 else "at most twice closures"

    def holds(self, harken: float, closures: float) -> bool:
        """Whether these µs an event hold the floor."""
        if self.call == 1:
            return harken <= closures if self.size >= 1_000 else harken <= closures + 40
        return harken <= closures * (1 if self.size >= 100 else 2)


def cells(shapes: Sequence[str] = tuple(SHAPES), sizes: Sequence[int] = (), quick: bool = False) -> Iterator[Cell]:
    """The committed selection, for these shapes and, unless they are the usual ones, sizes; in order of measuring."""
    for shape in shapes:
        for size in sizes or (QUICK_SIZES if quick else SHAPES[shape]):
            for state in STATES:
                for way in WAYS:
                    if state in (way.states[:1] if quick else way.states) and (way.is_quick or not quick):
                        yield Cell(shape, size, state, way.call, way.given, way.wanted)
