"""Pools of connections: what is idle is taken again, and what was cut gives way to another."""

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
    """A connection that knows how many there are, and can be cut."""

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


def left() -> int:
    return Counted.opened - Counted.closed


def test_one_after_the_other_takes_the_same_connection() -> None:
    pool = Pool(Counted)
    assert [pool.ask(Counted.ask) for _ in range(3)] == [1, 1, 1]
    (first, _), (second, _) = pool.take(Counted.ask), pool.take(Counted.ask)
    assert first is not second
    for each in (first, second):
        pool.give_back(each)
    assert Counted.opened == 2
    pool.close()
    assert left() == 0


def test_threads_have_connections_of_their_own_and_few_are_kept() -> None:
    pool, together = Pool(Counted, most_idle=2), Barrier(6)

    def ask(connection: Counted) -> int:
        together.wait(10)
        return id(connection)

    with ThreadPoolExecutor(6) as threads:
        assert len({*threads.map(lambda _: pool.ask(ask), range(6))}) == 6
    assert (Counted.opened, left()) == (6, 2)


def test_what_was_cut_while_nobody_used_it_gives_way_to_another() -> None:
    pool = Pool(Counted)
    (first, _), (second, _) = pool.take(Counted.ask), pool.take(Counted.ask)
    for each in (first, second):
        pool.give_back(each)
    first.is_cut = second.is_cut = True
    assert pool.ask(Counted.ask) == 1
    assert (Counted.opened, left()) == (3, 1)


def test_what_fails_when_it_is_new_fails() -> None:
    def ask(connection: Counted) -> None:
        raise ConnectionError

    pool = Pool(Counted)
    with pytest.raises(ConnectionError):
        pool.ask(ask)
    assert (Counted.opened, left()) == (1, 0)


def test_a_statement_that_fails_by_itself_is_not_tried_again() -> None:
    def ask(connection: Counted) -> None:
        connection.rows("SELECT * FROM nowhere")

    pool = Pool(Counted)
    assert pool.ask(Counted.ask) == 1
    with pytest.raises(SqliteConnection.errors()):
        pool.ask(ask)
    assert (Counted.opened, left()) == (1, 1)


def test_what_is_closed_while_it_is_used_is_not_used_again() -> None:
    pool = Pool(Counted)
    first, _ = pool.take(Counted.ask)
    first.close()
    pool.give_back(first)
    assert pool.take(Counted.ask)[0] is not first


def test_what_is_given_back_to_a_closed_pool_is_closed() -> None:
    pool = Pool(Counted)
    connection, _ = pool.take(Counted.ask)
    pool.close()
    assert left() == 1
    pool.give_back(connection)
    assert left() == 0


def test_a_pool_that_is_gone_leaves_nothing_open() -> None:
    pool = Pool(Counted)
    pool.ask(Counted.ask)
    del pool
    gc.collect()
    assert left() == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_fork_has_connections_of_its_own(tmp_path: Path) -> None:
    pool = Pool(partial(Counted, str(tmp_path / "file.db")))
    own = pool.ask(id)
    child = os.fork()
    if not child:
        is_other = pool.ask(id) != own
        pool.close()
        os._exit(0 if is_other and left() == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pool.ask(id) == own
    assert left() == 1


@pytest.mark.processes
def test_sessions_that_a_server_cuts_are_made_again(url: str) -> None:
    pool, other = Pool(partial(PostgresConnection, url)), PostgresConnection(url)
    other.connect()
    for connection, _ in [pool.take(lambda new: new.run("SELECT 1")) for _ in range(2)]:
        pool.give_back(connection)
    cut = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    other.rows(f"{cut} AND backend_type = 'client backend'")
    assert pool.ask(lambda connection: connection.rows("SELECT 1")) == [(1,)]
    for each in (pool, other):
        each.close()
