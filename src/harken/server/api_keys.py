"""API keys as they are made and shown: the server and `harken key` do it the same way."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from harken.server.body_shapes import iso
from harken.server.secret_words import KEY, new_word
from harken.store import ApiKey
from harken.store.store import microseconds


def made_key(owner: str, scopes: Iterable[str], name: str | None) -> tuple[ApiKey, str]:
    """A new key, and the word that opens with it. The word is told once; the store has its hash only."""
    return ApiKey(secrets.token_hex(6), owner, frozenset(scopes), name, microseconds()), new_word(KEY)


def shown_key(key: ApiKey) -> dict[str, Any]:
    """A key as people see it, without the word."""
    scopes = sorted(key.scopes)
    return {"id": key.id, "owner": key.owner, "scopes": scopes, "name": key.name, "created_at": iso(key.created_at)}
