"""Attribute names. A path is a tuple of keys: `seller.country` is ("seller", "country"), `` `a.b` `` is ("a.b",).

The path of a derived attribute begins with an empty key, which no name has: see derived.py.
"""

from __future__ import annotations

import re

Path = tuple[str, ...]
DERIVED: Path = ("",)
"""Prefix of the paths of derived attributes."""
DOCUMENT: Path = ("document",)
"""The attribute whose document XPath subscriptions read. A bare document is an event with no other attribute."""

# Reserved words of the language; as names they need backticks.
RESERVED = frozenset(
    "AND OR NOT IN LIKE BETWEEN IS NULL TRUE FALSE".split(),
)

_KEY = re.compile(r"`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[^\W\d]\w*)")
_PLAIN = re.compile(r"[^\W\d]\w*\Z")


def parse_path(name: str) -> Path:
    """The path that a name stands for. Raises ValueError."""
    keys: list[str] = []
    position = 0
    while True:
        key = _KEY.match(name, position)
        if key is None:
            raise ValueError(f"{name!r} is not an attribute name: put keys with other characters in backticks")
        quoted = key["quoted"]
        keys.append(key["plain"] if quoted is None else quoted.replace("``", "`"))
        position = key.end()
        if position == len(name):
            return tuple(keys)
        if name[position] != ".":
            raise ValueError(f"{name!r} is not an attribute name: put keys with other characters in backticks")
        position += 1


def format_path(path: Path) -> str:
    """The name of a path, quoted where it has to be, so that `parse_path` and the language read it back.

    The name of a derived attribute is for people only.
    """
    if path[:1] == DERIVED:
        from harken.schema.derived import format_derived

        return format_derived(path) or ".".join(map(_format_key, path))
    return ".".join(map(_format_key, path))


def _format_key(key: str) -> str:
    if _PLAIN.match(key) and key.upper() not in RESERVED:
        return key
    return "`" + key.replace("`", "``") + "`"
