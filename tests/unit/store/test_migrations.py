"""The tables of a store: made once, found again, brought up to date, and left alone by an earlier Harken."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from harken.errors import StoreError, StoreUnavailableError
from harken.store import Store, WebhookState, migrations, open_store
from harken.store.writing import Publication
from unit.store.contents import HOUR, NOW, WEBHOOK, create, event, subscription

OPENER = """
import sys, time
from harken.store import open_store, sqlite, postgres
import psycopg
time.sleep(max(0, float(sys.argv[2]) - time.time()))
store = open_store(sys.argv[1])
print(store.name)
store.close()
"""
MORE = "CREATE TABLE more (id {text} PRIMARY KEY){by_key}; INSERT INTO more (id) VALUES ('here')"


def layouts(store: Store) -> list[int]:
    with store.database.reading() as transaction:
        return [version for (version,) in transaction.rows("SELECT version FROM layout")]


def set_layout(store: Store, version: int) -> None:
    with store.database.writing() as transaction:
        transaction.run("UPDATE layout SET version = ?", (version,))


def test_a_new_store_is_empty_and_has_a_name_of_its_own(store: Store) -> None:
    assert store.sequence == store.last_notification == 0
    assert store.changes(0) == []
    with store.all_subscriptions() as (sequence, subscriptions):
        assert (sequence, list(subscriptions)) == (0, [])
    assert store.listed("", 10) == store.latest_events(10) == store.keys() == []
    assert (store.schema(), store.next_webhook(), store.deliveries()) == (None, None, {})
    assert len(bytes.fromhex(store.name)) == len(store.token_secret) == 32
    assert store.name != store.token_secret.hex()
    assert set(store.sizes().values()) == {0}


def test_a_store_that_is_opened_again_is_the_same(store: Store, opened: Callable[[], Store]) -> None:
    create(store, "a")
    again = opened()
    assert (again.name, again.token_secret) == (store.name, store.token_secret)
    assert again.origin != store.origin
    assert (again.sequence, [each.id for each in again.listed("", 10)]) == (1, ["a"])
    assert layouts(again) == [len(migrations.STEPS)]


def test_a_store_of_a_later_layout_is_rejected_and_left_as_it_is(store: Store, place: str) -> None:
    create(store, "a")
    set_layout(store, len(migrations.STEPS) + 1)
    with pytest.raises(StoreError, match=f"has layout {len(migrations.STEPS) + 1}") as raised:
        open_store(place)
    assert not isinstance(raised.value, StoreUnavailableError)
    assert raised.value.hint == "use the later Harken"
    assert (layouts(store), store.sequence) == ([len(migrations.STEPS) + 1], 1)


def test_an_earlier_layout_gets_the_steps_that_it_lacks_once(
    store: Store, opened: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    create(store, "a")
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, MORE))
    for _ in range(2):
        later = opened()
        assert layouts(later) == [len(migrations.STEPS)]
        with later.database.reading() as transaction:
            assert transaction.rows("SELECT id FROM more") == [("here",)]
        assert (later.name, later.sequence) == (store.name, 1)


def test_a_store_of_the_first_layout_keeps_what_it_has(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "STEPS", migrations.STEPS[:1])
        store = open_store(place)
        known = subscription("a", delivery=WEBHOOK)
        columns = ("id", "condition", "language", "owner", "labels", "delivery", "ticket", "created_at", "expires_at")
        with store.database.writing() as transaction:
            transaction.insert("subscriptions", (*columns, "since"), [known.row()[:10]])
            row = ("a", 0, "waiting", 2, NOW + HOUR, "HTTP 500")
            names = ("subscription", "acknowledged", "state", "attempts", "next_at", "last_error")
            transaction.insert("webhooks", names, [row])
            transaction.insert("answers", ("key", "answer", "time"), [(b"key", "before", NOW)])
        store.close()
    with closing(open_store(place)) as later:
        assert layouts(later) == [len(migrations.STEPS)]
        assert later.subscription("a") == known
        state = later.webhook("a")
        assert state is not None
        assert state[0] == WebhookState("a", 0, "waiting", 2, NOW + HOUR, "HTTP 500", failures=2)
        with later.writing(NOW) as writing:
            again = writing.append([Publication([event("a")], b"key", "now", b"whatever")], {})
        assert (again.repeated, again.conflicts) == ({0: "before"}, set()), "nobody had kept what the request said"


def test_a_step_that_fails_leaves_no_trace(store: Store, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = migrations.STEPS
    monkeypatch.setattr(migrations, "STEPS", (*steps, f"{MORE}; INSERT INTO nowhere (id) VALUES (1)"))
    with pytest.raises(StoreError, match="nowhere"):
        open_store(place)
    assert layouts(store) == [len(steps)]
    with pytest.raises(StoreError, match="more"), store.database.reading() as transaction:
        transaction.rows("SELECT id FROM more")


def test_threads_that_open_an_empty_store_at_once_make_it_once(place: str) -> None:
    many = 8
    barrier = threading.Barrier(many)
    found: list[str] = []
    failed: list[Exception] = []

    def open_one() -> None:
        barrier.wait()
        try:
            store = open_store(place)
            found.append(store.name)
            store.close()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=open_one) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert (len(found), len(set(found))) == (many, 1)


def test_processes_that_open_an_empty_store_at_once_make_it_once(place: str) -> None:
    start = str(time.time() + 3)
    command = [sys.executable, "-c", OPENER, place, start]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    done = [(process.communicate(timeout=60), process.returncode) for process in processes]
    assert [(error, code) for (_, error), code in done] == [("", 0)] * 4
    assert len({name for (name, _), _ in done}) == 1


def test_a_store_that_is_not_there_is_made_only_if_it_may_be(place: str) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        open_store(place, create=False)
    open_store(place).close()
    open_store(place, create=False).close()


def test_what_names_no_store_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="`mysql` names no store") as raised:
        open_store("mysql://user:topsecret@host/db")
    assert "topsecret" not in str(raised.value)
    with pytest.raises(StoreError, match="there is no folder"):
        open_store(str(tmp_path / "nowhere" / "store.db"))
    (tmp_path / "text.db").write_text("not a database\n" * 100)
    with pytest.raises(StoreError, match=r"text\.db cannot be used: file is not a database"):
        open_store(str(tmp_path / "text.db"))
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.processes
@pytest.mark.parametrize(
    "address",
    [
        "postgresql://harken:{password}@127.0.0.1:1/postgres",
        "postgresql://harken:topsecret@127.0.0.1:{port}/postgres",
        "postgresql://harken:topsecret%zz@127.0.0.1:{port}/postgres",
        "postgresql://harken:a@topsecret@127.0.0.1:{port}/postgres",
        "postgresql://harken:b/topsecret@127.0.0.1:{port}/postgres",
        "postgresql://127.0.0.1:{port}/postgres?password=topsecret&sslmod=x",
        "postgresql://127.0.0.1:{port}/postgres?user=harken&password=%topsecret",
    ],
)
def test_no_password_is_told_if_a_server_cannot_be_reached(address: str, url: str) -> None:
    port = url.rpartition(":")[2].partition("/")[0]
    with pytest.raises(StoreError) as raised:
        open_store(address.format(password="topsecret", port=port))
    shown = [str(raised.value), *(str(each) for each in chain(raised.value))]
    assert not [each for each in shown if "topsecret" in each or "127.0.0.1" in each]


def chain(error: BaseException) -> list[BaseException]:
    """What a traceback shows besides the error."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return [] if before is None else [before, *chain(before)]
