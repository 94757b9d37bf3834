"""Secrets that the server has to read back, encrypted with keys that are kept outside the store."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harken.errors import ConfigError, StoreError, needing_extra

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

_SEALED = "sealed:"
"""How an encrypted secret begins. After it come the name of its key, and a token of Fernet."""
_KEY_BYTES = 32
_NAME_DIGITS = 16


class Sealing:
    """Encrypts with the first of its keys, and decrypts with any. Without keys it leaves secrets as they are."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """Raises ConfigError for a key that is none, and MissingExtraError without the library that encrypts."""
        self._ciphers = dict(_cipher(each) for each in keys)
        self._first = next(iter(self._ciphers), None)

    @property
    def mark(self) -> str:
        """How a secret begins that is as this would keep it; empty without keys."""
        return "" if self._first is None else f"{_SEALED}{self._first}:"

    def sealed(self, secret: str) -> str:
        """A secret as the store keeps it: encrypted with the first key. Raises StoreError if it cannot be decrypted."""
        if secret.startswith(self.mark) or self._first is None:
            return secret
        return self.mark + self._ciphers[self._first].encrypt(self.opened(secret).encode()).decode()

    def opened(self, stored: str) -> str:
        """A secret from what the store has. Raises StoreError if none of the keys decrypts it."""
        if not stored.startswith(_SEALED):
            return stored
        name, _, token = stored.removeprefix(_SEALED).partition(":")
        if not self._ciphers:
            hint = "give the server the key that they were encrypted with: --secrets-key FILE, or HARKEN_SECRETS_KEY"
            raise StoreError("the secrets in the store are encrypted, and there is no key", hint=hint)
        from cryptography.fernet import InvalidToken

        try:
            return self._ciphers[name].decrypt(token.encode()).decode()
        except KeyError:
            hint = "name the key before, too, behind the new one, until all secrets are encrypted with that"
            raise StoreError("no key given is the one that the store's secrets are encrypted with", hint=hint) from None
        except InvalidToken:
            raise StoreError("a secret in the store is damaged: its key does not decrypt it") from None


def _cipher(key: str) -> tuple[str, Fernet]:
    """The name of a key, which tells nothing of it, and what encrypts with it."""
    with needing_extra():
        from cryptography.fernet import Fernet

    text = key.strip().replace("-", "+").replace("_", "/").rstrip("=")
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        plain = b""
    if len(plain) != _KEY_BYTES:
        hint = "make one with `openssl rand -base64 32`"
        raise ConfigError(f"a key for secrets is {_KEY_BYTES} random bytes in base64", hint=hint)
    name = hashlib.sha256(b"harken secrets key " + plain).hexdigest()[:_NAME_DIGITS]
    return name, Fernet(base64.urlsafe_b64encode(plain))
