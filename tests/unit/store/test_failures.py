"""What a store cannot do now is told as StoreUnavailableError, and done once it can be; the rest as StoreError."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harken.errors import StoreError, StoreUnavailableError
from harken.store import Store, Writing, open_store
from services.postgres import Postgres, running_postgres
from unit.store.contents import NOW, create, event, publish, subscription, told

BODY = b"x" * 50_000
LIMITED = """
import resource, sys
from harken.errors import StoreUnavailableError
from harken.store import open_store
from unit.store.contents import create, event, publish, told
store = open_store(sys.argv[1])
create(store, "a")
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, limit[1]))
count = 0
try:
    while count < 100:
        publish(store, event("a", body=b"x" * 50_000))
        count += 1
except StoreUnavailableError as error:
    print(error)
assert 0 < count < 100, count
assert told(store, "a") == [("a", number) for number in range(1, count + 1)]
resource.setrlimit(resource.RLIMIT_FSIZE, limit)
publish(store, event("a"))
assert told(store, "a") == [("a", number) for number in range(1, count + 2)]
store.close()
"""


# SQLite


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte. Only root can have one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)], capture_output=True, check=False, text=True
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(store: Store) -> None:
    for _ in range(100):
        publish(store, event("a", body=BODY))


@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no program mount")
def test_a_full_disk_is_told_and_the_next_write_works_once_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(400_000))
    store = open_store(str(small_disk / "store.db"))
    create(store, "a")
    with pytest.raises(StoreUnavailableError, match=r"store\.db cannot be used: .*(full|disk)"):
        fill(store)
    written = len(told(store, "a"))
    assert 0 < written < 20
    assert told(store, "a") == [("a", number) for number in range(1, written + 1)]
    with pytest.raises(StoreUnavailableError):
        publish(store, event("a", body=BODY))
    ballast.unlink()
    publish(store, event("a", body=BODY))
    assert told(store, "a") == [("a", number) for number in range(1, written + 2)]
    store.close()
    again = open_store(str(small_disk / "store.db"))
    assert len(told(again, "a")) == written + 1
    again.close()


def test_a_file_that_may_not_grow_is_like_a_full_disk(tmp_path: Path) -> None:
    tests = str(__file__).partition("/unit/")[0]
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "store.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": tests}, timeout=60)
    assert (done.stderr, done.returncode) == ("", 0)
    assert "store.db cannot be used" in done.stdout


@contextmanager
def without_privileges() -> Iterator[Path]:
    """A folder of somebody who is not root, and may write only where its owner lets it."""
    place = Path(tempfile.mkdtemp(prefix="harken-store-"))
    account = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
    if account is not None:
        os.chown(place, account, -1)
        os.seteuid(account)
    try:
        yield place
    finally:
        if account is not None:
            os.seteuid(0)
        shutil.rmtree(place)


def test_a_file_that_is_read_only_can_be_read_and_is_written_once_it_may_be() -> None:
    with without_privileges() as folder:
        path = folder / "store.db"
        first = open_store(str(path))
        create(first, "a")
        first.close()
        path.chmod(stat.S_IRUSR)
        store = open_store(str(path))
        assert [each.id for each in store.listed("", 9)] == ["a"]
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="readonly"):
                create(store, "b")
        for each in folder.iterdir():  # those beside it that SQLite made have its rights
            each.chmod(stat.S_IRUSR | stat.S_IWUSR)
        create(store, "b")
        assert [each.id for each in store.listed("", 9)] == ["a", "b"]
        store.close()


def test_a_folder_that_is_read_only_is_told() -> None:
    with without_privileges() as folder:
        path = folder / "store.db"
        open_store(str(path)).close()
        path.chmod(stat.S_IRUSR)
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        with pytest.raises(StoreUnavailableError, match=r"store\.db cannot be used"):
            open_store(str(path))
        with pytest.raises(StoreUnavailableError, match=r"other\.db cannot be used"):
            open_store(str(folder / "other.db"))
        folder.chmod(stat.S_IRWXU)
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
        open_store(str(path)).close()


def test_a_store_that_another_writes_to_for_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harken.store.sqlite._BUSY_SECONDS", 0.1)
    ours, theirs = (open_store(str(tmp_path / "store.db")) for _ in range(2))
    with theirs.writing(NOW) as writing:
        writing.create([subscription("a")])
        with pytest.raises(StoreUnavailableError, match="locked"):
            create(ours, "b")
    create(ours, "b")
    assert [each.id for each in ours.listed("", 9)] == ["a", "b"]
    for each in (ours, theirs):
        each.close()


# PostgreSQL


@pytest.fixture
def shared(url: str) -> Iterator[Store]:
    store = open_store(url)
    yield store
    store.close()


def cut(postgres: Postgres) -> int:
    """End every other connection. Returns how many there were."""
    own = "pid <> pg_backend_pid() AND backend_type = 'client backend'"
    return len(postgres.query(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {own}"))


@pytest.mark.processes
def test_a_connection_that_was_cut_while_it_was_idle(shared: Store, postgres: Postgres) -> None:
    create(shared, "a")
    with shared.all_subscriptions() as (_, every), shared.database.reading() as reading:
        list(every)
        reading.rows("SELECT 1")
    assert cut(postgres) == 3
    assert [each.id for each in shared.listed("", 9)] == ["a"]  # reading tries the next one
    create(shared, "b")  # nothing had been sent: writing tries another, too
    assert shared.sequence == 2


@pytest.mark.processes
def test_the_first_write_after_a_server_was_away_succeeds(shared: Store, postgres: Postgres) -> None:
    create(shared, "a")
    postgres.query("CREATE DATABASE elsewhere")
    away = Postgres(postgres.port, database="elsewhere")
    try:
        away.query(f"ALTER DATABASE {postgres.database} ALLOW_CONNECTIONS false")
        away.query(
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{postgres.database}'"
        )
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="PostgreSQL cannot be used now"):
                create(shared, "b")
    finally:
        away.query(f"ALTER DATABASE {postgres.database} ALLOW_CONNECTIONS true")
        postgres.query("DROP DATABASE elsewhere")
    create(shared, "b")
    assert shared.sequence == 2


@pytest.mark.processes
def test_a_connection_that_is_cut_in_the_middle_of_a_change(shared: Store, postgres: Postgres) -> None:
    create(shared, "a")

    def create_more(last: Callable[[Writing], object]) -> None:
        with shared.writing(NOW) as writing:
            writing.create([subscription("b")])
            cut(postgres)
            last(writing)

    with pytest.raises(StoreUnavailableError):
        create_more(lambda writing: writing.create([subscription("c")]))
    with pytest.raises(StoreUnavailableError):
        create_more(lambda writing: None)  # it is cut before it is committed
    assert (shared.sequence, shared.subscription("b")) == (1, None)
    create(shared, "b")
    assert [each.id for each in shared.listed("", 9)] == ["a", "b"]


@pytest.mark.processes
def test_a_connection_that_is_cut_in_the_middle_of_reading(shared: Store, postgres: Postgres) -> None:
    create(shared, *(f"id{number}" for number in range(5_000)))

    def read_all() -> None:
        with shared.all_subscriptions() as (_, every):
            next(every)
            cut(postgres)
            list(every)

    with pytest.raises(StoreUnavailableError):
        read_all()
    with shared.all_subscriptions() as (_, every):
        assert len(list(every)) == 5_000


@pytest.mark.processes
def test_a_server_that_takes_no_changes_for_a_while(shared: Store, postgres: Postgres) -> None:
    """As one does that another server has taken over from."""
    create(shared, "a")
    postgres.query(f"ALTER DATABASE {postgres.database} SET default_transaction_read_only = on")
    try:
        cut(postgres)
        for _ in range(3):
            with pytest.raises(StoreUnavailableError):
                create(shared, "b")
        assert [each.id for each in shared.listed("", 9)] == ["a"]
    finally:
        reset = f"ALTER DATABASE {postgres.database} RESET default_transaction_read_only"
        postgres.query(f"BEGIN READ WRITE; {reset}; COMMIT")
    create(shared, "b")
    assert shared.sequence == 2


@pytest.mark.processes
def test_a_server_that_is_gone() -> None:
    with running_postgres() as server:
        store = open_store(f"postgresql://{server.user}:{server.password}@127.0.0.1:{server.port}/{server.database}")
        create(store, "a")
    for _ in range(2):
        with pytest.raises(StoreUnavailableError):
            store.subscription("a")
        with pytest.raises(StoreUnavailableError):
            create(store, "b")
    store.close()


# Texts that a database cannot hold


@pytest.mark.parametrize("many", [1, 20])
def test_a_null_character_is_kept_by_sqlite_and_rejected_by_postgresql(
    store: Store, is_sqlite: bool, many: int
) -> None:
    create(store, "before")
    ids = [f"a\0{number}" for number in range(many)]
    if is_sqlite:
        create(store, *ids)
        assert [each.id for each in store.listed("a", many)] == sorted(ids)
        return
    with pytest.raises(StoreError, match="NUL") as raised:
        create(store, *ids)
    assert not isinstance(raised.value, StoreUnavailableError)
    with pytest.raises(StoreError, match="NUL"):
        store.subscription("a\0b")
    assert store.sequence == 1
    create(store, "after", labels={"x": "\0"})  # labels are JSON, where it is escaped
    found = store.subscription("after")
    assert found is not None
    assert found.labels == {"x": "\0"}
    publish(store, event("after", body=b"\0"))
    assert store.latest_events(1)[0].body == b"\0"


@pytest.mark.parametrize("many", [1, 20])
def test_a_lone_surrogate_is_rejected(store: Store, many: int) -> None:
    with pytest.raises(StoreError, match="lone surrogate") as raised:
        create(store, *(f"a\ud800{number}" for number in range(many)))
    assert not isinstance(raised.value, StoreUnavailableError)
    with pytest.raises(StoreError, match="lone surrogate"):
        store.subscription("a\ud800")
    create(store, "a")
    assert store.sequence == 1


def test_a_closed_store_is_not_written_to(store: Store) -> None:
    store.close()
    with pytest.raises(StoreError, match="closed"), store.writing():
        raise AssertionError("it is open")
