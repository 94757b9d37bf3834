"""Names in statements, and literals for SQL that Harken prints. Statements that Harken runs have parameters instead."""

from __future__ import annotations

from math import inf

from harken.databases.dialects import Dialect
from harken.errors import CapabilityError, OperatorError


def quoted(name: str) -> str:
    """A name of a table or column in double quotes. Raises OperatorError for an empty name and for NUL."""
    if not name or "\0" in name:
        raise OperatorError(f"{name!r:.60} is no name of a table or column")
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | float | int | None, dialect: Dialect) -> str:
    """A value as a literal. Raises CapabilityError for a text with NUL."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return _text(value, dialect)
    if isinstance(value, float):
        return _double(value, dialect)
    return str(int(value))


def _text(value: str, dialect: Dialect) -> str:
    if "\0" in value:
        raise CapabilityError(f"{value!r:.60} cannot be written as SQL: it has a character with the code 0")
    if dialect.has_escapes:
        # A dollar may begin a variable, which Spark substitutes before it parses literals.
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
        return f"'{escaped}'"
    return "'" + value.replace("'", "''") + "'"


def _double(value: float, dialect: Dialect) -> str:
    if value in (inf, -inf):
        return dialect.infinity if value > 0 else f"-{dialect.infinity}"
    text = repr(value)
    # Without an exponent some databases read a decimal.
    return (text if "e" in text else f"{text}e0") + dialect.double_suffix
