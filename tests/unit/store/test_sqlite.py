"""The files of a store on SQLite: for their owner only, unless they were there before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken.store import open_store
from unit.store.contents import create


@pytest.fixture
def usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def rights(folder: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()}


@pytest.mark.usefixtures("usual_mask")
def test_a_new_store_is_for_its_owner_only(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store.db"))
    create(store, "a")
    assert rights(tmp_path) == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    store.close()


@pytest.mark.usefixtures("usual_mask")
def test_a_store_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_store(str(path)).close()
    path.chmod(0o640)
    store = open_store(str(path))
    create(store, "a")
    assert set(rights(tmp_path).values()) == {0o640}
    store.close()
