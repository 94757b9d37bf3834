"""Columns of strings read as timestamps or dates, with the results of `read_timestamp` and `read_date`.

Arrow's casts accept the same texts, except those with a comma, with more than six fractional digits, or in the year 0;
and within one cast, either all texts have a zone or none. Columns that a cast rejects are split and cleaned first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harken.events.cells import Cells, as_integer
from harken.schema.values import FULL_TIMESTAMP, Kind, Value, read_date, read_timestamp

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_READERS: dict[Kind, Callable[[str], Value | None]] = {Kind.TIMESTAMP: read_timestamp, Kind.DATE: read_date}
_MICROSECONDS_A_DAY = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The first and the last day of the years 1 to 9999, as days since 1970."""
_FULL = f"^(?:{FULL_TIMESTAMP})$"
_WITH_ZONE = "(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)$"
"""The end of a full timestamp with a zone."""
_TRIAL = 8
_FEWEST_TO_SPLIT = 512
_FRACTION = "[.,]([0-9]{1,6})[0-9]*"


def read_times(texts: Cells, kind: Kind) -> Cells:
    """The strings that are full timestamps, or dates, as cells of that kind; others are left out."""
    import numpy as np

    values = texts.values
    ticks = _cast(values, kind) if len(values) else np.empty(0, np.int64)
    if ticks is not None:
        return Cells(kind, texts.rows, ticks)
    is_few = kind is Kind.DATE or len(values) < _FEWEST_TO_SPLIT
    ticks, is_read = _one_by_one(values, kind) if is_few else _by_zone(values)
    return Cells(kind, texts.rows[is_read], ticks[is_read])


def _by_zone(values: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Strings as timestamps, and a mask of those that are: texts with a zone in one cast, others in another."""
    import numpy as np
    import pyarrow
    from pyarrow import compute

    ticks = np.zeros(len(values), np.int64)
    is_read = compute.match_substring_regex(values, _FULL).to_numpy(zero_copy_only=False)
    has_zone = compute.match_substring_regex(values, _WITH_ZONE).to_numpy(zero_copy_only=False)
    for part in (is_read & has_zone, is_read & ~has_zone):
        if not part.any():
            continue
        texts = values.filter(pyarrow.array(part))
        cut = compute.replace_substring_regex(texts, _FRACTION, r".\1")
        cast = _cast(cut, Kind.TIMESTAMP)
        if cast is not None:
            ticks[part] = cast
        else:
            ticks[part], is_read[part] = _one_by_one(texts, Kind.TIMESTAMP)
    return ticks, is_read


def _cast(values: Any, kind: Kind) -> NDArray[np.int64] | None:
    """All strings as integers, see `as_integer`; None if no cast accepts them all."""
    import pyarrow

    if kind is Kind.DATE:
        return _within(values, pyarrow.date32(), "int32", 1)
    ticks = _within(values, pyarrow.timestamp("us", "UTC"), "int64", _MICROSECONDS_A_DAY)
    # A cast without zones reads a date as its midnight, so there must be no dates.
    if ticks is None and _are_longer_than_dates(values):
        return _within(values, pyarrow.timestamp("us"), "int64", _MICROSECONDS_A_DAY)
    return ticks


def _are_longer_than_dates(values: Any) -> bool:
    from pyarrow import compute

    return bool(compute.min(compute.binary_length(values)).as_py() > len("2026-01-01"))


def _within(values: Any, type: Any, integers: str, a_day: int) -> NDArray[np.int64] | None:
    """The result of a cast; None if it rejects a string, or one is not certainly of the years 1 to 9999."""
    import numpy as np
    from pyarrow import ArrowInvalid, array

    try:
        if len(values) > _TRIAL:  # try a few first, because a cast that rejects many strings is slow
            values.take(array(np.linspace(0, len(values) - 1, _TRIAL).astype(np.int64))).cast(type)
        ticks: NDArray[np.int64] = values.cast(type).view(integers).to_numpy().astype(np.int64)
    except ArrowInvalid:
        return None
    # In its own zone, a time on the first day of year 1 may be in year 0.
    is_within = ticks.min() >= (_FIRST_DAY + 1) * a_day and ticks.max() < (_LAST_DAY + 1) * a_day
    return ticks if is_within else None


def _one_by_one(values: Any, kind: Kind) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    import numpy as np

    read = _READERS[kind]
    times = [read(text) for text in values.to_pylist()]
    ticks = np.array([0 if value is None else as_integer(kind, value) for value in times], np.int64)
    return ticks, np.array([value is not None for value in times], np.bool_)
