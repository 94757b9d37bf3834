"""Tickets and API keys: 256 random bits, of which only a hash is stored. Tokens: signed, and valid for a while."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

TICKET, KEY = "ht_", "hk_"
"""The prefixes of tickets and API keys, by which a leaked one can be recognised."""
_SEPARATOR = "\x1f"


def new_credential(prefix: str) -> str:
    """A new ticket or key."""
    return prefix + secrets.token_urlsafe(32)


def hashed(credential: str) -> bytes:
    """The stored hash of a ticket or key. It needs no salt, because 256 random bits cannot be guessed."""
    return hashlib.sha256(credential.encode("utf-8", "surrogateescape")).digest()


def is_same(one: bytes, other: bytes) -> bool:
    """Whether two hashes are equal, compared in constant time."""
    return hmac.compare_digest(one, other)


class StreamTokens:
    """Tokens that open a stream for a while, for clients that cannot send a header."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def made(self, names: Iterable[str], until: int, key: str = "") -> str:
        """A token that opens these names until a time in microseconds. `key` is the id of the caller's API key."""
        content = _SEPARATOR.join([str(until), key, *names]).encode()
        return _text(content) + "." + _text(self._signature(content))

    def opened(self, token: str, now: int) -> tuple[frozenset[str], str]:
        """The names that a token opens now, none if its signature is wrong or it has expired; and the id of its key."""
        head, _, tail = token.partition(".")
        try:
            content, signature = _bytes(head), _bytes(tail)
        except ValueError:
            return frozenset(), ""
        if not is_same(signature, self._signature(content)):
            return frozenset(), ""
        until, key, *names = content.decode().split(_SEPARATOR)
        return (frozenset(names), key) if now < int(until) else (frozenset(), "")

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._secret, content, "sha256")


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
