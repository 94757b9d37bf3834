"""One event in the codes of an index, in a fraction of the time that a batch of one takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.codes.columns import FEW_COLUMNS, Column, NamedColumns
from harken.codes.dictionary import Dictionary, code_of
from harken.events import Event
from harken.schema.derived import derivation
from harken.schema.paths import Path
from harken.schema.values import KINDS, Kind

_MORE_COLUMNS = 2
"""Number of columns, per attribute of an event and besides FEW_COLUMNS, up to which all are encoded."""


def codes_of_one(
    event: Event, columns: Sequence[Column], dictionaries: Sequence[Dictionary], named: NamedColumns | None = None
) -> NDArray[np.uint32] | None:
    """The codes of one event, columns × 1. None if only `encode` can do it: a column may have several values, or a
    value is outside its domain.
    """
    placed = places_and_codes(event, columns, dictionaries, named)
    if placed is None:
        return None
    places, values = placed
    if isinstance(places, range):
        return np.array(values, np.uint32).reshape(-1, 1)
    codes = np.zeros((len(columns), 1), np.uint32)
    codes[places, 0] = values
    return codes


def places_and_codes(
    event: Event, columns: Sequence[Column], dictionaries: Sequence[Dictionary], named: NamedColumns | None = None
) -> tuple[Sequence[int], list[int]] | None:
    """The places of the columns that are encoded (of many, only those that the event has), and the code in each."""
    attributes = event.attributes
    places: Sequence[int] = range(len(columns))
    encoded: Iterable[tuple[Column, Dictionary]] = zip(columns, dictionaries, strict=True)
    if named is not None and len(columns) > _MORE_COLUMNS * len(attributes) + FEW_COLUMNS:
        places = named.of_names(attributes)
        encoded = [(columns[place], dictionaries[place]) for place in places]
    codes: list[int] = []
    for (path, wanted, coded), dictionary in encoded:
        value: Any = attributes.get(path[0]) if len(path) == 1 else value_at(attributes, path)
        type_of_value = type(value)
        if type_of_value is list:
            return None
        kind = KINDS.get(type_of_value)
        if wanted is None:
            value, kind = value is not None, Kind.BOOLEAN
        elif kind is not wanted:
            codes.append(0)
            continue
        elif coded is None:
            # The usual values in line: this loop is where the time of a single event goes.
            if type_of_value is int or type_of_value is str:
                codes.append(dictionary.code_of(value))
                continue
        else:
            if value not in coded:
                return None
            value, kind = coded.index(value), Kind.NUMBER
        codes.append(code_of(dictionary, kind, value))
    return places, codes


def value_at(node: Any, path: Path) -> Any:
    """What the path leads to: a value or an object, None if there is nothing, or the first array on the way."""
    if not path[0]:
        return derivation(path).of_one(node)
    for key in path:
        if type(node) is not dict:
            break
        node = node.get(key)
    else:
        return node
    return node if type(node) is list else None
