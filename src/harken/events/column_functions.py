"""Scalar functions on columns: cells in, cells out. schema/scalar_functions.py has them for single values.

An event has at most one value here. Values for which a function is undefined have no cell in its result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from harken.events.cells import Cells, cells_by_kind, embedded
from harken.events.times_in_text import read_times
from harken.schema.derived import READ_AS
from harken.schema.scalar_functions import SCALAR, address, order_of
from harken.schema.values import INT64_MAX, INT64_MIN, Kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SURELY_FITS = 2.0**62
_SURELY_NOT = 2.0**64


# Cells


def selected(cells: Cells, kept: Any) -> Cells:
    """The cells that a mask or an array of positions selects."""
    import pyarrow

    if kept.dtype == bool and kept.all():
        return cells
    values = cells.values
    if cells.kind is Kind.STRING:
        chosen = values.filter(pyarrow.array(kept)) if kept.dtype == bool else values.take(pyarrow.array(kept))
        return Cells(cells.kind, cells.rows[kept], chosen)
    return Cells(cells.kind, cells.rows[kept], values[kept], None if cells.part is None else cells.part[kept])


def joined(several: list[Cells]) -> Cells:
    """Concatenate cells of one kind, in the order of their events."""
    import numpy as np
    import pyarrow

    several = [each for each in several if len(each.rows)] or several[:1]
    if len(several) == 1:
        return several[0]
    kind = several[0].kind
    rows = np.concatenate([each.rows for each in several])
    order = np.argsort(rows, kind="stable")
    if kind is Kind.STRING:
        values = pyarrow.concat_arrays([each.values.cast("large_string") for each in several])
        return Cells(kind, rows[order], values.take(pyarrow.array(order)))
    whole = np.concatenate([each.values for each in several])[order]
    if all(each.part is None for each in several):
        return Cells(kind, rows[order], whole)
    parts = np.concatenate([_parts(each) for each in several])
    return Cells(kind, rows[order], whole, parts[order])


def repeated(value: Any, rows: NDArray[np.int32]) -> dict[Kind, Cells]:
    """The same value for each of the rows; no cells for None."""
    import numpy as np
    import pyarrow

    if value is None:
        return {}
    (one,) = cells_by_kind(np.zeros(1, np.int32), [value], {type(value)})
    if one.kind is Kind.STRING:
        return {one.kind: Cells(one.kind, rows, pyarrow.repeat(pyarrow.scalar(value, "large_string"), len(rows)))}
    part = None if one.part is None else np.repeat(one.part, len(rows))
    return {one.kind: Cells(one.kind, rows, np.repeat(one.values, len(rows)), part)}


def aligned(left: Cells, right: Cells) -> tuple[Cells, Cells]:
    """Both, restricted to events that have a value in both."""
    import numpy as np

    if len(left.rows) == len(right.rows) and (left.rows is right.rows or np.array_equal(left.rows, right.rows)):
        return left, right
    _, mine, theirs = np.intersect1d(left.rows, right.rows, assume_unique=True, return_indices=True)
    return selected(left, mine), selected(right, theirs)


def _parts(cells: Cells) -> NDArray[np.float64]:
    import numpy as np

    return np.zeros(len(cells.rows)) if cells.part is None else cells.part


def _floats(cells: Cells) -> NDArray[np.float64]:
    """The nearest floats. A float outside the range of int64 is wholly in `part`."""
    import numpy as np

    if cells.part is None:
        return np.asarray(cells.values).astype(np.float64)
    return np.where(np.abs(cells.part) >= 1, cells.part, cells.values + cells.part)


def _one_by_one(cells: Cells, function: Callable[..., Any], kind: Kind, *more: Any) -> Cells:
    """Apply a Python function to every value, leaving out None."""
    import numpy as np

    values = values_of(cells)
    results = [function(value, *more) for value in values]
    kept = np.array([value is not None for value in results], np.bool_)
    present = [value for value in results if value is not None]
    made = list(cells_by_kind(cells.rows[kept], present, set(map(type, present))))
    return made[0] if made else _nothing(kind)


def _nothing(kind: Kind) -> Cells:
    import numpy as np
    import pyarrow

    empty: Any = pyarrow.array([], "large_string") if kind is Kind.STRING else np.empty(0, np.int64)
    return Cells(kind, np.empty(0, np.int32), empty)


def values_of(cells: Cells) -> list[Any]:
    """The values as Python objects; whole numbers are integers."""
    if cells.kind is Kind.STRING:
        texts: list[Any] = cells.values.to_pylist()
        return texts
    whole: list[Any] = cells.values.tolist()
    if cells.kind is not Kind.NUMBER or cells.part is None:
        return whole
    floats = _floats(cells).tolist()
    return [floats[place] if part else whole[place] for place, part in enumerate(cells.part.tolist())]


# Numbers


def calculated(operator: str, left: Cells, right: Cells) -> Cells:
    """Arithmetic: exact on 64-bit integers, binary64 otherwise. Results that overflow are left out."""
    import numpy as np

    is_exact = operator != "/"
    rows = left.rows
    if left.part is None and right.part is None:
        exact = np.full(len(rows), is_exact)
    else:
        exact = (_parts(left) == 0) & (_parts(right) == 0) & is_exact
    mine, theirs = np.asarray(left.values), np.asarray(right.values)
    if is_exact and exact.all():
        whole, fits = _OF_INTEGERS[operator](mine, theirs)
        return Cells(Kind.NUMBER, rows, whole) if fits.all() else Cells(Kind.NUMBER, rows[fits], whole[fits])
    with np.errstate(all="ignore"):
        floats = _OF_FLOATS[operator](_floats(left), _floats(right))
    is_known = np.isfinite(floats) & ~exact
    kept = is_known
    values, part = embedded(np.where(is_known, floats, 0.0))
    if exact.any():
        whole, fits = _OF_INTEGERS[operator](mine, theirs)
        values = np.where(exact, whole, values)
        kept = is_known | (exact & fits)
    if part is not None:
        part = np.where(exact, 0.0, part)
    return Cells(Kind.NUMBER, rows[kept], values[kept], None if part is None else part[kept])


_Calculated = tuple[Any, Any]


def _added(left: Any, right: Any) -> _Calculated:
    total = left + right
    return total, ((left ^ total) & (right ^ total)) >= 0


def _subtracted(left: Any, right: Any) -> _Calculated:
    difference = left - right
    return difference, ((left ^ right) & (left ^ difference)) >= 0


def _multiplied(left: Any, right: Any) -> _Calculated:
    import numpy as np

    with np.errstate(over="ignore"):
        product = left * right
    size = np.abs(left.astype(np.float64) * right.astype(np.float64))
    fits = size < _SURELY_FITS
    for place in np.flatnonzero(~fits & (size < _SURELY_NOT)).tolist():
        fits[place] = INT64_MIN <= int(left[place]) * int(right[place]) <= INT64_MAX
    return product, fits


def _remainder(left: Any, right: Any) -> _Calculated:
    import numpy as np

    # A remainder by -1 is 0; computing it would overflow for the least integer.
    return np.fmod(left, np.where((right == 0) | (right == -1), 1, right)), right != 0


def _divided(left: Any, right: Any) -> Any:
    import numpy as np

    return np.where(right == 0, np.nan, left / right)


def _float_remainder(left: Any, right: Any) -> Any:
    import numpy as np

    return np.where(right == 0, np.nan, np.fmod(left, right))


_OF_INTEGERS: dict[str, Callable[[Any, Any], _Calculated]] = {
    "+": _added,
    "-": _subtracted,
    "*": _multiplied,
    "%": _remainder,
}
_OF_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divided,
    "%": _float_remainder,
}


def _absolute(cells: Cells) -> Cells:
    import numpy as np

    part = None if cells.part is None else np.abs(cells.part)
    is_least = cells.values == INT64_MIN
    absolute = Cells(Kind.NUMBER, cells.rows, np.where(is_least, INT64_MAX, np.abs(cells.values)), part)
    # A float outside the range of int64 is wholly in `part`.
    fits = ~is_least if part is None else np.isfinite(part) & ~(is_least & (part == 0))
    return selected(absolute, fits)


def _stepped(step: Callable[[Any], Any]) -> Callable[[Cells], Cells]:
    """A function that rounds numbers to integers; `step` gives what to add to the integer part, by the rest."""

    def integral(cells: Cells) -> Cells:
        import numpy as np

        if cells.part is None:
            return cells
        inside = selected(cells, np.abs(cells.part) < 1)
        return Cells(Kind.NUMBER, inside.rows, inside.values + step(_parts(inside)).astype(np.int64))

    return integral


def _rounded(cells: Cells, digits: int = 0) -> Cells:
    import numpy as np

    if cells.part is None and digits >= 0:
        return cells
    if digits == 0 and bool((np.abs(_parts(cells)) < 1).all()):
        # The part is exact, and so is the nearest integer.
        return _stepped(lambda part: np.sign(part) * (np.abs(part) >= 0.5))(cells)
    return _one_by_one(cells, SCALAR["round"], Kind.NUMBER, digits)


# Strings


def _is_ascii(strings: Any) -> bool:
    import numpy as np

    _, offsets, data = strings.buffers()
    if data is None or not len(strings):
        return True
    width = np.int64 if strings.type == "large_string" else np.int32
    ends = np.frombuffer(offsets, width)[[strings.offset, strings.offset + len(strings)]]
    text = np.frombuffer(data, np.uint8)[ends[0] : ends[1]]
    return not len(text) or int(text.max()) < 128


def _cased(name: str) -> Callable[[Cells], Cells]:
    """`lower` or `upper`. Arrow maps single characters, which is right for ASCII only."""

    def cased(cells: Cells) -> Cells:
        from pyarrow import compute

        if _is_ascii(cells.values):
            return Cells(Kind.STRING, cells.rows, getattr(compute, f"ascii_{name}")(cells.values))
        return _one_by_one(cells, SCALAR[name], Kind.STRING)

    return cased


def _trimmed(cells: Cells) -> Cells:
    from pyarrow import compute

    return Cells(Kind.STRING, cells.rows, compute.utf8_trim(cells.values, characters=" "))


def _length(cells: Cells) -> Cells:
    import numpy as np
    from pyarrow import compute

    return Cells(Kind.NUMBER, cells.rows, compute.utf8_length(cells.values).to_numpy().astype(np.int64))


def _substring(cells: Cells, position: int, length: int | None = None) -> Cells:
    from pyarrow import compute

    if position < 0:  # counts from the end of each string
        return _one_by_one(cells, SCALAR["substring"], Kind.STRING, position, length)
    start = max(position - 1, 0)
    stop = None if length is None else start + length
    return Cells(Kind.STRING, cells.rows, compute.utf8_slice_codeunits(cells.values, start, stop))


def _address(cells: Cells) -> Cells:
    return _one_by_one(cells, address, Kind.STRING)


def _in_network(cells: Cells, net: str) -> Cells:
    return _one_by_one(cells, lambda text: SCALAR["cidr_contains"](net, text), Kind.BOOLEAN)


# Times


def _part_of(name: str, *, of_dates: bool) -> Callable[[Cells], Cells]:
    """A part of a date or of a timestamp, in UTC."""

    def part(cells: Cells) -> Cells:
        import numpy as np
        from pyarrow import array, compute, date32, timestamp

        if of_dates:
            times = array(cells.values.astype(np.int32)).view(date32())
        else:
            times = array(cells.values).view(timestamp("us"))
        if name == "dayofweek":
            parts = compute.day_of_week(times, count_from_zero=False, week_start=7)
        else:
            parts = getattr(compute, name)(times)
        return Cells(Kind.NUMBER, cells.rows, parts.to_numpy().astype(np.int64))

    return part


def _as_it_is(cells: Cells) -> Cells:
    return cells


# Comparisons


def compared(left: Cells, right: Cells, order: Any) -> Cells:
    """-1, 0 or 1: how `left` compares with `right`. Both are of one kind and the same events."""
    import numpy as np
    from pyarrow import compute

    if order is not None:
        if left.kind is not Kind.STRING:
            return _nothing(Kind.NUMBER)
        in_order = order_of(tuple(order["values"]), tuple(map(tuple, order["below"])))
        pairs = Cells(Kind.NUMBER, left.rows, np.arange(len(left.rows)))
        mine, theirs = left.values.to_pylist(), right.values.to_pylist()
        return _one_by_one(pairs, lambda place: in_order(mine[place], theirs[place]), Kind.NUMBER)
    if left.kind is Kind.STRING:
        first, second = left.values.cast("large_string"), right.values.cast("large_string")
        # Arrow compares bytes of UTF-8, which is the order of code points.
        more, less = compute.greater(first, second), compute.less(first, second)
        signs = _difference(more.to_numpy(zero_copy_only=False), less.to_numpy(zero_copy_only=False))
        return Cells(Kind.NUMBER, left.rows, signs)
    signs = _difference(left.values > right.values, left.values < right.values)
    if left.part is not None or right.part is not None:
        left_parts, right_parts = _parts(left), _parts(right)
        signs = np.where(signs == 0, _difference(left_parts > right_parts, left_parts < right_parts), signs)
    return Cells(Kind.NUMBER, left.rows, signs)


def _difference(is_more: NDArray[np.bool_], is_less: NDArray[np.bool_]) -> NDArray[np.int64]:
    import numpy as np

    signs: NDArray[np.int64] = is_more.astype(np.int64) - is_less
    return signs


def _floor(part: Any) -> Any:
    import numpy as np

    return np.where(part < 0, -1, 0)


def _ceiling(part: Any) -> Any:
    import numpy as np

    return np.where(part > 0, 1, 0)


OF_KIND: dict[tuple[str, Kind], Callable[..., Cells]] = {
    ("lower", Kind.STRING): _cased("lower"),
    ("upper", Kind.STRING): _cased("upper"),
    ("trim", Kind.STRING): _trimmed,
    ("length", Kind.STRING): _length,
    ("substring", Kind.STRING): _substring,
    ("address", Kind.STRING): _address,
    ("cidr_contains", Kind.STRING): _in_network,
    ("abs", Kind.NUMBER): _absolute,
    ("round", Kind.NUMBER): _rounded,
    ("floor", Kind.NUMBER): _stepped(_floor),
    ("ceil", Kind.NUMBER): _stepped(_ceiling),
    **{(str(kind), kind): _as_it_is for kind in READ_AS},
    **{(str(kind), Kind.STRING): partial(read_times, kind=kind) for kind in READ_AS},
    ("hour", Kind.TIMESTAMP): _part_of("hour", of_dates=False),
    **{
        (name, kind): _part_of(name, of_dates=kind is Kind.DATE)
        for name in ("year", "month", "day", "dayofweek")
        for kind in (Kind.DATE, Kind.TIMESTAMP)
    },
}
"""Functions by name and kind of the argument. Values of other kinds give no result."""
