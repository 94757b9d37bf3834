"""Sending over TLS: the certificate is verified for the name, although the connection is made to an address."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from harken.server.webhooks.call_outcomes import CallOutcome, OutcomeKind
from harken.server.webhooks.sending import Sender
from harken.server.webhooks.signing import new_secret
from unit.server.webhooks.receivers import HERE, answering, receiving

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates of this test")

SECRET = new_secret()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate authority, and a certificate of it for hooks.example and 127.0.0.1."""
    folder = tmp_path_factory.mktemp("certificates")
    new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    _openssl(folder, f"{new} -subj /CN=authority -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.pem")
    _openssl(
        folder,
        f"{new} -CA ca.pem -CAkey ca.key -subj /CN=hooks -addext subjectAltName=DNS:hooks.example,IP:127.0.0.1 "
        "-addext basicConstraints=critical,CA:false -addext authorityKeyIdentifier=keyid "
        "-keyout server.key -out server.pem",
    )
    return folder


def _openssl(folder: Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True)


async def here(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


def sent(
    folder: Path, hosts: Sequence[str], trusted: bool = True
) -> tuple[list[CallOutcome], list[str | None], list[str]]:
    """The outcomes of a message to each host, one after the other; the names that TLS asked for; the `Host` headers."""
    asked: list[str | None] = []
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem", folder / "server.key")
    server.sni_callback = lambda _, name, __: asked.append(name)
    client = ssl.create_default_context(cafile=folder / "ca.pem") if trusted else None

    async def run() -> tuple[list[CallOutcome], list[str]]:
        async with (
            receiving(answering("200 OK"), server) as receiver,
            Sender(allow=HERE, resolve=here, tls=client) as sender,
        ):
            outcomes = [
                await sender.send(receiver.url(host=host, scheme="https"), [SECRET], "msg_7", b"{}") for host in hosts
            ]
            return outcomes, [request.headers["host"].partition(":")[0] for request in receiver.requests]

    outcomes, arrived = asyncio.run(run())
    return outcomes, asked, arrived


def test_certificate_is_verified_for_the_name(folder: Path) -> None:
    outcomes, asked, arrived = sent(folder, ["hooks.example"])
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.DELIVERED]
    assert asked == ["hooks.example"]
    assert arrived == ["hooks.example"]


def test_certificate_is_verified_for_an_address_in_the_url(folder: Path) -> None:
    outcomes, asked, _ = sent(folder, ["127.0.0.1"])
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.DELIVERED]
    assert asked == [None]  # TLS names no addresses


def test_other_name_at_the_same_address_is_not_served_by_a_connection_that_was_verified_before(folder: Path) -> None:
    outcomes, asked, arrived = sent(folder, ["hooks.example", "other.example", "hooks.example"])
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.DELIVERED, OutcomeKind.RETRY, OutcomeKind.DELIVERED]
    assert "other.example" in outcomes[1].reason
    assert asked == ["hooks.example", "other.example", "hooks.example"]
    assert arrived == ["hooks.example", "hooks.example"]


def test_certificate_of_an_unknown_authority_is_rejected(folder: Path) -> None:
    outcomes, _, arrived = sent(folder, ["hooks.example"], trusted=False)
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.RETRY]
    assert "certificate" in outcomes[0].reason
    assert arrived == []


def test_environment_adds_no_authority(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    (outcome,), _, _ = sent(folder, ["hooks.example"], trusted=False)
    assert outcome.kind is OutcomeKind.RETRY


def test_receiver_without_tls() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def run() -> CallOutcome:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, Sender(allow=HERE) as sender:
            port = server.sockets[0].getsockname()[1]
            return await sender.send(f"https://127.0.0.1:{port}/", [SECRET], "msg_7", b"{}")

    outcome = asyncio.run(run())
    assert (outcome.kind, outcome.status) == (OutcomeKind.RETRY, None)
    assert outcome.reason.startswith("no connection: ")
