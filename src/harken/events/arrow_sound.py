"""Whether all rows of an Arrow table are valid events, decided from its columns.

The tests are fast and conservative. If one fails, the rows are read one by one, which rejects the bad ones only.
"""

from __future__ import annotations

from datetime import date
from math import inf
from typing import TYPE_CHECKING, Any

from harken.events.arrow_columns import LISTS, STRINGS, TICKS_A_DAY, column_chunks, is_one_of, plain, values_at
from harken.limits import Limits
from harken.schema.coded import CodedDomain
from harken.schema.domains import Domain, IntegerDomain
from harken.schema.values import INT64_MAX, INT64_MIN, Kind

if TYPE_CHECKING:
    from harken.schema import Schema

_FIRST_DAY = date.min.toordinal() - date(1970, 1, 1).toordinal()
_LAST_DAY = date.max.toordinal() - date(1970, 1, 1).toordinal()
_ALWAYS_SOUND = (*STRINGS, "is_floating", "is_boolean", "is_null")
_TYPES_OF_KINDS = {
    Kind.NUMBER: ("is_integer", "is_floating"),
    Kind.STRING: STRINGS,
    Kind.BOOLEAN: ("is_boolean",),
    Kind.TIMESTAMP: ("is_timestamp",),
    Kind.DATE: ("is_date",),
}


def are_sound(table: Any, schema: Schema | None, limits: Limits) -> bool:
    """Whether every row is certainly a valid event with exactly the values of its cells."""
    from pyarrow import ArrowException

    try:
        table.validate(full=True)  # also checks that strings are UTF-8
        max_values = table.num_columns + sum(
            max(map(_max_values, column.chunks), default=0) for column in table.columns
        )
        return max_values <= limits.max_event_values and (schema is None or _conforms(table, schema))
    except ArrowException:
        return False


def _max_values(array: Any) -> float:
    """The largest number of values inside one cell; infinite if only reading the rows can show that they are valid."""
    from pyarrow import compute, types

    if types.is_dictionary(array.type):
        return inf if types.is_nested(array.type.value_type) else _max_values(array.dictionary)
    array = plain(array)
    if is_one_of(LISTS, array.type):
        longest = compute.max(compute.list_value_length(array)).as_py() or 0
        inside = _max_values(array.flatten())
        return inf if inside == inf else longest * (1 + inside)
    if types.is_struct(array.type):
        fields = range(array.type.num_fields)
        return len(fields) + sum(_max_values(compute.struct_field(array, [field])) for field in fields)
    return 0 if _is_sound(array) else inf


def _is_sound(array: Any) -> bool:
    """Whether every value of an array has a Python value that an event may hold."""
    from pyarrow import types

    kind = array.type
    if is_one_of(_ALWAYS_SOUND, kind):
        return True
    if types.is_integer(kind):
        return bool(not types.is_uint64(kind) or _is_within(array, 0, INT64_MAX))
    if types.is_decimal(kind):
        return bool(kind.scale >= 0)  # with a negative scale it could be too large for a float
    if types.is_timestamp(kind) or types.is_date64(kind):
        day = TICKS_A_DAY["ms" if types.is_date64(kind) else kind.unit]
        return _is_within(array.view("int64"), _FIRST_DAY * day, (_LAST_DAY + 1) * day - 1)
    if types.is_date32(kind):
        return _is_within(array.view("int32"), _FIRST_DAY, _LAST_DAY)
    return False  # maps, run-end encoded arrays, and types of later Arrow versions


def _is_within(array: Any, low: int, high: int) -> bool:
    from pyarrow import compute

    ends = compute.min_max(array).as_py()
    return ends["min"] is None or (low <= ends["min"] and ends["max"] <= high)


def _conforms(table: Any, schema: Schema) -> bool:
    """Whether a schema without event types accepts all values of the table unchanged."""
    import numpy as np

    if schema.event_types:
        return False
    for path, domain in schema.attributes.items():
        for chunk in column_chunks(table, path):
            _, array = values_at(chunk, path[1:], np.zeros(len(chunk), np.int32))
            if array.null_count < len(array) and not _is_all_in(array, domain):
                return False
    return True


def _is_all_in(array: Any, domain: Domain) -> bool:
    from pyarrow import compute, types

    if not is_one_of(_TYPES_OF_KINDS[domain.kind], array.type):
        return False
    if isinstance(domain, IntegerDomain):
        low = INT64_MIN if domain.low is None else domain.low
        high = INT64_MAX if domain.high is None else domain.high
        return bool(types.is_integer(array.type)) and _is_within(array, low, high)
    if isinstance(domain, CodedDomain):
        import pyarrow

        domain_values = pyarrow.array(domain.values, pyarrow.large_string())
        return bool(compute.all(compute.is_in(array.drop_null().cast(domain_values.type), domain_values)).as_py())
    return True
