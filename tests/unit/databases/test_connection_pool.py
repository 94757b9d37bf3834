"""Pools of connections: idle connections are reused, and replaced if they were cut."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest

from harken.databases.connection_pool import Pool
from harken.databases.on_postgres import PostgresConnection
from harken.databases.on_sqlite import SqliteConnection


class Counted(SqliteConnection):
    """A connection that counts how many were opened and closed, and can be cut."""

    opened = 0
    closed = 0
    is_cut = False

    def connect(self) -> None:
        super().connect()
        Counted.opened += 1

    def close(self) -> None:
        Counted.closed += self.driver is not None
        super().close()

    def ask(self) -> int:
        if self.is_cut:
            raise ConnectionError
        return int(self.rows("SELECT 1")[0][0])

    def is_lost(self, error: BaseException) -> bool:
        return isinstance(error, ConnectionError)


@pytest.fixture(autouse=True)
def none_yet() -> None:
    Counted.opened = Counted.closed = 0


def open_count() -> int:
    return Counted.opened - Counted.closed


def test_one_after_the_other_takes_the_same_connection() -> None:
    pool = Pool(Counted)
    assert [pool.run(Counted.ask) for _ in range(3)] == [1, 1, 1]
    (first, _), (second, _) = pool.take(Counted.ask), pool.take(Counted.ask)
    assert first is not second
    for each in (first, second):
        pool.give_back(each)
    assert Counted.opened == 2
    pool.close()
    assert open_count() == 0


def test_threads_have_connections_of_their_own_and_few_are_kept() -> None:
    pool, together = Pool(Counted, most_idle=2), Barrier(6)

    def ask(connection: Counted) -> int:
        together.wait(10)
        return id(connection)

    with ThreadPoolExecutor(6) as threads:
        assert len({*threads.map(lambda _: pool.run(ask), range(6))}) == 6
    assert (Counted.opened, open_count()) == (6, 2)


def test_an_idle_connection_that_was_cut_is_replaced() -> None:
    pool = Pool(Counted)
    (first, _), (second, _) = pool.take(Counted.ask), pool.take(Counted.ask)
    for each in (first, second):
        pool.give_back(each)
    first.is_cut = second.is_cut = True
    assert pool.run(Counted.ask) == 1
    assert (Counted.opened, open_count()) == (3, 1)


def test_a_failure_on_a_new_connection_is_raised() -> None:
    def ask(connection: Counted) -> None:
        raise ConnectionError

    pool = Pool(Counted)
    with pytest.raises(ConnectionError):
        pool.run(ask)
    assert (Counted.opened, open_count()) == (1, 0)


def test_a_faulty_statement_is_not_tried_again() -> None:
    def ask(connection: Counted) -> None:
        connection.rows("SELECT * FROM nowhere")

    pool = Pool(Counted)
    assert pool.run(Counted.ask) == 1
    with pytest.raises(SqliteConnection.errors()):
        pool.run(ask)
    assert (Counted.opened, open_count()) == (1, 1)


def test_a_closed_connection_is_not_reused() -> None:
    pool = Pool(Counted)
    first, _ = pool.take(Counted.ask)
    first.close()
    pool.give_back(first)
    assert pool.take(Counted.ask)[0] is not first


def test_a_connection_given_back_to_a_closed_pool_is_closed() -> None:
    pool = Pool(Counted)
    connection, _ = pool.take(Counted.ask)
    pool.close()
    assert open_count() == 1
    pool.give_back(connection)
    assert open_count() == 0


def test_a_deleted_pool_closes_its_connections() -> None:
    pool = Pool(Counted)
    pool.run(Counted.ask)
    del pool
    gc.collect()
    assert open_count() == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_fork_has_connections_of_its_own(tmp_path: Path) -> None:
    pool = Pool(partial(Counted, str(tmp_path / "file.db")))
    own = pool.run(id)
    child = os.fork()
    if not child:
        is_other = pool.run(id) != own
        pool.close()
        os._exit(0 if is_other and open_count() == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pool.run(id) == own
    assert open_count() == 1


@pytest.mark.processes
def test_sessions_that_a_server_cuts_are_replaced(url: str) -> None:
    pool, other = Pool(partial(PostgresConnection, url)), PostgresConnection(url)
    other.connect()
    for connection, _ in [pool.take(lambda new: new.run("SELECT 1")) for _ in range(2)]:
        pool.give_back(connection)
    cut = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    other.rows(f"{cut} AND backend_type = 'client backend'")
    assert pool.run(lambda connection: connection.rows("SELECT 1")) == [(1,)]
    for each in (pool, other):
        each.close()
