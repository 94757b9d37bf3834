"""Rows of several seeds joined into one for each contestant and size, with the median and spread of each figure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from harken_lab.experiments.figure_rows import TIME, Row
from harken_lab.experiments.spreads import ROUNDS

_ENDS = {"least_us": min, "most_us": max}


def merged(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """The rows of several seeds as one for each place. Every run has the same contestants in the same order."""
    if len(runs) == 1:
        return list(runs[0])
    return [_merged(rows) for rows in zip(*runs, strict=True)]


def _merged(rows: Sequence[Row]) -> Row:
    """One row of the same contestant at the same size. A seed for which it was rejected does not count."""
    measured = [row for row in rows if "rejected" not in row] or list(rows[:1])
    first = measured[0]
    if any((row["entrant"], row["subscriptions"]) != (first["entrant"], first["subscriptions"]) for row in rows):
        raise ValueError(f"another seed has another row in place of {first['entrant']}")
    rounds = {name: [each for row in measured for each in row[ROUNDS][name]] for name in first.get(ROUNDS, {})}
    figures = {name: [row[name] for row in measured] for name in first if _differs(measured, name)}
    for name, values in figures.items():
        if name not in _ENDS:
            rounds.setdefault(name, values)
    middles = {name: _ENDS.get(name, median)(rounds[name] if name == TIME else figures[name]) for name in figures}
    return first | middles | ({ROUNDS: rounds} if rounds else {})


def _differs(rows: Sequence[Row], name: str) -> bool:
    """Whether a field is a number that is not the same with all seeds."""
    values: list[Any] = [row.get(name) for row in rows]
    return all(isinstance(each, int | float) for each in values) and len(set(values)) > 1
