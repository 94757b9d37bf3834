"""Check an event against a schema: each declared value is replaced by what its domain makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harken.errors import InvalidValueError
from harken.schema.paths import Path, format_path
from harken.schema.values import Value

if TYPE_CHECKING:
    from harken.schema import Schema


def conform(attributes: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Canonical attributes, with every declared value as its domain reads it. Raises EventError."""
    flat: dict[Path, list[object]] = {}
    for key, value in attributes.items():
        _flatten(value, (key,), flat, schema)
    # `validate` keeps the number and order of each attribute's values, so that they can be put back.
    values = {path: iter(read) for path, read in schema.validate(flat).items()}
    return _object(attributes, (), values)


def _flatten(value: Any, path: Path, flat: dict[Path, list[object]], schema: Schema) -> None:
    """Add all scalars to `flat` by path, through arrays. Raises if an object stands where a value is declared."""
    if type(value) is dict:
        domain = schema.domain_of(path)
        if domain is not None:
            raise InvalidValueError(f"attribute `{format_path(path)}`: expected {domain.describe()}, got an object")
        for key, inner in value.items():
            _flatten(inner, (*path, key), flat, schema)
    elif type(value) is list:
        for element in value:
            _flatten(element, path, flat, schema)
    elif path in flat:
        flat[path].append(value)
    else:
        flat[path] = [value]


def _object(value: dict[str, Any], path: Path, values: dict[Path, Iterator[Value]]) -> dict[str, Any]:
    return {key: _placed(inner, (*path, key), values) for key, inner in value.items()}


def _placed(value: Any, path: Path, values: dict[Path, Iterator[Value]]) -> Any:
    if type(value) is dict:
        return _object(value, path, values)
    if type(value) is list:
        return [_placed(element, path, values) for element in value]
    return next(values[path])
