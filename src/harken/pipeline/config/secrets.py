"""Secrets: passwords and the like, which are used but never shown."""

from __future__ import annotations

import re
from difflib import get_close_matches

_WORDS = re.compile(
    r"passw(or)?d|\bpwd|passphrase|secret|token|credential|jaas|(access|account|private)[._-]?key", re.IGNORECASE
)
_NEAR = ("password", "secret", "token")


class Secret(str):
    """A text that is used as it is and shown as ***."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "***"


def is_secret(name: str) -> bool:
    """Whether a key of this name holds a secret."""
    return _WORDS.search(name) is not None


def has_secret(line: str) -> bool:
    """Whether a line of a file names a secret, correctly spelt or nearly so."""
    words = re.findall(r"[a-z]+", line.lower())
    return is_secret(line) or any(get_close_matches(word, _NEAR, n=1, cutoff=0.8) for word in words)


def shown(value: str) -> str:
    """The value as people may see it."""
    return repr(value) if isinstance(value, Secret) else value
