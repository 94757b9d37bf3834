"""Make and show API keys, for the server and for `harken key`."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from harken.server.body_shapes import iso
from harken.server.credentials import KEY, new_credential
from harken.store import ApiKey
from harken.store.store import microseconds


def made_key(owner: str, scopes: Iterable[str], name: str | None) -> tuple[ApiKey, str]:
    """A new key and its secret text. Show the text now: the store has only its hash."""
    return ApiKey(secrets.token_hex(6), owner, frozenset(scopes), name, microseconds()), new_credential(KEY)


def shown_key(key: ApiKey) -> dict[str, Any]:
    """A key as answers show it, without its secret text."""
    scopes = sorted(key.scopes)
    return {"id": key.id, "owner": key.owner, "scopes": scopes, "name": key.name, "created_at": iso(key.created_at)}
