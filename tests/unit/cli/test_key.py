"""`harken key`: the first key of a store, and all others."""

from __future__ import annotations

import re
import stat
from contextlib import closing
from pathlib import Path

import pytest

from harken.server.credentials import hashed
from harken.store import open_store

from .conftest import Run, lines


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "harken.db"


def test_a_key_is_printed_once_and_kept_as_a_digest(run: Run, store: Path) -> None:
    result = run("key", "create", "--store", store, "--owner", "me", "--scope", "admin", "--scope", "publish")
    assert result.exit_code == 0
    key = result.stdout.strip()
    assert re.fullmatch(r"hk_[\w-]{43}", key), "nothing else is on standard output"
    assert "me: admin, publish" in result.stderr
    assert key not in result.stderr
    with closing(open_store(str(store))) as opened:
        found = opened.key(hashed(key))
    assert found is not None
    assert (found.owner, found.scopes, found.name) == ("me", {"admin", "publish"}, None)
    assert key.encode() not in store.read_bytes()


def test_keys_are_listed_without_the_keys(run: Run, store: Path) -> None:
    made = run("key", "create", "--store", store, "--owner", "ü", "--scope", "publish", "--name", "the till", "--json")
    (first,) = lines(made.stdout)
    key = first.pop("key")
    second = run("key", "create", "--store", store, "--owner", "bob", "--scope", "subscribe").stdout.strip()
    listed = lines(run("key", "list", "--store", store, "--json").stdout)
    assert listed[0] == first
    assert [(each["owner"], each["scopes"], each["name"]) for each in listed] == [
        ("ü", ["publish"], "the till"),
        ("bob", ["subscribe"], None),
    ]
    table = run("key", "list", "--store", store).stdout
    assert all(each["id"] in table for each in listed)
    assert "the till" in table
    assert key not in table
    assert second not in table


def test_keys_are_removed(run: Run, store: Path) -> None:
    for owner in ("a", "b", "c"):
        run("key", "create", "--store", store, "--owner", owner, "--scope", "admin")
    ids = [each["id"] for each in lines(run("key", "list", "--store", store, "--json").stdout)]
    wrong = run("key", "remove", "--store", store, ids[0], "nothing")
    assert wrong.exit_code == 3
    assert "there is no key 'nothing'" in wrong.stderr
    assert len(lines(run("key", "list", "--store", store, "--json").stdout)) == 3, "then none is removed"
    assert run("key", "remove", "--store", store, *ids[:2]).exit_code == 0
    assert [each["owner"] for each in lines(run("key", "list", "--store", store, "--json").stdout)] == ["c"]
    assert run("key", "remove", "--store", store, ids[0]).exit_code == 3


def test_no_keys(run: Run, store: Path) -> None:
    with closing(open_store(str(store))):
        pass
    result = run("key", "list", "--store", store)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "there are no keys\n")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["create", "--owner", "x"], 2, "--scope"),
        (["create", "--scope", "admin"], 2, "--owner"),
        (["create", "--owner", "x", "--scope", "everything"], 2, "everything"),
        (["create", "--owner", "", "--scope", "admin"], 3, "1 to 200 characters"),
        (["create", "--owner", "a\tb", "--scope", "admin"], 3, "1 to 200 characters"),
        (["create", "--owner", "x", "--scope", "admin", "--name", "n" * 201], 3, "1 to 200 characters"),
        (["list"], 3, "there is no store"),
        (["remove", "x"], 3, "there is no store"),
        (["remove"], 2, "ID"),
    ],
)
def test_what_cannot_be(run: Run, store: Path, words: list[str], code: int, told: str) -> None:
    result = run("key", *words, "--store", store)
    assert (result.exit_code, told in result.stderr) == (code, True), result.stderr
    assert not store.exists(), "nothing is made"


def test_the_store_of_the_environment(run: Run, store: Path) -> None:
    result = run("key", "create", "--owner", "x", "--scope", "admin", env={"HARKEN_STORE": str(store)})
    assert result.exit_code == 0
    assert stat.S_ISREG(store.stat().st_mode)


@pytest.mark.parametrize("command", [["key"], ["key", "create"], ["key", "list"], ["key", "remove"], ["serve"]])
def test_help_fits_80_columns_and_has_an_example(run: Run, command: list[str]) -> None:
    result = run(*command, "--help", env={"COLUMNS": "80"}, prog_name="harken")
    assert result.exit_code == 0
    assert all(len(line) <= 80 for line in result.stdout.splitlines())
    assert f"harken {' '.join(command)}" in result.stdout.partition("Example")[2]
