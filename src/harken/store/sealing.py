"""Encryption of the secrets in the store, with keys that are kept outside of it."""

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
"""The prefix of an encrypted secret. The name of its key and a Fernet token follow."""
_KEY_BYTES = 32
_NAME_DIGITS = 16


class Sealing:
    """Encrypts secrets with the first of its keys, and decrypts with any. Without keys, secrets stay in clear."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """Raises ConfigError for an invalid key, and MissingExtraError if the library `cryptography` is missing."""
        self._ciphers = dict(_cipher(each) for each in keys)
        self._first = next(iter(self._ciphers), None)

    @property
    def prefix(self) -> str:
        """The start of secrets that are encrypted with the first key; empty without keys."""
        return "" if self._first is None else f"{_SEALED}{self._first}:"

    def sealed(self, secret: str) -> str:
        """Encrypt a secret with the first key. One that another key encrypted is decrypted first.

        Raises StoreError if no key decrypts it.
        """
        if secret.startswith(self.prefix) or self._first is None:
            return secret
        return self.prefix + self._ciphers[self._first].encrypt(self.opened(secret).encode()).decode()

    def opened(self, stored: str) -> str:
        """Decrypt a secret of the store. Raises StoreError if none of the keys decrypts it."""
        if not stored.startswith(_SEALED):
            return stored
        name, _, token = stored.removeprefix(_SEALED).partition(":")
        if not self._ciphers:
            hint = "start the server with the key that encrypted them: --secrets-key FILE, or HARKEN_SECRETS_KEY"
            raise StoreError("the secrets in the store are encrypted, and there is no key", hint=hint)
        from cryptography.fernet import InvalidToken

        try:
            return self._ciphers[name].decrypt(token.encode()).decode()
        except KeyError:
            hint = "keep the old key after the new one until all secrets are encrypted with the new one"
            raise StoreError("none of the keys decrypts the store's secrets", hint=hint) from None
        except InvalidToken:
            raise StoreError("a secret in the store is damaged: its key does not decrypt it") from None


def _cipher(key: str) -> tuple[str, Fernet]:
    """The name of a key, which is a hash and reveals nothing of it, and its cipher."""
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
