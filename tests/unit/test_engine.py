"""The engine: subscriptions come, go and are replaced; events are matched alone, in batches and by many threads."""

from __future__ import annotations

import gc
import json
import pickle
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import pyarrow
import pytest

from harken import Engine, Event, Limits, Schema
from harken.errors import (
    CapabilityError,
    CheckError,
    ContradictionError,
    DuplicateIdError,
    EventError,
    EventTypeError,
    ExtensionError,
    HarkenError,
    InvalidIdError,
    InvalidValueError,
    LanguageError,
    LimitError,
    ParseError,
    SchemaError,
    SegmentError,
    SourceError,
    SubscriptionError,
    UnavailableError,
    UnknownIdError,
)
from harken.events import Decoded, EventBatch, validate
from harken.internals import join_engines
from harken.matchers import ALGORITHMS, Capability, MatchResult, Trait
from harken.matchers.base import FormOf
from harken.matchers.naive import Naive, NaiveSnapshot
from harken.schema import (
    BUILT_IN,
    EventType,
    NewAttribute,
    NewEventType,
    NewOptionalAttribute,
    Rule,
)

ALWAYS_TRUE = "it is always true: every event will match"


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.subscribe("one", "x = 1")
    engine.subscribe("two", "x = 2")
    return engine


def market_schema() -> Schema:
    """Sales, which may have a price."""
    sale = EventType("sale", {("price",): Rule()})
    return Schema(attributes={("price",): BUILT_IN["float"]}, event_types={"sale": sale})


@pytest.fixture
def market() -> Engine:
    return Engine(market_schema())


RENTAL = NewEventType(EventType("rental", {}))


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, type], None]:
    """Adds an algorithm for the time of a test."""

    def register(name: str, kind: type) -> None:
        module = ModuleType(f"matcher_{name}")
        module.__dict__[kind.__name__] = kind
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(ALGORITHMS, name, f"{module.__name__}:{kind.__name__}")

    return register


# Subscribing


def test_subscribe_gives_the_subscription() -> None:
    subscription = Engine().subscribe("cheap", "price < 5", fields={"owner": "Ada"})
    assert (subscription.id, subscription.where, subscription.language) == ("cheap", "price < 5", "sql")
    assert subscription.fields == {"owner": "Ada"}
    assert subscription.warnings == ()


def test_an_integer_is_an_id_by_its_digits() -> None:
    engine = Engine()
    engine.subscribe(7, "x = 1")
    assert engine.match({"x": 1}).ids == ["7"]


def test_an_integer_id_is_found_by_the_integer_too() -> None:
    engine = Engine()
    subscription = engine.subscribe(7, "x = 1")
    assert 7 in engine
    assert engine.subscription(7) is engine.subscription("7") is subscription
    engine.unsubscribe(7)
    assert 7 not in engine


def test_the_engine_goes_over_its_subscriptions(engine: Engine) -> None:
    assert [subscription.id for subscription in engine] == ["one", "two"]


def test_subscriptions_may_go_while_the_engine_goes_over_them(engine: Engine) -> None:
    for subscription in engine:
        engine.unsubscribe(subscription.id)
    assert len(engine) == 0


@pytest.mark.parametrize("id", ["", None, True, 1.5, b"a", ("a",)])
def test_what_cannot_be_an_id_is_rejected(id: Any) -> None:
    engine = Engine()
    with pytest.raises(InvalidIdError):
        engine.subscribe(id, "x = 1")
    assert len(engine) == 0


def test_a_taken_id_is_rejected(engine: Engine) -> None:
    with pytest.raises(DuplicateIdError, match="the id 'one' is taken") as caught:
        engine.subscribe("one", "x = 3")
    assert caught.value.hint == "pass replace=True to replace the subscription"
    assert engine.subscription("one").where == "x = 1"


def test_replace(engine: Engine) -> None:
    engine.subscribe("one", "x = 3", replace=True)
    assert engine.match({"x": 1}).ids == []
    assert engine.match({"x": 3}).ids == ["one"]
    assert len(engine) == 2


def test_replace_takes_a_new_id_too(engine: Engine) -> None:
    engine.subscribe("three", "x = 3", replace=True)
    assert engine.match({"x": 3}).ids == ["three"]


def test_a_faulty_replacement_leaves_the_old(engine: Engine) -> None:
    with pytest.raises(ParseError):
        engine.subscribe("one", "x = = 3", replace=True)
    assert engine.match({"x": 1}).ids == ["one"]


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("x <", ParseError),
        ("x < 1 AND x > 2", ContradictionError),
        ("near('Bronx', ?d)", UnavailableError),
        (5, LanguageError),
        ("x" * 2_000_000, LimitError),
    ],
)
def test_a_faulty_text_is_rejected_and_leaves_nothing(where: Any, error: type[HarkenError]) -> None:
    engine = Engine()
    with pytest.raises(error):
        engine.subscribe("a", where)
    assert "a" not in engine
    assert engine.stats()["matcher"]["rows"] == 0


def test_a_text_is_checked_against_the_schema(market: Engine) -> None:
    with pytest.raises(CheckError):
        market.subscribe("a", "prise < 5")


def test_another_language_is_not_available() -> None:
    with pytest.raises(UnavailableError, match="'cypher'") as caught:
        Engine().subscribe("a", "/x", language="cypher")
    assert caught.value.hint == "this version speaks 'sql', 'xpath'"


def test_limits_are_the_engine_s() -> None:
    with pytest.raises(LimitError) as caught:
        Engine(limits=Limits(max_values=1)).subscribe("a", "x IN (1, 2)")
    assert caught.value.limit == "max_values"


def test_a_tautology_is_taken_with_a_warning() -> None:
    engine = Engine()
    assert engine.subscribe("all", "x IS NULL OR x IS NOT NULL").warnings == (ALWAYS_TRUE,)
    assert engine.match({}).ids == ["all"]


def test_contains_and_len(engine: Engine) -> None:
    assert "one" in engine
    assert "three" not in engine
    assert len(engine) == 2


# Subscribing many


def test_many_from_pairs() -> None:
    engine = Engine()
    report = engine.subscribe_many([("a", "x = 1"), ("b", "x = 1")])
    assert (report.accepted, report.faults, report.warnings) == (2, [], [])
    assert sorted(engine.match({"x": 1}).ids) == ["a", "b"]


def test_many_from_a_generator_of_mappings_keep_their_fields() -> None:
    engine = Engine()
    engine.subscribe_many({"id": n, "where": f"x = {n}", "owner": f"user {n}"} for n in range(3))
    assert engine.subscription("2").fields == {"owner": "user 2"}


def test_many_from_an_arrow_table() -> None:
    engine = Engine()
    report = engine.subscribe_many(
        pyarrow.table({"id": [1, 2, 3], "where": ["x = 1", "x = = 1", "x = 1"], "price": [1.5, 2.5, None]})
    )
    assert report.accepted == 2
    assert [(fault.position, fault.id) for fault in report.faults] == [(1, "2")]
    assert sorted(engine.match({"x": 1}).ids) == ["1", "3"]
    assert engine.subscription("1").fields == {"price": 1.5}


def test_many_report_each_fault_and_keep_the_rest(engine: Engine) -> None:
    report = engine.subscribe_many(
        [
            ("a", "x = 1"),
            ("b", "x = "),
            ("a", "x = 2"),
            ("one", "x = 3"),
            "not a pair",
            {"id": "c"},
            ("", "x = 1"),
            ("d", "x = 1"),
        ]
    )
    assert report.accepted == 2
    assert [(fault.position, fault.id, type(fault.error).__name__) for fault in report.faults] == [
        (1, "b", "ParseError"),
        (2, "a", "DuplicateIdError"),
        (3, "one", "DuplicateIdError"),
        (4, None, "SubscriptionError"),
        (5, "c", "SubscriptionError"),
        (6, "", "InvalidIdError"),
    ]
    assert sorted(engine.match({"x": 1}).ids) == ["a", "d", "one"]


def test_many_after_a_faulty_one_its_id_is_free() -> None:
    engine = Engine()
    report = engine.subscribe_many([("a", "x ="), ("a", "x = 1")])
    assert report.accepted == 1
    assert engine.match({"x": 1}).ids == ["a"]


def test_many_with_replace_the_last_wins(engine: Engine) -> None:
    report = engine.subscribe_many([("one", "x = 5"), ("one", "x = 6"), ("one", "x =")], replace=True)
    assert report.accepted == 1
    assert [fault.position for fault in report.faults] == [2]
    assert engine.match({"x": 6}).ids == ["one"]
    assert engine.match({"x": 1}).ids == engine.match({"x": 5}).ids == []


def test_many_warn_by_id() -> None:
    report = Engine().subscribe_many([("a", "x = 1"), ("all", "TRUE")])
    assert report.warnings == [("all", ALWAYS_TRUE)]


def test_many_survive_an_id_that_python_does_not_print() -> None:
    report = Engine().subscribe_many([(10**5000, "x = 1"), ("b", "x = 1")])
    assert (report.accepted, len(report.faults)) == (1, 1)


def broken() -> Iterator[tuple[str, str]]:
    yield "a", "x = 1"
    raise OSError("the disk is gone")


def test_many_from_a_source_that_breaks_take_none() -> None:
    engine = Engine()
    with pytest.raises(OSError, match="the disk is gone"):
        engine.subscribe_many(broken())
    assert len(engine) == 0


def test_many_from_arrow_that_no_subscription_fits() -> None:
    with pytest.raises(SourceError):
        Engine().subscribe_many(
            pyarrow.table({"id": ["a"], "where": ["x = 1"], "took": [pyarrow.scalar(5, "duration[s]")]})
        )


# The collector is paused while many come, and what it was before it is again


@pytest.fixture
def collector() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.usefixtures("collector")
def test_the_collector_is_paused_while_many_come() -> None:
    seen: list[bool] = []

    def source() -> Iterator[tuple[str, str]]:
        seen.append(gc.isenabled())
        yield "a", "x = 1"

    Engine().subscribe_many(source())
    assert seen == [False]
    assert gc.isenabled()


@pytest.mark.usefixtures("collector")
def test_the_collector_runs_again_after_a_source_that_breaks() -> None:
    with pytest.raises(OSError, match="the disk is gone"):
        Engine().subscribe_many(broken())
    assert gc.isenabled()


@pytest.mark.usefixtures("collector")
def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    Engine().subscribe_many([("a", "x = 1")])
    assert not gc.isenabled()


# Unsubscribing, and numbers


def test_unsubscribe(engine: Engine) -> None:
    engine.unsubscribe("one")
    assert "one" not in engine
    assert engine.match({"x": 1}).ids == []
    assert engine.match({"x": 2}).ids == ["two"]


def test_unsubscribe_what_is_not_there(engine: Engine) -> None:
    with pytest.raises(UnknownIdError, match="there is no subscription 'onne'") as caught:
        engine.unsubscribe("onne")
    assert caught.value.hint == "did you mean `one`?"


def test_an_id_is_free_after_it_is_unsubscribed(engine: Engine) -> None:
    engine.unsubscribe("one")
    engine.subscribe("one", "x = 9")
    assert engine.match({"x": 9}).ids == ["one"]


def test_numbers_are_small_and_different() -> None:
    engine = Engine()
    engine.subscribe_many((n, f"x = {n}") for n in range(5))
    assert sorted(engine.subscription(str(n)).number for n in range(5)) == [0, 1, 2, 3, 4]


def test_a_number_that_became_free_is_used_again(engine: Engine) -> None:
    freed = engine.subscription("one").number
    engine.unsubscribe("one")
    assert engine.subscribe("three", "x = 3").number == freed
    assert engine.subscribe("four", "x = 4").number == 2
    assert engine.match({"x": 3}).ids == ["three"]


def test_numbers_stay_within_the_most_that_are_held_at_once() -> None:
    """While some are replaced, the new ones are there before the old ones go."""
    engine = Engine()
    for turn in range(10):
        report = engine.subscribe_many(((n, f"x = {turn}") for n in range(5)), replace=True)
        assert report.accepted == 5
        assert all(each.number < 10 for each in engine)
    assert len(engine.match({"x": 9}).ids) == 5


# Matching


def test_match(engine: Engine) -> None:
    found = engine.match({"x": 1})
    assert found.ids == ["one"]
    assert found.candidates == 2
    assert found.errors == []
    assert set(found.seconds) == {"decode", "match"}
    assert all(0 <= seconds < 60 for seconds in found.seconds.values())


def test_match_an_event_that_was_made_before(engine: Engine) -> None:
    assert engine.match(Event.of({"x": [2, 3]})).ids == ["two"]


@pytest.mark.parametrize("event", [{"x": b"bytes"}, "x", None, [{"x": 1}]])
def test_match_of_what_is_no_event_raises(engine: Engine, event: Any) -> None:
    with pytest.raises(InvalidValueError):
        engine.match(event)


def test_match_of_an_event_against_the_schema_raises(market: Engine) -> None:
    with pytest.raises(EventTypeError):
        market.match({"price": 3})


def test_match_of_an_event_beyond_a_limit_raises() -> None:
    engine = Engine(limits=Limits(max_event_values=2))
    engine.subscribe("one", "x = 1")
    with pytest.raises(LimitError) as caught:
        engine.match({"x": [1, 2, 3]})
    assert caught.value.limit == "max_event_values"


def test_match_batch_of_a_list(engine: Engine) -> None:
    found = engine.match_batch([{"x": 1}, {"x": 3}, {"x": [1, 2]}])
    assert [sorted(ids) for ids in found.ids] == [["one"], [], ["one", "two"]]
    assert found.counts == [1, 0, 2]
    assert found.candidates == [2, 2, 2]
    assert found.rejected == ()


def test_match_batch_of_an_arrow_table(engine: Engine) -> None:
    found = engine.match_batch(pyarrow.table({"x": [1, None, 2]}))
    assert found.ids == [["one"], [], ["two"]]


def test_match_batch_of_a_generator(engine: Engine) -> None:
    assert engine.match_batch({"x": x} for x in (2, 1)).ids == [["two"], ["one"]]


def test_match_batch_of_nothing(engine: Engine) -> None:
    found = engine.match_batch([])
    assert (found.ids, found.counts, found.candidates) == ([], [], [])


@pytest.mark.parametrize("bad", [[0], [1], [3], [0, 1], [2, 3], [0, 1, 2, 3]])
def test_match_batch_keeps_the_places_of_rejected_events(engine: Engine, bad: list[int]) -> None:
    events: list[Any] = [{"x": 1}, {"x": 2}, {"x": 1}, {"x": 2}]
    expected = [["one"], ["two"], ["one"], ["two"]]
    for position in bad:
        events[position] = {"x": b"bytes"}
        expected[position] = []
    found = engine.match_batch(events)
    assert found.ids == expected
    assert [each.position for each in found.rejected] == bad
    assert found.candidates == [0 if position in bad else 2 for position in range(4)]


def test_match_batch_of_one_event_that_is_in_no_list(engine: Engine) -> None:
    with pytest.raises(InvalidValueError) as caught:
        engine.match_batch({"x": 1})  # type: ignore[arg-type]
    assert caught.value.hint == "put a single event into a list"


def test_match_decoded_events_that_stand_further_on_in_their_source(engine: Engine) -> None:
    decoded = validate([{"x": 1}, {"x": b"bytes"}, {"x": 2}, {"x": b"bytes"}, {"x": 1}])
    found = engine.match_batch(Decoded(decoded.batch[1:], decoded.rejected[1:]))
    assert found.ids == [["two"], [], ["one"]]
    assert found.positions == [2, 3, 4]


def test_match_decoded_takes_any_part_of_a_batch(engine: Engine) -> None:
    decoded = validate([{"x": 1}, {"x": 2}, {"x": 3}, {"x": 1}])
    found = engine.match_batch(Decoded(decoded.batch[::3], ()))
    assert (found.ids, found.positions) == ([["one"], ["one"]], [0, 3])


def test_a_matcher_that_fails_to_add_leaves_the_engine_as_it_was(engine: Engine, monkeypatch) -> None:
    def fail(entries: object, replaced: object) -> None:
        raise HarkenError("the disk is full")

    monkeypatch.setattr(engine._live.matcher, "add", fail)
    with pytest.raises(HarkenError, match="disk"):
        engine.subscribe_many([("new", "x = 5"), ("one", "x = 7")], replace=True)
    assert "new" not in engine
    assert engine.match({"x": 1}).ids == ["one"]


def test_subscribing_does_not_hold_up_matching(engine: Engine) -> None:
    """A slow source of subscriptions is read, and its texts are compiled, before the engine is locked."""

    def slow():
        for number in range(3):
            assert engine.match({"x": 1}).ids == ["one"]
            with ThreadPoolExecutor(1) as other:
                assert other.submit(engine.match, {"x": 1}).result(timeout=10).ids == ["one"]
            yield f"slow{number}", "x = 99"

    assert engine.subscribe_many(slow()).accepted == 3


def test_explaining_an_unknown_id(engine: Engine) -> None:
    with pytest.raises(UnknownIdError) as caught:
        engine.explain("onne", {"x": 1})
    assert caught.value.hint == "did you mean `one`?"


@pytest.mark.parametrize("source", [{"a": "x = 1"}, "ab", b"ab"])
def test_subscribe_many_rejects_what_is_no_list(engine: Engine, source: object) -> None:
    with pytest.raises(SubscriptionError):
        engine.subscribe_many(source)


def test_a_schema_is_a_schema() -> None:
    with pytest.raises(SchemaError, match="not a str"):
        Engine("schema.toml")


class Failing(Naive):
    """Fails on its first subscription, whatever the event."""

    def snapshot(self) -> NaiveSnapshot:
        known = super().snapshot()
        return FailingSnapshot(known.forms, known.readings, known.limits)


class FailingSnapshot(NaiveSnapshot):
    def match(self, batch: EventBatch, form_of: FormOf | None = None) -> MatchResult:
        result = super().match(batch, form_of)
        result.errors.extend((index, 0, HarkenError("it failed")) for index in range(len(batch)))
        return result


def test_a_failing_subscription_is_told_by_id(register: Callable[[str, type], None]) -> None:
    register("failing", Failing)
    engine = Engine(algorithm="failing")
    engine.subscribe("bad", "x = 1")
    engine.subscribe("good", "x = 2")
    found = engine.match({"x": 2})
    assert found.ids == ["good"]
    assert [(id, error.message) for id, error in found.errors] == [("bad", "it failed")]


def test_a_failing_subscription_is_told_by_the_event_s_place(register: Callable[[str, type], None]) -> None:
    register("failing", Failing)
    engine = Engine(algorithm="failing")
    engine.subscribe("bad", "x = 1")
    found = engine.match_batch([{"x": b"bytes"}, {"x": 2}])
    assert [(position, id) for position, id, _ in found.errors] == [(1, "bad")]


# Algorithms


def test_an_unknown_algorithm_is_rejected() -> None:
    with pytest.raises(CapabilityError, match="there is no algorithm `naïve`") as caught:
        Engine(algorithm="naïve")
    assert caught.value.hint == "did you mean `naive`?"


def test_an_option_that_the_algorithm_does_not_take_is_rejected() -> None:
    with pytest.raises(CapabilityError, match="`naive` does not take the option `speed`"):
        Engine(algorithm="naive", speed="high")


class Limited(Naive):
    """Takes equality and nothing else."""

    capabilities = frozenset({Capability.EQUALITY})


def test_a_matcher_is_not_given_what_it_cannot_do(register: Callable[[str, type], None]) -> None:
    register("limited", Limited)
    engine = Engine(algorithm="limited")
    report = engine.subscribe_many([("equal", "x = 1"), ("less", "x < 1")])
    assert report.accepted == 1
    (fault,) = report.faults
    assert isinstance(fault.error, CapabilityError)
    assert fault.id == "less"
    assert engine.match({"x": 1}).ids == ["equal"]


class Growing(Naive):
    """Lets go of nothing."""

    traits = Naive.traits - {Trait.UNSUBSCRIBE}


@pytest.fixture
def growing(register: Callable[[str, type], None]) -> Engine:
    register("growing", Growing)
    engine = Engine(market_schema(), algorithm="growing")
    engine.subscribe("old", "price = 1 OR event_type IS NULL")
    return engine


SALE = {"event_type": "sale", "price": 1}


@pytest.mark.parametrize(
    "change",
    [
        lambda engine: engine.unsubscribe("old"),
        lambda engine: engine.subscribe("old", "price = 2", replace=True),
        lambda engine: engine.replace_all([("new", "price = 1")]),
        lambda engine: engine.replace_all([("old", "price = 2"), ("new", "price = 1")]),
    ],
    ids=["unsubscribe", "replace", "replace_all without it", "replace_all with it"],
)
def test_a_matcher_that_only_adds_is_not_told_to_remove(growing: Engine, change: Callable[[Engine], object]) -> None:
    with pytest.raises(CapabilityError, match="`growing` cannot do: unsubscribe"):
        change(growing)
    assert growing.match(SALE).ids == ["old"]


def test_many_that_cannot_replace_leave_nothing_half_taken(growing: Engine) -> None:
    with suppress(CapabilityError):
        growing.subscribe_many([("new", "price = 1"), ("old", "price < 2")], replace=True)
    assert sorted(growing.match(SALE).ids) == sorted(subscription.id for subscription in growing)


def test_extend_schema_is_rejected_whole_by_a_matcher_that_only_adds(growing: Engine) -> None:
    before = growing.schema
    with pytest.raises(CapabilityError):
        growing.extend_schema(RENTAL)
    assert growing.schema is before


class Equal(Naive):
    """Takes equality, and lets go."""

    capabilities = frozenset({Capability.EQUALITY})


def test_extend_schema_is_rejected_whole_where_it_would_ask_too_much_of_the_matcher(
    register: Callable[[str, type], None],
) -> None:
    """Of two event types, one that is not the other is one value; of three, it is two."""
    register("equal", Equal)
    engine = Engine(Schema(event_types={name: EventType(name, {}) for name in ("sale", "gift")}), algorithm="equal")
    engine.subscribe("s", "event_type <> 'sale'")
    before = engine.schema
    with pytest.raises(CapabilityError):
        engine.extend_schema(RENTAL)
    assert engine.schema is before
    assert engine.match({"event_type": "gift"}).ids == ["s"]


# Statistics


def test_stats() -> None:
    engine = Engine(algorithm="naive")
    engine.subscribe("one", "x = 1")
    engine.subscribe("two", "x = 2")
    engine.subscribe("either", "x = 1 OR y = 1")
    assert engine.stats() == {
        "algorithm": "naive",
        "subscriptions": 3,
        "schema_version": None,
        "unparsed": {},
        "shapes": {"hits": 0, "misses": 3},
        "matcher": {"subscriptions": 3, "conjunctions": 4},
    }


def test_stats_are_json_and_know_the_schema(market: Engine) -> None:
    assert json.loads(json.dumps(market.stats()))["schema_version"] == 1


# Extending the schema


def test_extend_schema_gives_the_new_schema(market: Engine) -> None:
    extended = market.extend_schema(RENTAL)
    assert market.schema is extended
    assert extended.version == 2
    assert market.match({"event_type": "rental"}).ids == []


def test_extend_schema_admits_new_attributes(market: Engine) -> None:
    market.extend_schema(NewAttribute(("colour",), "string"), NewOptionalAttribute("sale", ("colour",)))
    market.subscribe("red", "colour = 'red'")
    assert market.match({"event_type": "sale", "colour": "red"}).ids == ["red"]


def test_extend_schema_is_all_or_nothing(market: Engine) -> None:
    before = market.schema
    with pytest.raises(ExtensionError):
        market.extend_schema(RENTAL, NewAttribute(("price",), "string"))
    assert market.schema is before
    with pytest.raises(EventTypeError):
        market.match({"event_type": "rental"})


def test_extend_schema_compiles_again_what_speaks_of_event_types(market: Engine) -> None:
    market.subscribe("no-sale", "event_type <> 'sale' OR event_type IS NULL", fields={"owner": "Ada"})
    market.extend_schema(RENTAL)
    assert market.match({"event_type": "rental"}).ids == ["no-sale"]
    assert market.match({"event_type": "sale"}).ids == []
    assert market.subscription("no-sale").fields == {"owner": "Ada"}


def test_extend_schema_leaves_the_other_subscriptions(market: Engine) -> None:
    cheap = market.subscribe("cheap", "price < 5")
    market.extend_schema(RENTAL)
    assert market.subscription("cheap") is cheap
    assert market.match({"event_type": "sale", "price": 3}).ids == ["cheap"]


@pytest.mark.parametrize(
    ("where", "ids"),
    [("event_type <> 'sale' OR price < 5", ["s"]), ("event_type = 'sale' OR event_type IS NULL", [])],
)
def test_extend_schema_compiles_again_what_the_old_types_had_settled(
    market: Engine, where: str, ids: list[str]
) -> None:
    market.subscribe("s", where)
    market.extend_schema(RENTAL)
    rental = {"event_type": "rental"}
    assert market.match(rental).ids == ids
    assert market.explain("s", rental).matched is bool(ids)


def test_extend_schema_moves_a_subscription_that_grows_to_another_index() -> None:
    engine = Engine(market_schema(), limits=Limits(max_conjunctions=1))
    engine.subscribe("s", "event_type <> 'sale' OR price < 5")
    engine.extend_schema(RENTAL)
    assert engine.match({"event_type": "sale", "price": 3}).ids == ["s"]
    assert engine.match({"event_type": "rental"}).ids == ["s"]


def test_extend_schema_needs_a_schema() -> None:
    """Subscriptions that were taken without one would mean something else with it."""
    engine = Engine()
    with pytest.raises(SchemaError, match="no schema to extend") as caught:
        engine.extend_schema(RENTAL)
    assert caught.value.hint == "make the engine with one, if need be an empty one: Engine(Schema())"
    assert engine.schema is None


def test_extend_schema_from_an_empty_one() -> None:
    engine = Engine(Schema())
    engine.extend_schema(NewAttribute(("price",), "float"))
    engine.subscribe("cheap", "price < 5")
    assert engine.match({"price": 3}).ids == ["cheap"]


# Threads


def test_threads_share_an_engine() -> None:
    """While some subscribe and unsubscribe, others find all that stays, and nothing that never was."""
    engine = Engine()
    engine.subscribe_many((f"stays-{n}", f"x = {n}") for n in range(10))
    start, problems = threading.Barrier(5), []
    done = threading.Event()

    def guarded(work: Callable[[int], None], thread: int) -> None:
        try:
            start.wait()
            work(thread)
        except BaseException as problem:
            problems.append(problem)

    def change(thread: int) -> None:
        for turn in range(150):
            engine.subscribe(f"comes-{thread}", f"x >= {turn % 10}")
            engine.subscribe_many([(f"comes-{thread}", "x >= 0"), (f"more-{thread}", "x >= 5")], replace=True)
            engine.unsubscribe(f"comes-{thread}")
            engine.unsubscribe(f"more-{thread}")

    def find(thread: int) -> None:
        while not done.is_set():
            for x, ids in enumerate(engine.match_batch([{"x": x} for x in range(10)]).ids):
                assert [id for id in ids if id.startswith("stays")] == [f"stays-{x}"]
                assert all(id.startswith(("stays-", "comes-", "more-")) for id in ids)
                assert len(ids) == len(set(ids))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        changing = [threading.Thread(target=guarded, args=(change, n)) for n in range(3)]
        finding = [threading.Thread(target=guarded, args=(find, n)) for n in range(2)]
        for thread in changing + finding:
            thread.start()
        for thread in changing:
            thread.join()
        done.set()
        for thread in finding:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert problems == []
    assert len(engine) == 10


# What is looked at

ODD: dict[Any, Any] = {
    "x": 1,
    "blob": b"?",
    "id": UUID(int=1),
    "big": 1 << 65,
    "any": object(),
    "in": {"it": b""},
    7: 8,
}
"""An event of which most cannot be read."""


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_what_no_subscription_asks_for_is_not_looked_at(algorithm: str) -> None:
    engine = Engine(algorithm=algorithm)
    assert engine.attributes() == set()
    assert engine.match(ODD).ids == []
    engine.subscribe_many([("one", "x = 1"), ("path", "a.b = 1 OR x < y"), ("none", "z IS NULL")])
    assert engine.attributes() == {"x", "a", "y", "z"}
    assert sorted(engine.match(ODD).ids) == ["none", "one"]
    found = engine.match_batch(each for each in [ODD, {**ODD, "z": 1}])
    assert [sorted(ids) for ids in found.ids] == [["none", "one"], ["one"]]
    engine.subscribe("late", "blob IS NOT NULL")
    with pytest.raises(InvalidValueError, match="`blob` is of type bytes"):
        engine.match(ODD)
    assert [each.position for each in engine.match_batch([ODD, {"x": 1}]).rejected] == [0]


def test_a_table_is_looked_at_where_subscriptions_ask(engine: Engine) -> None:
    table = pyarrow.table({"x": [1, 2], "blob": [b"1", b"2"], "took": pyarrow.array([1, 2], pyarrow.duration("s"))})
    assert engine.match_batch(table).ids == [["one"], ["two"]]
    assert engine.match_batch(table.to_reader()).ids == [["one"], ["two"]]
    engine.subscribe("late", "took > 1")
    with pytest.raises(SourceError, match=r"`took` has the Arrow type duration\[s\]"):
        engine.match_batch(table)


@pytest.mark.parametrize("algorithm", ["columnar", "naive"])
def test_what_is_asked_for_is_known_however_subscriptions_come(algorithm: str, tmp_path: Path) -> None:
    engine = Engine(algorithm=algorithm)
    predicates = [[{"attribute": "a.b", "operator": "=", "integer": 1}], [{"attribute": "c", "operator": "is null"}]]
    assert engine.subscribe_many(pyarrow.table({"id": ["1", "2"], "predicates": predicates})).accepted == 2
    assert engine.attributes() == {"a", "c"}
    engine.subscribe("1", "d = 1", replace=True)
    engine.subscribe_many([("2", "e LIKE '%x%'"), ("3", "f <")], replace=True)
    assert engine.attributes() == {"a", "c", "d", "e"}
    engine.save(tmp_path)
    parts = engine.internals.cut(2)
    others = [Engine.load(tmp_path), *parts, join_engines(parts)[0]]
    assert [each.attributes() for each in others] == [{"a", "c", "d", "e"}] * 4
    for each in (engine, others[0], others[3]):
        each.unsubscribe("1")
        each.merge()  # what only those asked for that are gone is forgotten
        assert each.attributes() == {"e"}


def test_a_folder_of_an_earlier_harken_does_not_tell_what_is_asked_for(tmp_path: Path) -> None:
    for algorithm in ("columnar", "naive"):
        engine = Engine(algorithm=algorithm)
        engine.subscribe_many([("1", "a = 1 AND b LIKE '%x%'"), ("2", "c < d")])
        engine._live.catalogue.used_names = None
        engine.save(tmp_path / algorithm)
        assert Engine.load(tmp_path / algorithm).attributes() == {"a", "b", "c", "d"}


def test_a_schema_that_is_closed_has_the_whole_event_judged(market: Engine) -> None:
    assert market.attributes() is None
    with pytest.raises(InvalidValueError):
        market.match({"event_type": "sale", "blob": b""})
    engine = Engine(Schema(attributes={("price",): BUILT_IN["float"], ("x",): BUILT_IN["integer"]}))
    engine.subscribe("one", "x = 1")
    assert engine.attributes() == {"x", "price"}
    assert engine.match(ODD).ids == ["one"]
    with pytest.raises(InvalidValueError, match="price"):
        engine.match({"price": "low"})
    engine.extend_schema(NewAttribute(("size",), "float"))
    assert engine.attributes() == {"x", "price", "size"}
    engine.extend_schema(RENTAL)
    assert engine.attributes() is None


@pytest.mark.filterwarnings("ignore::harken.errors.MismatchWarning")
@pytest.mark.parametrize(
    "find",
    [
        lambda engine, event: engine.match(event).ids,
        lambda engine, event: engine.match_batch(iter([event])).ids[0],
        lambda engine, event: engine.match_batch(pyarrow.Table.from_pylist([event]).to_reader()).ids[0],
    ],
)
@pytest.mark.parametrize("is_known", [False, True])
def test_a_subscription_that_comes_during_a_match_sees_what_it_asks_for(
    find: Callable[[Engine, dict[str, int]], list[str]], register: Callable[[str, type], None], is_known: bool
) -> None:
    class Interrupted(Naive):
        def snapshot(self) -> NaiveSnapshot:
            before = super().snapshot()
            if "late" in engine:
                return before
            engine.subscribe("late", "y IS NULL")
            return super().snapshot() if is_known else before

    register("interrupted", Interrupted)
    engine = Engine(algorithm="interrupted")
    engine.subscribe("one", "x = 1")
    assert find(engine, {"x": 1, "y": 2}) == ["one"]
    assert sorted(find(engine, {"x": 1})) == ["late", "one"]


def test_events_that_were_decoded_before_must_have_what_is_asked_for(engine: Engine) -> None:
    decoded = validate([{"x": 1, "y": 2}], names=engine.attributes())
    assert engine.match_batch(decoded).ids == [["one"]]
    engine.subscribe("late", "y IS NULL")
    with pytest.raises(EventError, match="without `y`"):
        engine.match_batch(decoded)
    assert engine.match_batch(validate([{"x": 1, "y": 2}])).ids == [["one"]]
    with pytest.raises(EventError, match="without all of it"):
        Engine(market_schema()).match_batch(decoded)


def test_explain_looks_at_what_the_text_asks_for(engine: Engine) -> None:
    assert engine.explain("one", ODD).matched
    assert engine.explain(text="x = 1 AND NOT (y IS NOT NULL)", event=ODD).matched
    with pytest.raises(InvalidValueError, match="`blob`"):
        engine.explain(text="blob = 'x'", event=ODD)


def test_learn_looks_at_what_is_asked_for(engine: Engine) -> None:
    engine.learn([ODD] * 10)
    assert engine.stats()["matcher"]["events_sampled"] == 10


def test_objects_are_events_too(engine: Engine) -> None:
    @dataclass
    class Sale:
        x: int
        blob: bytes = b""

    row = namedtuple("row", "x y")(2, b"")
    assert engine.match(Sale(1)).ids == ["one"]
    assert engine.match_batch([Sale(1), row, {"x": 2}]).ids == [["one"], ["two"], ["two"]]


@pytest.mark.parametrize("threads", [0, -1, "2", 1.5, True])
def test_threads_are_counted(engine: Engine, threads: Any) -> None:
    with pytest.raises(HarkenError, match="`threads` is a whole number from 1 on"):
        engine.match_batch([], threads=threads)


def test_an_engine_says_what_it_is_and_is_not_pickled(engine: Engine) -> None:
    assert repr(Engine()) == "<Engine: 0 subscriptions, columnar>"
    engine = Engine(algorithm="naive")
    engine.subscribe("one", "x = 1")
    assert repr(engine) == "<Engine: 1 subscription, naive>"
    with pytest.raises(TypeError, match=r"save\(path\) it"):
        pickle.dumps(engine)


# Arguments in one another's place


def said_of(id: str, where: str) -> list[str]:
    """The hints and the warnings about a subscription."""
    report = Engine().subscribe_many([(id, where)])
    return [*(fault.error.hint or "" for fault in report.faults), *(text for _, text in report.warnings)]


@pytest.mark.parametrize("where", ["alice", "alice-1", "7", "alice bob"])
def test_an_id_and_a_text_that_are_swapped(where: str) -> None:
    said = "are they swapped? the id 'price > 5' reads like a condition: subscribe(id, where)"
    assert said_of("price > 5", where) == [said]


def test_swapped_arguments_that_make_a_subscription_warn() -> None:
    assert "are they swapped?" in Engine().subscribe("price > 5", "alice").warnings[0]


@pytest.mark.parametrize(
    ("id", "where"),
    [
        ("price > 5", "price > 5"),
        ("price > 5", "prise > 5 AND"),
        ("active", "active"),
        ("a b", "active"),
        ("seller/42", "active"),
        ("rule-7", "active"),
        ("a=1", "a >= 1"),
    ],
)
def test_ids_that_only_look_odd_are_no_matter(id: str, where: str) -> None:
    assert not any("swapped" in said for said in said_of(id, where))


@pytest.mark.parametrize("where", [False, True])
def test_a_text_that_yaml_made_a_boolean(where: Any) -> None:
    with pytest.raises(LanguageError, match="the text of a subscription is a string, not bool") as caught:
        Engine().subscribe("a", where)
    assert caught.value.hint == "in YAML no and off, yes and on are booleans: put them in quotes"


@pytest.mark.parametrize("wrong", [UUID(int=5), {"x": 1}, False])
def test_explain_takes_ids(engine: Engine, wrong: Any) -> None:
    with pytest.raises(InvalidIdError):
        engine.explain(wrong, {"x": 1})


@pytest.mark.parametrize("arguments", [{}, {"id": "one"}, {"event": {}}, {"id": "one", "text": "x = 1", "event": {}}])
def test_explain_takes_an_event_and_either_an_id_or_a_text(engine: Engine, arguments: dict[str, Any]) -> None:
    with pytest.raises(HarkenError, match="either an id or a text"):
        engine.explain(**arguments)


def test_explain_does_not_take_a_condition_for_an_id(engine: Engine) -> None:
    with pytest.raises(UnknownIdError) as caught:
        engine.explain("x = 1", {"x": 1})
    assert caught.value.hint is not None
    assert "text=" in caught.value.hint


def test_a_condition_is_no_folder() -> None:
    with pytest.raises(SegmentError, match="has no saved index") as caught:
        Engine.load("price > 5")
    assert caught.value.hint == "it reads like a condition: Engine().subscribe(id, where) takes one"


def test_a_folder_without_an_index_is_none_either(tmp_path: Path) -> None:
    with pytest.raises(SegmentError, match="has no saved index") as caught:
        Engine.load(str(tmp_path / "day=5"))
    assert caught.value.hint is None


@pytest.mark.parametrize("given", [None, 3])
def test_what_is_no_collection_of_subscriptions(given: Any) -> None:
    with pytest.raises(HarkenError, match="subscriptions come as a list or a table"):
        Engine().subscribe_many(given)
