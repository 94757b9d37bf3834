"""Strings that are timestamps or dates, read in columns: what `read_timestamp` and `read_date` give for single ones.

Arrow's casts read the same texts, but for those with more digits than microseconds have or with a comma, and for the
year 0; and all texts of one cast have a zone, or none has. Whatever a cast refuses is sorted first.
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
"""The first and the last day of the years 1 to 9999, counted from 1970."""
_FULL = f"^(?:{FULL_TIMESTAMP})$"
_WITH_ZONE = "(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)$"
"""How a full timestamp with a zone ends."""
_FEW = 8
_WORTH_SORTING = 512
_FRACTION = "[.,]([0-9]{1,6})[0-9]*"


def read_times(texts: Cells, kind: Kind) -> Cells:
    """The strings among cells that are full timestamps, or dates, as such; others are left out."""
    import numpy as np

    values = texts.values
    ticks = _cast(values, kind) if len(values) else np.empty(0, np.int64)
    if ticks is not None:
        return Cells(kind, texts.rows, ticks)
    is_few = kind is Kind.DATE or len(values) < _WORTH_SORTING
    ticks, is_read = _one_by_one(values, kind) if is_few else _sorted(values)
    return Cells(kind, texts.rows[is_read], ticks[is_read])


def _sorted(values: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Strings as timestamps, where they are such: those with a zone by one cast, others by another."""
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
        found = _cast(cut, Kind.TIMESTAMP)
        if found is not None:
            ticks[part] = found
        else:
            ticks[part], is_read[part] = _one_by_one(texts, Kind.TIMESTAMP)
    return ticks, is_read


def _cast(values: Any, kind: Kind) -> NDArray[np.int64] | None:
    """All of some strings as integers, see `as_integer`; None if a cast does not tell."""
    import pyarrow

    if kind is Kind.DATE:
        return _within(values, pyarrow.date32(), "int32", 1)
    found = _within(values, pyarrow.timestamp("us", "UTC"), "int64", _MICROSECONDS_A_DAY)
    # Without a zone a cast takes a date for its midnight: those are left out.
    if found is None and _are_longer_than_dates(values):
        return _within(values, pyarrow.timestamp("us"), "int64", _MICROSECONDS_A_DAY)
    return found


def _are_longer_than_dates(values: Any) -> bool:
    from pyarrow import compute

    return bool(compute.min(compute.binary_length(values)).as_py() > len("2026-01-01"))


def _within(values: Any, type: Any, integers: str, a_day: int) -> NDArray[np.int64] | None:
    """What a cast makes of strings; None if it refuses one, or one is not surely of the years 1 to 9999."""
    import numpy as np
    from pyarrow import ArrowInvalid, array

    try:
        if (
            len(values) > _FEW
        ):  # a cast reports all that it refuses, which takes long: a few tell that it is not for these
            values.take(array(np.linspace(0, len(values) - 1, _FEW).astype(np.int64))).cast(type)
        found: NDArray[np.int64] = values.cast(type).view(integers).to_numpy().astype(np.int64)
    except ArrowInvalid:
        return None
    # Some of the first day of year 1 are of year 0 in their own zone.
    is_within = found.min() >= (_FIRST_DAY + 1) * a_day and found.max() < (_LAST_DAY + 1) * a_day
    return found if is_within else None


def _one_by_one(values: Any, kind: Kind) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    import numpy as np

    read = _READERS[kind]
    found = [read(text) for text in values.to_pylist()]
    ticks = np.array([0 if value is None else as_integer(kind, value) for value in found], np.int64)
    return ticks, np.array([value is not None for value in found], np.bool_)
