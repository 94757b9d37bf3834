"""A store as the source of subscriptions: read once, followed by its log, and without those that have expired."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harken.engine import Engine
from harken.errors import StoreError
from harken.pipeline.config import Config, Sink, SourceConfig
from harken.pipeline.config import SubscriptionsConfig as Given
from harken.pipeline.matched_subscriptions import Subscriptions
from harken.pipeline.reports import RefreshReport
from harken.pipeline.stored_subscriptions import StoredSubscriptions
from harken.store import Store, StoredSubscription, open_store
from harken.store.store import microseconds
from harken.store.writing import Writing
from services.postgres import Postgres, running_postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = 3_600_000_000


class Stored:
    """A store that a server would change, and what of it is read."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.store = open_store(place)

    def create(self, *ids: str, where: str = "price < 5", seconds: float = 3_600, **given: Any) -> None:
        now = microseconds()
        expires_at = now + int(seconds * 1e6)
        made = [StoredSubscription(id, where, "sql", expires_at, now, ticket=id.encode(), **given) for id in ids]
        with self.store.writing() as writing:
            assert writing.create(made) == made

    def write(self, change: Callable[[Writing], object]) -> None:
        with self.store.writing() as writing:
            change(writing)

    def where(self, id: str, where: str) -> None:
        known = self.store.subscription(id)
        assert known is not None
        self.write(lambda writing: writing.change(StoredSubscription(id, where, "sql", known.expires_at, 0)))


def later(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """Have the source of subscriptions read a clock that is ahead."""
    monkeypatch.setattr(
        "harken.pipeline.stored_subscriptions.microseconds", lambda: microseconds() + seconds * 1_000_000
    )


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def url(postgres: Postgres) -> str:
    postgres.query("DROP SCHEMA IF EXISTS harken CASCADE")
    return f"postgresql://{postgres.user}:{postgres.password}@127.0.0.1:{postgres.port}/{postgres.database}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.processes)])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stored]:
    sqlite = str(tmp_path / "harken.db")
    found = Stored(sqlite if request.param == "sqlite" else request.getfixturevalue("url"))
    with closing(found.store):
        yield found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How the store is read: "everything", or the sequence from which on changes are."""
    told: list[str] = []
    everything, changes = Store.all_subscriptions, Store.changes

    def read_everything(store: Store) -> Any:
        told.append("everything")
        return everything(store)

    def read_changes(store: Store, after: int, limit: int = 2) -> Any:
        told.append(str(after))
        return changes(store, after, limit)

    monkeypatch.setattr(Store, "all_subscriptions", read_everything)
    monkeypatch.setattr(Store, "changes", read_changes)
    return told


def polled(source: StoredSubscriptions) -> dict[str, str]:
    found = source.poll()
    assert (found.faults, found.may_be_empty) == ([], True)
    return {id: record.where for id, record in found.records.items()}


def test_only_what_changed_is_read_again(stored: Stored, reads: list[str]) -> None:
    source = StoredSubscriptions(stored.place)
    stored.create("a", "b", "c")
    assert polled(source) == dict.fromkeys("abc", "price < 5")
    assert reads == ["everything"]
    states = [source.state()]
    assert states == [source.state()]
    stored.where("a", "price < 6")
    stored.write(lambda writing: writing.remove("b"))
    stored.create("d")
    stored.write(lambda writing: writing.put_schema(3, "[attributes]"))
    states.append(source.state())
    reads.clear()
    assert polled(source) == {"a": "price < 6", "c": "price < 5", "d": "price < 5"}
    assert reads == ["3", "5", "7"]
    assert polled(source) == {"a": "price < 6", "c": "price < 5", "d": "price < 5"}
    assert len(set(states)) == 2
    assert states[1].split()[:2] == [stored.store.name, "7"]


def test_records_have_owner_labels_and_creation(stored: Stored) -> None:
    stored.create("a", owner="Ann", labels={"team": "red"})
    known = stored.store.subscription("a")
    assert known is not None
    (record,) = StoredSubscriptions(stored.place).poll().records.values()
    assert record.fields == {"owner": "Ann", "labels": {"team": "red"}, "created_at": known.created_at}


def test_a_log_that_was_pruned_and_another_store_are_read_as_a_whole(stored: Stored, reads: list[str]) -> None:
    source = StoredSubscriptions(stored.place)
    stored.create("a")
    polled(source)
    stored.create("b", "c")
    stored.write(lambda writing: writing.prune_changes(microseconds() + HOUR, up_to=2))
    reads.clear()
    assert list(polled(source)) == ["a", "b", "c"]
    assert reads == ["1", "everything"]
    with stored.store.database.writing() as transaction:
        transaction.run("UPDATE settings SET value = 'another' WHERE name = 'store'")
    stored.write(lambda writing: writing.remove("c"))
    reads.clear()
    assert list(polled(source)) == ["a", "b"]
    assert reads == ["everything"]


def test_what_has_expired_is_left_out_before_it_is_swept_and_after(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = StoredSubscriptions(stored.place)
    stored.create("a", seconds=60)
    stored.create("b")
    stored.create("gone", seconds=-1)
    before = source.state()
    assert set(polled(source)) == {"a", "b"}
    assert source.state() == before
    later(monkeypatch, seconds=61)
    assert source.state() != before
    assert set(polled(source)) == {"b"}
    stored.write(lambda writing: writing.renew("a", microseconds() + HOUR))
    assert set(polled(source)) == {"a", "b"}
    stored.write(lambda writing: writing.remove_expired(microseconds()))
    assert set(polled(source)) == {"a", "b"}


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    source = StoredSubscriptions(str(tmp_path / "nowhere.db"))
    for read in (source.state, source.poll):
        with pytest.raises(StoreError, match="there is no store"):
            read()
    assert list(tmp_path.iterdir()) == []


# As the subscriptions of a pipeline


@pytest.fixture
def rules(tmp_path: Path) -> Iterator[Stored]:
    found = Stored(str(tmp_path / "harken.db"))
    with closing(found.store):
        yield found


def opened(rules: Stored, spark: SparkSession, **given: Any) -> Subscriptions:
    settings = {"store": rules.place, "keep": f"{rules.place}-index", **given}
    source, sink = SourceConfig(format="rate"), Sink(name="console", format="console")
    config = Config(
        name="p",
        mode="stream",
        source=source,
        subscriptions=Given(**settings),
        sinks=(sink,),
        checkpoint=f"{rules.place}-state",
    )
    return Subscriptions(config, spark)


def texts(subscriptions: Subscriptions) -> dict[str, str]:
    version = subscriptions.current()
    return {each.id: each.where for each in Engine.load(Path(version.root, version.folder))}


def test_changes_of_the_store_make_the_next_version(rules: Stored, spark: SparkSession) -> None:
    rules.create("a", "b", owner="Ann", labels={"team": "red"})
    subscriptions = opened(rules, spark)
    assert texts(subscriptions) == {"a": "price < 5", "b": "price < 5"}
    assert subscriptions.refresh() is None
    rules.where("a", "price < 6")
    rules.write(lambda writing: writing.remove("b"))
    rules.create("c")
    change = subscriptions.refresh()
    assert change == RefreshReport(subscriptions.current(), added=1, replaced=1, removed=1)
    assert texts(subscriptions) == {"a": "price < 6", "c": "price < 5"}
    rules.write(lambda writing: writing.renew("a", microseconds() + 2 * HOUR))
    assert subscriptions.refresh() is None
    assert opened(rules, spark).current() == subscriptions.current()  # nothing is built that is kept


def test_what_was_kept_is_changed_by_what_changed_since(rules: Stored, spark: SparkSession) -> None:
    rules.create("a", "b", labels={"team": "red"})
    opened(rules, spark).current()
    rules.create("c")
    again = opened(rules, spark)
    again.current()
    assert again.opening == RefreshReport(again.current(), added=1)


def test_an_id_that_is_used_again_is_another_subscription(rules: Stored, spark: SparkSession) -> None:
    rules.create("a")
    subscriptions = opened(rules, spark)
    subscriptions.current()
    rules.write(lambda writing: writing.remove("a"))
    rules.create("a")
    change = subscriptions.refresh()
    assert change is not None
    assert (change.added, change.replaced, change.removed) == (0, 1, 0)


def test_a_store_may_be_empty_at_first_and_at_last(
    rules: Stored, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscriptions = opened(rules, spark)
    assert texts(subscriptions) == {}
    rules.create("a", seconds=600)
    assert subscriptions.refresh() is not None
    assert texts(subscriptions) == {"a": "price < 5"}
    later(monkeypatch, seconds=601)
    change = subscriptions.refresh()
    assert change is not None
    assert (change.removed, change.rejected) == (1, None)
    assert texts(subscriptions) == {}


def test_a_faulty_subscription_is_told_by_its_id(rules: Stored, spark: SparkSession) -> None:
    rules.create("a")
    subscriptions = opened(rules, spark)
    subscriptions.current()
    rules.create("b", where="price <")
    change = subscriptions.refresh()
    assert change is not None
    assert change.rejected is not None
    assert "'b': " in change.rejected
    skipping = opened(rules, spark, on_fault="skip", keep=None)
    assert texts(skipping) == {"a": "price < 5"}


def test_a_store_that_cannot_be_read_is_told_once_and_the_last_version_goes_on(
    rules: Stored, spark: SparkSession
) -> None:
    rules.create("a")
    subscriptions = opened(rules, spark)
    first = subscriptions.current()
    place = Path(rules.place)
    place.rename(place.with_name("elsewhere.db"))
    change = subscriptions.refresh()
    assert change is not None
    assert "there is no store" in (change.rejected or "")
    assert subscriptions.refresh() is None
    assert subscriptions.current() is first
    place.with_name("elsewhere.db").rename(place)
    assert subscriptions.refresh() is None
