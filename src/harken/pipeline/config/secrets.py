"""Secrets, such as passwords: texts that are used but never shown."""

from __future__ import annotations

import re
from difflib import get_close_matches

_WORDS = re.compile(
    r"passw(or)?d|\bpwd|passphrase|secret|token|credential|jaas|(access|account|private)[._-]?key", re.IGNORECASE
)
_NEAR = ("password", "secret", "token")
_IN_URL = re.compile(r"(//[^:/@?]*:).*(?=@)|([?&]\w*password=)[^&]*", re.IGNORECASE | re.DOTALL)
"""Matches a password in an address, even one with an unescaped @ or /."""


class Secret(str):
    """A text whose `repr` is ***."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "***"


class SecretUrl(Secret):
    """An address whose `repr` hides its password."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _IN_URL.sub(r"\1\2***", str(self))


def is_secret(name: str) -> bool:
    """Whether a key of this name holds a secret."""
    return _WORDS.search(name) is not None


def has_secret(line: str) -> bool:
    """Whether a line of a file has the name of a secret, even misspelt, or an address with a password."""
    words = re.findall(r"[a-z]+", line.lower())
    return (
        is_secret(line)
        or _IN_URL.search(line) is not None
        or any(get_close_matches(word, _NEAR, n=1, cutoff=0.8) for word in words)
    )


def shown(value: str) -> str:
    """The value for people to see: secrets are hidden."""
    return repr(value) if isinstance(value, Secret) else value
