"""Tickets, API keys and tokens: 256 random bits, of which only a hash is kept; tokens are signed and run out."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

TICKET, KEY = "ht_", "hk_"
"""How tickets and keys begin, so that a leaked one is known by its looks."""
_SEPARATOR = "\x1f"


def new_word(kind: str) -> str:
    """A new ticket or key."""
    return kind + secrets.token_urlsafe(32)


def hashed(word: str) -> bytes:
    """What is kept of a ticket or key. It has as many bits as can be guessed at, so it needs no salt."""
    return hashlib.sha256(word.encode("utf-8", "surrogateescape")).digest()


def is_same(one: bytes, other: bytes) -> bool:
    """Whether two hashes are the same, in a time that does not tell where they differ."""
    return hmac.compare_digest(one, other)


class StreamTokens:
    """Tokens that open a stream for a while, for those who cannot send a header."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def made(self, names: Iterable[str], until: int, key: str = "") -> str:
        """A token for these subscriptions, good until a time in microseconds. `key` is the id of the API key that
        bought it.
        """
        content = _SEPARATOR.join([str(until), key, *names]).encode()
        return _text(content) + "." + _text(self._signature(content))

    def opened(self, token: str, now: int) -> tuple[frozenset[str], str]:
        """The subscriptions that a token opens now, none if it is not ours or has run out; and the id of its key."""
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
