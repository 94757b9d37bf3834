"""The result of the grid: cells with the times of all contestants, and whether each meets its target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from harken_lab.bench.grid_cells import Cell
from harken_lab.harness.result_files import read_as, to_json

FORMAT = 1
WHAT = "grid"
_OTHERWISE, _HINT = "is not the result of a grid", "`harken bench --grid --output FILE` writes one"


class Spread(NamedTuple):
    """µs of processor time an event: the median of the rounds, the least and the most."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(*(float(f"{each:.4g}") for each in (median(values), min(values), max(values))))


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """A cell with the times of its contestants."""

    cell: Cell
    events: int
    """Events a call: fewer than the cell's if they would take too long."""
    matches: float
    """Matches of an event, on average."""
    harken: Spread
    closures: Spread
    closures_run: int
    """How many closures ran. If these are fewer than the subscriptions, `closures` is scaled to all of them."""
    scan: Spread | None
    """None if `scan` was not measured."""
    expected: float | None
    """µs an event that the plan of the index expects, if it has an estimate."""
    inside: float
    """µs an event of encoding and matching, without decoding and ids: comparable with `expected`."""

    @property
    def ratio(self) -> float:
        """Harken's time as a multiple of the loop's."""
        return self.harken.median / self.closures.median

    @property
    def scan_ratio(self) -> float | None:
        return None if self.scan is None else self.harken.median / self.scan.median

    @property
    def meets_target(self) -> bool:
        return self.cell.meets_target(self.harken.median, self.closures.median)

    def to_dict(self) -> dict[str, Any]:
        scan = None if self.scan is None else self.scan._asdict()
        return {
            **self.cell._asdict(),
            "events": self.events,
            "matches": float(f"{self.matches:.4g}"),
            "harken": self.harken._asdict(),
            "closures": self.closures._asdict(),
            "closures_run": self.closures_run,
            "scan": scan,
            "expected": None if self.expected is None else float(f"{self.expected:.4g}"),
            "inside": float(f"{self.inside:.4g}"),
            "ratio": float(f"{self.ratio:.4g}"),
            "floor": self.cell.target(),
            "holds": self.meets_target,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MeasuredCell:
        return cls(
            Cell(*(data[name] for name in Cell._fields)),
            data["events"],
            data["matches"],
            Spread(**data["harken"]),
            Spread(**data["closures"]),
            data["closures_run"],
            None if data["scan"] is None else Spread(**data["scan"]),
            data["expected"],
            data["inside"],
        )


@dataclass(slots=True)
class GridResult:
    """All cells, and those that could not be measured, with the reason."""

    settings: dict[str, Any]
    environment: dict[str, Any]
    cells: list[MeasuredCell] = field(default_factory=list)
    not_measured: list[dict[str, Any]] = field(default_factory=list)

    @property
    def missed(self) -> list[MeasuredCell]:
        """The cells that miss their target."""
        return [each for each in self.cells if not each.meets_target]

    def to_json(self) -> str:
        return to_json(
            {
                "format": FORMAT,
                "what": WHAT,
                "unit": "µs of processor time an event",
                "settings": self.settings,
                "environment": self.environment,
                "cells": [each.to_dict() for each in self.cells],
                "not_measured": self.not_measured,
            }
        )


def read_grid(path: str | Path) -> GridResult:
    """Read a saved result. Raises SourceError if the file is none."""

    def result(data: Any) -> GridResult:
        if (data["format"], data["what"]) != (FORMAT, WHAT):
            raise ValueError(f"format {data['format']!r}")
        cells = [MeasuredCell.from_dict(each) for each in data["cells"]]
        return GridResult(data["settings"], data["environment"], cells, data["not_measured"])

    return read_as(path, result, _OTHERWISE, _HINT)
