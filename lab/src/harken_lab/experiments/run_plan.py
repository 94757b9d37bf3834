"""How long experiments take, before they are run."""

from __future__ import annotations

from collections.abc import Iterable

from harken_lab.experiments.definition import ExperimentResult

LAPTOP_MINUTES: dict[str, float] = {
    "topss-predicates": 3,
    "topss-counting": 2,
    "topss-tables": 4,
    "topss-dbms": 8,
    "le-subscribe-sizes": 7,
    "le-subscribe-equality": 3.5,
    "le-subscribe-all-equal": 1.5,
    "le-subscribe-insertion": 2,
    "gryphon-tree": 3.5,
    "xml-stock": 8,
    "xml-nasa": 6,
    "overlap-orders": 3.5,
    "overlap-assumptions": 4,
    "overlap-choosing": 1.5,
    "overlap-optimum": 1,
    "overview": 3,
}
"""Minutes at laptop scale, with all seeds, on two cores: estimates from single sizes and from the times in results."""


def planned_minutes(names: Iterable[str], scale: str, earlier: Iterable[ExperimentResult]) -> dict[str, float | None]:
    """Minutes of each experiment: those of an earlier result of the scale, else the estimate, else None."""
    measured = {each.experiment: each.seconds / 60 for each in earlier if each.scale == scale and each.seconds}
    estimates = LAPTOP_MINUTES if scale == "laptop" else {}
    return {name: measured.get(name, estimates.get(name)) for name in names}
