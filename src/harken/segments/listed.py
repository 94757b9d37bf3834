"""The predicates of a table (id, predicates) one after the other, as arrays, and what is wrong with them.

What can be judged by its look is judged once: of names, operators and values only the different ones are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from harken.errors import HarkenError, ParseError, SourceError, SubscriptionError, did_you_mean
from harken.events.arrow_columns import LISTS, STRINGS, is_one_of, plain
from harken.events.excerpt import shorten, shorten_object
from harken.schema import Path, format_path, parse_path
from harken.segments.operands import ABSENT, PRESENCE, Flaw, Given, Operands, is_text, reader_of

OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "IS NULL", "IS NOT NULL")
EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, IS_NULL, IS_NOT_NULL = range(len(OPERATORS))
PREDICATES = "predicates"
"""The column of the table."""

_FIELDS: dict[str, tuple[str, ...]] = {
    "integer": ("is_integer",),
    "float": ("is_floating", "is_integer", "is_decimal"),
    "string": STRINGS,
    "boolean": ("is_boolean",),
    "timestamp": ("is_timestamp",),
    "date": ("is_date",),
    "value": (*STRINGS, "is_integer", "is_floating", "is_decimal", "is_boolean", "is_timestamp", "is_date"),
}
"""The fields that may hold the value of a predicate, and the tests of `pyarrow.types` of which one must hold."""
_NAMES = ("attribute", "operator")
_NONE = -1


@dataclass(frozen=True, eq=False, slots=True)
class Listed:
    """The predicates of all rows of a table. Those of rows with a fault may be anything."""

    offsets: NDArray[np.int64]
    """Where the predicates of each row begin, and at last where they end."""
    paths: list[Path]
    """The different attributes."""
    attributes: NDArray[np.int32]
    """Of each predicate, the place in the paths."""
    operators: NDArray[np.uint8]
    """Places in OPERATORS."""
    operands: NDArray[np.int32]
    """Places in the values."""
    values: Operands
    faults: list[tuple[int, HarkenError]]
    """What is wrong with some rows, of each the first thing."""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many predicates each row has."""
        return np.diff(self.offsets)

    def is_faulty(self) -> NDArray[np.bool_]:
        """Which rows have a fault."""
        faulty = np.zeros(len(self), np.bool_)
        faulty[[row for row, _ in self.faults]] = True
        return faulty


def listed(table: pa.Table) -> Listed:
    """The predicates of a table. Raises SourceError if it is none of subscriptions with predicates."""
    column = _column(table)
    fields = _fields(column.type.value_type)
    chunks = [plain(chunk) for chunk in column.chunks]
    lengths = [_flat(pc.list_value_length(chunk).fill_null(0)) for chunk in chunks]
    offsets = np.zeros(table.num_rows + 1, np.int64)
    np.cumsum(np.concatenate([offsets[:0], *lengths]), out=offsets[1:])
    items = [plain(chunk.flatten()) for chunk in chunks]
    names, operators = (_words([pc.struct_field(each, [fields[name]]) for each in items]) for name in _NAMES)
    paths, places = _paths(names)
    attributes = places[names.codes]
    signs = _operators(operators)[operators.codes]
    given = {name: _distinct([pc.struct_field(each, [at]) for each in items]) for name, at in fields.items() if name not in _NAMES}
    operands, values = _operands(given, signs)
    finder = _Finder(names, operators, {name: each.codes for name, each in given.items() if each is not None}, values)
    absent = [_flat(each.is_null()) for each in items]
    finder.look(np.concatenate([np.zeros(0, np.bool_), *absent]), attributes, signs, operands)
    return Listed(offsets, paths, attributes, signs, operands, values, faults)
