"""Signatures of webhooks and their secrets, as Standard Webhooks (standardwebhooks.com) defines them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets as randomness
from collections.abc import Sequence

from harken.errors import HarkenError

_PREFIX = "whsec_"
_NEW_BYTES = 32
_FEWEST_BYTES, _MOST_BYTES = 24, 64
# The signed text is `id.timestamp.body`, so the id must not contain a full stop.
_MESSAGE_ID = re.compile(r"[!-\-/-~]{1,256}")


class WebhookSecretError(HarkenError):
    """A secret for signing webhooks is not in the form of Standard Webhooks. The message does not repeat the secret."""


def new_secret() -> str:
    """A random secret, shared with the subscriber."""
    return _PREFIX + base64.b64encode(randomness.token_bytes(_NEW_BYTES)).decode("ascii")


def signing_key(secret: str) -> bytes:
    """The key in a secret. Raises WebhookSecretError if the secret is invalid."""
    hint = f"write `{_PREFIX}` and {_FEWEST_BYTES} to {_MOST_BYTES} random bytes in base64, or leave the secret out"
    if not secret.startswith(_PREFIX):
        raise WebhookSecretError(f"a webhook's secret begins with `{_PREFIX}`", hint=hint)
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX).encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        # Not chained: the original error contains the secret.
        raise WebhookSecretError(f"a webhook's secret is base64 after `{_PREFIX}`", hint=hint) from None
    if not _FEWEST_BYTES <= len(key) <= _MOST_BYTES:
        raise WebhookSecretError(f"a webhook's secret has {_FEWEST_BYTES} to {_MOST_BYTES} bytes", hint=hint)
    return key


def signed_headers(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that identify and sign a message, with a signature for each secret.

    There are several secrets while a subscriber replaces one. All attempts of a message have the same id; the
    timestamp, in seconds, is that of the attempt. Raises WebhookSecretError for an invalid secret, and ValueError
    without secrets, or for an id that has spaces, full stops or characters beyond ASCII.
    """
    if not secrets:
        raise ValueError("a webhook is signed with one secret at least")
    if not _MESSAGE_ID.fullmatch(message_id):
        raise ValueError(f"not the id of a message: {message_id!r}")
    signed = b"%s.%d.%s" % (message_id.encode("ascii"), timestamp, body)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_signature(signing_key(secret), signed) for secret in secrets),
    }


def _signature(key: bytes, signed: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode("ascii")
