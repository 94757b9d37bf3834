"""A saved index that is torn, missing, of another store or of another past: the index is built from the store."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harken.events.pieces import Piece
from harken.server.publications import Incoming
from harken.server.served_index import ServedIndex
from harken.server.service import Service
from harken.server.settings import ServerSettings
from harken.server.subscribing import SubscriptionDraft
from harken.store import StoredDelivery, open_store
from harken.store.stored import JSON
from unit.server.faults.server_process import ServerProcess, ending, matches, set_options, subscribe

MOST = 60


class Place:
    """A folder with a store and its snapshot, and the subscriptions that should be there: `n >= limit` each."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.store = folder / "harken.db"
        self.snapshots = folder / "snapshots"
        self.settings = ServerSettings(store=str(self.store), snapshot=str(self.snapshots))
        self.limits: dict[str, int] = {}

    def serve(self, begin: int = 0, end: int = 0, *, leaving: tuple[str, ...] = (), is_saved: bool = True) -> None:
        """Run a server, which takes some subscriptions and lets go of some. Its past may end without a snapshot."""
        before = self.folder / "before"
        if not is_saved and self.snapshots.exists():
            shutil.copytree(self.snapshots, before)
        asyncio.run(self._serve(begin, end, leaving))
        if not is_saved:
            shutil.rmtree(self.snapshots, ignore_errors=True)
            if before.exists():
                before.rename(self.snapshots)

    async def _serve(self, begin: int, end: int, leaving: tuple[str, ...]) -> None:
        service = Service(self.settings)
        await service.start()
        try:
            self.check(service)
            for number in range(begin, end):
                draft = SubscriptionDraft(f"s{number}", f"n >= {number}", "sql", 600, None, {}, StoredDelivery())
                await service.subscriptions.subscribe([draft])
                self.limits[draft.id] = number
            for id in leaving:
                await service.subscriptions.unsubscribe(id)
                del self.limits[id]
            self.check(service)
        finally:
            await service.stop()

    def check(self, service: Service) -> None:
        """The index agrees with what should be there."""
        events = [Piece(b'{"n": %d}' % number, 1) for number in range(MOST)]
        found = service.matching.matched([Incoming(JSON, events)])[0].ids
        assert [set(each) for each in found] == [
            {id for id, limit in self.limits.items() if number >= limit} for number in range(MOST)
        ]

    def is_loaded(self) -> bool:
        """Whether the snapshot is used. Whatever is opened must be right."""
        store = open_store(str(self.store))
        try:
            index = ServedIndex(store, self.settings)
            index.open()
            assert sorted(each.id for each in index.engine) == sorted(self.limits)
            for number in range(0, MOST, 7):
                wanted = {id for id, limit in self.limits.items() if number >= limit}
                assert set(index.engine.match({"n": number}).ids) == wanted
            assert index.sequence == store.sequence
            return index.engine.version is not None
        finally:
            store.close()

    def files(self) -> list[Path]:
        return sorted(each for each in self.snapshots.rglob("*") if each.is_file() and each.stat().st_size)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path / "first")
    found.serve(0, 20)
    found.serve(20, 30, leaving=("s3", "s25"))
    return found


def test_a_snapshot_is_used(place: Place) -> None:
    assert place.is_loaded()
    place.serve(30, 35, is_saved=False)
    assert place.is_loaded(), "changes since are made"
    place.serve(leaving=("s4",), is_saved=False)
    assert place.is_loaded()


def test_a_snapshot_that_is_missing_is_made_anew(place: Place) -> None:
    shutil.rmtree(place.snapshots)
    assert not place.is_loaded()
    place.serve(30, 31)
    assert place.is_loaded()


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def removed(path: Path) -> None:
    path.unlink()


def garbled(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * (path.stat().st_size // 256 + 1))


@pytest.mark.parametrize("damage", [truncated, flipped, emptied, removed, garbled])
def test_a_snapshot_that_is_torn_is_left_aside(place: Place, damage: Callable[[Path], None], tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(place.snapshots, whole)
    files = place.files()
    assert len(files) > 2
    used = 0
    for file in files:
        damage(file)
        used += place.is_loaded()
        shutil.rmtree(place.snapshots)
        shutil.copytree(whole, place.snapshots)
    assert used < len(files)
    for file in place.files():
        damage(file)
    assert not place.is_loaded()
    place.serve(30, 31)
    assert place.is_loaded(), "it is replaced"


def test_a_snapshot_of_another_store_is_left_aside(place: Place, tmp_path: Path) -> None:
    other = Place(tmp_path / "second")
    other.serve(1, 1 + open_store(str(place.store)).sequence)
    (theirs,), (ours,) = ([each for each in found.snapshots.iterdir() if each.is_dir()] for found in (other, place))
    for found in (theirs, *theirs.parent.glob(f"{theirs.name}.*")):
        goal = ours.parent / found.name.replace(theirs.name, ours.name)
        if found.is_dir():
            shutil.rmtree(goal)
            shutil.copytree(found, goal)
        else:
            shutil.copy(found, goal)
    assert not place.is_loaded()


def test_a_snapshot_of_a_past_that_was_taken_back_is_left_aside(place: Place, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    shutil.copy(place.store, backup)
    limits = dict(place.limits)
    place.serve(30, 40)
    assert place.is_loaded()
    later = tmp_path / "later"
    shutil.copytree(place.snapshots, later)

    shutil.copy(backup, place.store)  # as if the disk had failed
    place.limits = limits
    place.serve(45, 47, is_saved=False)  # it comes less far than the first time
    place.serve(47, 60, is_saved=False)  # then it overtakes what was saved
    assert not place.is_loaded()

    shutil.rmtree(place.snapshots, ignore_errors=True)
    shutil.copytree(later, place.snapshots)  # nobody has looked at it meanwhile
    assert not place.is_loaded()


def test_a_snapshot_that_is_older_than_the_log_is_left_aside(place: Place) -> None:
    place.serve(30, 40, leaving=("s5",), is_saved=False)
    store = open_store(str(place.store))
    with store.writing() as writing:
        assert writing.prune_changes(1 << 60, store.sequence - 3)
    store.close()
    assert not place.is_loaded()
    place.serve(40, 41)
    assert place.is_loaded()


def test_a_server_that_is_behind_the_log_builds_its_index_while_it_serves(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """As when it was asleep for so long that another process has pruned the log."""
    theirs, ours = open_store(str(place.store)), open_store(str(place.store))
    index = ServedIndex(ours, place.settings)
    index.open()
    before = index.engine
    asyncio.run(_grow(place, theirs.sequence))
    with theirs.writing() as writing:
        writing.prune_changes(1 << 60, theirs.sequence - 1)
    with caplog.at_level(logging.WARNING):
        index.follow()
    assert "rebuilt" in caplog.text
    assert index.engine is not before
    assert sorted(each.id for each in index.engine) == sorted(place.limits)
    assert index.sequence == theirs.sequence
    theirs.close()
    ours.close()


async def _grow(place: Place, known: int) -> None:
    await place._serve(30, 35, ("s7",))
    store = open_store(str(place.store))
    assert store.sequence == known + 6
    store.close()


@pytest.mark.processes
def test_a_server_with_a_torn_snapshot_starts_and_is_right(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, *set_options(snapshot_changes=1), "-v")
    with ending(server):
        server.start()
        with server.client() as client:
            for number in range(10):
                subscribe(client, f"n >= {number}", f"s{number}")
        server.stop()
        server.start()
        assert "10 subscriptions loaded" in server.log()
        server.kill()
        for file in server.snapshots.rglob("*"):
            if file.is_file():
                truncated(file)
        server.start()
        assert "cannot be used" in server.log()
        with server.client() as client:
            assert matches(client, {"n": 4}, {"n": 100}) == [
                {f"s{number}" for number in range(5)},
                {f"s{number}" for number in range(10)},
            ]
