"""Events as Python objects with named fields: dataclasses, named tuples, pydantic models."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, is_dataclass
from typing import Any

from harken.errors import InvalidValueError


def is_record(value: object) -> bool:
    """Whether a value is an instance of a dataclass, a named tuple or a pydantic model."""
    kind = type(value)
    return is_dataclass(kind) or _is_model(kind) or _is_named_tuple(kind)


def content_of(record: Any, names: Collection[str] | None = None) -> Any:
    """The fields of a record by name; with `names`, only those. Raises InvalidValueError if a field cannot be read.

    For a pydantic model it is the result of `model_dump()`, which need not be a dict.
    """
    kind: Any = type(record)
    try:
        if _is_model(kind):
            return record.model_dump(include=None if names is None else set(names))
        field_names = kind._fields if _is_named_tuple(kind) else [each.name for each in fields(kind)]
        return {name: getattr(record, name) for name in field_names if names is None or name in names}
    except Exception as error:  # a field never set, or a serializer that the user wrote
        raise InvalidValueError(f"the fields of this {kind.__name__} cannot be read: {error}") from error


def _is_model(kind: type) -> bool:
    return hasattr(kind, "model_dump") and hasattr(kind, "model_fields")


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")
