"""Secrets of webhooks: encrypted in the store with keys, which may change; and who may read the files of a store."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from unit.server.faults.receivers import SECRET, Receiver
from unit.server.faults.server_process import (
    ServerProcess,
    ending,
    publish,
    serving,
    subscribe,
    ticket_of,
    wait_until,
)

pytestmark = [pytest.mark.processes, pytest.mark.together]
OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
HERE = ("--allow-webhooks-to", "127.0.0.0/8")
VARIABLE = "HARKEN_SECRETS_KEY"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as found:
        yield found


def content(folder: Path) -> bytes:
    """The bytes of a store."""
    return b"".join(each.read_bytes() for each in folder.glob("harken.db*") if each.is_file())


def key_file(folder: Path, *keys: str) -> Path:
    path = folder / "secrets.key"
    path.write_text("\n".join(keys) + "\n")
    return path


def rejected(server: ServerProcess) -> str:
    """What a server says that cannot start."""
    server.start(until_ready=False)
    assert server.process.wait(60) == 3
    assert "Traceback" not in server.log()
    return server.log()


def test_a_secret_signs_and_is_not_in_the_store(tmp_path: Path, receiver: Receiver) -> None:
    with serving(tmp_path, *HERE, "--secrets-key", str(key_file(tmp_path, NEW))) as server, server.client() as client:
        taken = subscribe(client, "n > 0", delivery=receiver.delivery("/hook"))
        assert taken["webhook_secret"] == SECRET, "its subscriber knows it"
        path, headers = f"/subscriptions/{taken['id']}", ticket_of(taken)
        webhook: dict[str, Any] = receiver.delivery("/hook")
        for delivery in (webhook, {"webhook": {"url": webhook["webhook"]["url"]}}):
            answer = client.put(path, json={"where": "n > 0", "delivery": delivery}, headers=headers)
            assert (answer.status_code, answer.json().get("webhook_secret")) == (200, None), "it is the one that it has"
        publish(client, {"n": 1})
        wait_until(lambda: receiver.at("/hook"))
        assert receiver.at("/hook")[0].content["event"] == {"n": 1}, "and its signature is right"
        assert SECRET.encode() not in content(tmp_path)
        assert "in clear" not in server.log()


def test_keys_are_given_later_and_changed(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ServerProcess(tmp_path, *HERE)
    with ending(server):
        server.start()
        assert "in clear: --secrets-key encrypts them" in server.log()
        with server.client() as client:
            subscribe(client, "n > 0", delivery=receiver.delivery("/hook"))
        server.stop()
        assert SECRET.encode() in content(tmp_path)
        for number, keys in enumerate((OLD, f"{OLD},{NEW}", f"{NEW} {OLD}", NEW)):
            monkeypatch.setenv(VARIABLE, keys)
            server.start()
            with server.client() as client:
                publish(client, {"n": number + 1})
                wait_until(lambda number=number: len(receiver.at("/hook")) == number + 1)
            server.stop()
            assert SECRET.encode() not in content(tmp_path)
        assert [each.content["event"]["n"] for each in receiver.at("/hook")] == [1, 2, 3, 4]
        monkeypatch.setenv(VARIABLE, OLD)
        assert "none of the keys decrypts" in rejected(server)
        monkeypatch.delenv(VARIABLE)
        assert "are encrypted, and there is no key" in rejected(server)
        assert NEW not in server.log()
        assert OLD not in server.log()


@pytest.mark.parametrize("key", ["hush-hush", OLD[:-8], ""])
def test_what_is_no_key_is_rejected(tmp_path: Path, key: str) -> None:
    server = ServerProcess(tmp_path, "--secrets-key", str(key_file(tmp_path, key)))
    with ending(server):
        log = rejected(server)
    assert "openssl rand -base64 32" in log
    assert not key or key not in log


def test_a_file_of_keys_that_is_not_there(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--secrets-key", str(tmp_path / "nowhere.key"))
    with ending(server):
        assert "nowhere.key cannot be read" in rejected(server)


def test_a_store_that_others_may_read_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "harken.db"
    server = ServerProcess(tmp_path)
    with ending(server):
        server.start()
        beside = [each for each in tmp_path.rglob("*") if "harken.db" in str(each.relative_to(tmp_path))]
        assert {tmp_path / "harken.db", tmp_path / "harken.db.lock"} < set(beside)
        assert not [each for each in beside if each.stat().st_mode & 0o077], "the condition texts are in the index too"
        assert "can be opened by other users" not in server.log()
        server.stop()
        path.chmod(0o644)
        server.start()
        assert "can be opened by other users (mode 644)" in server.log()
        assert path.stat().st_mode & 0o777 == 0o644, "whoever may read it may be meant to"
