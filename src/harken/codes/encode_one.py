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
"""Columns that are all looked at, besides a few, for every attribute that an event has."""


def codes_of_one(
    event: Event, columns: Sequence[Column], dictionaries: Sequence[Dictionary], named: NamedColumns | None = None
) -> NDArray[np.uint32] | None:
    """The codes of one event, columns by one. None, for `encode` to tell, if there may be several values in a column,
    or if a value is not of its domain.
    """
    found = places_and_codes(event, columns, dictionaries, named)
    if found is None:
        return None
    if isinstance(found[0], range):
        return np.array(found[1], np.uint32).reshape(-1, 1)
    codes = np.zeros((len(columns), 1), np.uint32)
    codes[found[0], 0] = found[1]
    return codes


def places_and_codes(
    event: Event, columns: Sequence[Column], dictionaries: Sequence[Dictionary], named: NamedColumns | None = None
) -> tuple[Sequence[int], list[int]] | None:
    """The places of the columns that are looked at, of many only those that the event has, and the codes in these."""
    attributes = event.attributes
    places: Sequence[int] = range(len(columns))
    asked: Iterable[tuple[Column, Dictionary]] = zip(columns, dictionaries, strict=True)
    if named is not None and len(columns) > _MORE_COLUMNS * len(attributes) + FEW_COLUMNS:
        places = named.of_names(attributes)
        asked = [(columns[place], dictionaries[place]) for place in places]
    codes: list[int] = []
    for (path, wanted, coded), dictionary in asked:
        value: Any = attributes.get(path[0]) if len(path) == 1 else value_at(attributes, path)
        given = type(value)
        if given is list:
            return None
        kind = KINDS.get(given)
        if wanted is None:
            value, kind = value is not None, Kind.BOOLEAN
        elif kind is not wanted:
            codes.append(0)
            continue
        elif coded is None:
            # The usual values in line: this loop is where the time of a single event goes.
            if given is int or given is str:
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
