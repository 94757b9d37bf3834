"""Where in a TOML text its tables and keys stand. The standard library's parser does not tell."""

from __future__ import annotations

import re
import tomllib

_PART = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_KEYS = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_LINE = re.compile(rf"^(?P<indent>[ \t]*)(?:\[[ \t]*(?P<header>{_KEYS})[ \t]*\]|(?P<key>{_KEYS})[ \t]*=)", re.MULTILINE)


def key_positions(text: str) -> dict[tuple[str, ...], tuple[int, int]]:
    """The line and the column, both from 1, of every table header and every key that begins a line.

    A line inside a string of several lines may look like one too; what comes first wins.
    """
    positions: dict[tuple[str, ...], tuple[int, int]] = {}
    table: tuple[str, ...] = ()
    line, counted = 1, 0
    for found in _LINE.finditer(text):
        line += text.count("\n", counted, found.start())
        counted = found.start()
        position = line, len(found["indent"]) + 1
        if found["header"] is not None:
            table = _split(found["header"])
            positions.setdefault(table, position)
            continue
        # `a.b = 1` is the first word on the table `a` as well.
        path = table + _split(found["key"])
        for length in range(len(table) + 1, len(path) + 1):
            positions.setdefault(path[:length], position)
    return positions


def _split(written: str) -> tuple[str, ...]:
    """The keys of a dotted key, unquoted: the parser itself reads them."""
    try:
        table: object = tomllib.loads(f"{written} = 0")
    except ValueError:
        return (written,)
    keys: list[str] = []
    while isinstance(table, dict):
        ((key, table),) = table.items()
        keys.append(key)
    return tuple(keys)
