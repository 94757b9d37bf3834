"""The file of tickets: who may read it, that it is whole, and that processes do not undo each other."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from harken.cli.tickets import TicketFile, canonical, state_folder
from harken.errors import SourceError

SERVER = "http://127.0.0.1:8080"


@pytest.fixture
def file(tmp_path: Path) -> TicketFile:
    return TicketFile(tmp_path / "state" / "tickets.json")


def test_tickets_are_kept_by_server_and_id(file: TicketFile) -> None:
    assert file.of(SERVER) == {}
    file.keep(SERVER, {"alice": "1", "bob": "2"})
    file.keep("http://other:1", {"alice": "3"})
    file.keep(SERVER, {"alice": "4"})
    assert TicketFile(file.path).of(SERVER) == {"alice": "4", "bob": "2"}
    assert file.of("http://other:1/") == {"alice": "3"}


def test_tickets_are_forgotten(file: TicketFile) -> None:
    file.keep(SERVER, {"alice": "1", "bob": "2"})
    file.forget(SERVER, ["alice", "nobody"])
    assert file.of(SERVER) == {"bob": "2"}
    file.forget(SERVER, ["bob"])
    assert json.loads(file.path.read_text()) == {}


def test_to_forget_nothing_writes_nothing(file: TicketFile) -> None:
    file.forget(SERVER, ["alice"])
    assert not file.path.exists()


def test_only_the_owner_may_read_it(file: TicketFile) -> None:
    before = os.umask(0)
    try:
        file.keep(SERVER, {"alice": "1"})
        file.keep(SERVER, {"bob": "2"})
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


def test_writers_at_the_same_time_lose_nothing(file: TicketFile) -> None:
    def keep(number: int) -> None:
        for each in range(10):
            TicketFile(file.path).keep(SERVER, {f"{number}-{each}": "t"})

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(file.of(SERVER)) == 40
    assert sorted(each.name for each in file.path.parent.iterdir()) == ["tickets.json", "tickets.lock"]


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "\xff"])
def test_a_damaged_file_is_told_and_not_overwritten(file: TicketFile, text: str) -> None:
    file.path.parent.mkdir()
    file.path.write_text(text, "latin-1")
    with pytest.raises(SourceError, match=r"tickets.json is damaged"):
        file.keep(SERVER, {"alice": "1"})
    assert file.path.read_text("latin-1") == text


def test_a_file_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for act in (lambda each: each.of(SERVER), lambda each: each.keep(SERVER, {"a": "1"})):
        with pytest.raises(SourceError, match=r"file/tickets.json cannot be used: Not a directory|File exists"):
            act(TicketFile(tmp_path / "file" / "tickets.json"))


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    assert TicketFile().path == Path("/somewhere/harken/tickets.json")
    for odd in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", odd)
        monkeypatch.setenv("HOME", "/home/me")
        assert state_folder() == Path("/home/me/.local/state/harken")


def test_spellings_of_a_server() -> None:
    assert canonical("HTTP://Host:8080/Base/") == "http://host:8080/Base"
    assert canonical("http://host:8080") == canonical("http://host:8080/")
