"""Signatures: the library of Standard Webhooks accepts them, and nothing that was changed; and what can be a secret."""

from __future__ import annotations

import base64
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from harken.server.webhooks.signing import WebhookSecretError, new_secret, signed_headers, signing_key

BODY = '{"id":"7","event":{"größe":1.0}}'.encode()


def secret_of(size: int) -> str:
    return "whsec_" + base64.b64encode(bytes(range(size))).decode()


def test_library_accepts_the_signature() -> None:
    secret = new_secret()
    headers = signed_headers([secret], "msg_7", int(time.time()), BODY)
    assert Webhook(secret).verify(BODY, headers) == {"id": "7", "event": {"größe": 1.0}}


def test_signature_is_that_of_the_specification() -> None:
    # The example of the specification: standard-webhooks/spec/standard-webhooks.md
    headers = signed_headers(
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_every_secret_signs_while_it_is_changed() -> None:
    old, new = new_secret(), new_secret()
    headers = signed_headers([new, old], "msg_7", int(time.time()), BODY)
    assert headers["webhook-signature"].count(" ") == 1
    Webhook(old).verify(BODY, headers)
    Webhook(new).verify(BODY, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(BODY, headers)


@pytest.mark.parametrize("changed", ["webhook-id", "webhook-timestamp", "body"])
def test_signature_covers_id_time_and_body(changed: str) -> None:
    secret, now = new_secret(), int(time.time())
    headers = signed_headers([secret], "msg_7", now, BODY)
    body = BODY + b" " if changed == "body" else BODY
    headers |= {"webhook-id": {"webhook-id": "msg_8"}, "webhook-timestamp": {"webhook-timestamp": str(now + 1)}}.get(
        changed, {}
    )
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(secret).verify(body, headers)


def test_body_need_not_be_text() -> None:
    assert signed_headers([new_secret()], "7", 0, b"\xff\x00")["webhook-timestamp"] == "0"


def test_new_secrets_differ_and_have_32_bytes() -> None:
    assert len(signing_key(new_secret())) == 32
    assert new_secret() != new_secret()


@pytest.mark.parametrize("size", [24, 32, 64])
def test_secret_of_24_to_64_bytes_is_a_key(size: int) -> None:
    assert signing_key(secret_of(size)) == bytes(range(size))


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        secret_of(23),
        secret_of(65),
        secret_of(32).removeprefix("whsec_"),
        secret_of(32).upper(),
        secret_of(32).rstrip("="),
        secret_of(32) + "\n",
        secret_of(32).replace("A", "-", 1),
        secret_of(32).replace("A", "ä", 1),
        "whsk_" + secret_of(32).removeprefix("whsec_"),
    ],
)
def test_other_secret_is_rejected_and_not_repeated(secret: str) -> None:
    with pytest.raises(WebhookSecretError) as rejected:
        signing_key(secret)
    assert rejected.value.hint is not None
    assert rejected.value.__cause__ is None
    body = secret.removeprefix("whsec_").strip()
    assert not body or body not in str(rejected.value)


@pytest.mark.parametrize("message_id", ["", "a.b", "a b", "a\r\nb", "ä", "a" * 257])
def test_message_id_that_could_be_misread_is_an_error(message_id: str) -> None:
    with pytest.raises(ValueError, match="id of a message"):
        signed_headers([new_secret()], message_id, 0, BODY)


def test_message_without_secrets_is_an_error() -> None:
    with pytest.raises(ValueError, match="one secret"):
        signed_headers([], "msg_7", 0, BODY)
