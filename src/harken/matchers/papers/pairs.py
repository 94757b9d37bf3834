"""Comparisons of two attributes as predicates on a column of their own, which needs no verification.

For two paths there is a column that tells how the value at the first compares with that at the second: -1, 0 or 1, and
nothing where that is unknown. So `a < b` is `< 0` on it, and what can be done with any other predicate can be done with
this one. Where a domain brings its own order, a comparison stays what it was: a residual, to be verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.codes.encode import EncodedBatch
from harken.events import EventBatch
from harken.events.cells import Cells, PathCells
from harken.language.intervals import COMPARISONS
from harken.language.normal_form import Conjunction, Constraint, NormalForm, Residual, ValueSet, intersection
from harken.language.residuals import ComparisonResidual
from harken.matchers.papers.labelled_rows import LabelledRows
from harken.schema import CodedDomain, Kind, format_path
from harken.schema.paths import Path

_Number = TypeVar("_Number", np.int64, np.float64)

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ANY_ORDER = np.array([-1, 0, 1])


class Pair(NamedTuple):
    """Two attributes that are compared, in the order of their paths."""

    left: Path
    right: Path

    @property
    def path(self) -> Path:
        """Where its column stands: at a path that no attribute has, because no name has an empty key."""
        return f"{format_path(self.left)} <=> {format_path(self.right)}", ""


Pairs = dict[Path, Pair]
"""Pairs by the paths of their columns."""


class PairedRows(LabelledRows):
    """Rows some columns of which are pairs."""

    def __init__(self, pairs: Pairs) -> None:
        super().__init__()
        self._pairs = pairs

    def encode(self, batch: EventBatch) -> EncodedBatch:
        return super().encode(_PairedBatch(batch.views, batch.positions, pairs=self._pairs) if self._pairs else batch)


def with_pairs(form: NormalForm, pairs: Pairs) -> NormalForm:
    """The form with constraints on pairs in place of residual comparisons. New pairs are added to those known."""
    if not any(conjunction.residuals for conjunction in form.conjunctions):
        return form
    return NormalForm(tuple(_with_pairs(conjunction, pairs) for conjunction in form.conjunctions))


def _with_pairs(conjunction: Conjunction, pairs: Pairs) -> Conjunction:
    found: dict[Pair, Constraint] = {}
    others: list[Residual] = []
    for residual in conjunction.residuals:
        compared = _compared(residual)
        if compared is None:
            others.append(residual)
            continue
        pair, constraint = compared
        both = intersection(found.get(pair, constraint), constraint)
        if both is None:
            return conjunction  # it can never be true, which verification will find
        found[pair] = both
    pairs.update((pair.path, pair) for pair in found)
    added = ((pair.path, constraint) for pair, constraint in found.items())
    return Conjunction((*conjunction.constraints, *added), tuple(others))


def _compared(residual: Residual) -> tuple[Pair, Constraint] | None:
    """The pair that a residual predicate compares, and what their comparison has to be; None if it is no such."""
    if not isinstance(residual, ComparisonResidual):
        return None
    first, operator, second = residual.left, residual.operator, residual.right
    if isinstance(residual.domain, CodedDomain) and operator not in ("=", "<>"):
        return None
    if residual.negated:
        operator = _NEGATED[operator]
    if first > second:
        first, second, operator = second, first, _MIRRORED[operator]
    return Pair(first, second), ValueSet(((Kind.NUMBER, COMPARISONS[operator](0)),))


@dataclass(frozen=True, slots=True, eq=False)
class _PairedBatch(EventBatch):
    """A batch that has values at the paths of pairs too."""

    pairs: Mapping[Path, Pair] = field(default_factory=dict)

    def cells(self, path: Path) -> PathCells:
        pair = self.pairs.get(path)
        if pair is None:
            return EventBatch.cells(self, path)
        return compare_cells(EventBatch.cells(self, pair.left), EventBatch.cells(self, pair.right))


def compare_cells(left: PathCells, right: PathCells) -> PathCells:
    """How the values at one path compare with those at another, event by event.

    An event with several values at one of them is given all three answers: its bindings are looked at one by one later.
    """
    events = len(left.present)
    of_left, of_right = _counted(left, events), _counted(right, events)
    is_single = (of_left == 1) & (of_right == 1)
    open_events = np.flatnonzero((of_left > 0) & (of_right > 0) & ~is_single)
    rows: list[NDArray[np.integer]] = [np.repeat(open_events, 3)]
    values = [np.tile(_ANY_ORDER, len(open_events))]
    for first in left.cells:
        for second in right.cells:
            if first.kind is second.kind:
                mine, theirs = np.flatnonzero(is_single[first.rows]), np.flatnonzero(is_single[second.rows])
                common, in_mine, in_theirs = np.intersect1d(
                    first.rows[mine], second.rows[theirs], assume_unique=True, return_indices=True
                )
                rows.append(common)
                values.append(_order(first, mine[in_mine], second, theirs[in_theirs]))
    joined = np.concatenate(rows)
    order = np.argsort(joined, kind="stable")
    present = np.zeros(events, np.bool_)
    present[joined] = True
    return PathCells((Cells(Kind.NUMBER, joined[order].astype(np.int32), np.concatenate(values)[order]),), present)


def _counted(found: PathCells, events: int) -> NDArray[np.int64]:
    """How many values each event has."""
    counts = np.zeros(events, np.int64)
    for cells in found.cells:
        counts += np.bincount(cells.rows, minlength=events)
    return counts


def _order(left: Cells, mine: NDArray[np.int64], right: Cells, theirs: NDArray[np.int64]) -> NDArray[np.int64]:
    """-1, 0 or 1 for the values at some places on the left against those at as many on the right, of one kind."""
    if left.kind is Kind.STRING:
        first = left.values.take(pa.array(mine)).cast(pa.large_string())
        second = right.values.take(pa.array(theirs)).cast(pa.large_string())
        # Arrow compares the bytes of UTF-8, which have the order of code points.
        more, less = pc.greater(first, second), pc.less(first, second)
        return _difference(more.to_numpy(zero_copy_only=False), less.to_numpy(zero_copy_only=False))
    found = _sign(left.values[mine], right.values[theirs])
    if left.part is not None or right.part is not None:
        rest = _sign(_parts(left, mine), _parts(right, theirs))
        found = np.where(found == 0, rest, found)
    return found


def _sign(left: NDArray[_Number], right: NDArray[_Number]) -> NDArray[np.int64]:
    return _difference(left > right, left < right)


def _difference(is_more: NDArray[np.bool_], is_less: NDArray[np.bool_]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = is_more.astype(np.int64) - is_less
    return found


def _parts(cells: Cells, places: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.zeros(len(places)) if cells.part is None else cells.part[places]
