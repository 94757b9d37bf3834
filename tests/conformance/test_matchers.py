"""One suite for every matcher: the golden cases, and how subscriptions come and go."""

from __future__ import annotations

import pytest

from conformance.cases import CaseFile, case_files, rejections
from harken import Engine
from harken.errors import CapabilityError, DuplicateIdError, HarkenError, UnknownIdError
from harken.events import Event
from harken.language.compiled import Compiler
from harken.language.sql import parse
from harken.matchers import ALGORITHMS, algorithm_capabilities, algorithm_traits
from harken.matchers.base import Trait
from harken.reference import expressions as reference
from harken.schema import NewEventType, Schema
from harken.schema.event_types import EventType

pytestmark = pytest.mark.together

FILES = case_files()


@pytest.fixture(params=sorted(ALGORITHMS))
def algorithm(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("cases", FILES, ids=lambda cases: cases.name)
def test_golden_cases(algorithm: str, cases: CaseFile) -> None:
    check_golden_cases(Engine(cases.schema, algorithm), algorithm, cases)


@pytest.mark.parametrize("cases", FILES, ids=lambda cases: cases.name)
def test_golden_cases_in_an_index_however_small(cases: CaseFile) -> None:
    check_golden_cases(Engine(cases.schema, small_rows=0), "columnar", cases)


def check_golden_cases(engine: Engine, algorithm: str, cases: CaseFile) -> None:
    expected: dict[str, set[str]] = {}
    for where, names in cases.expected:
        try:
            engine.subscribe(where, where)
            expected[where] = names
        except CapabilityError:
            assert not can_take(algorithm, where, cases.schema), f"{algorithm} rejects what it says it can do: {where}"
    engine.merge()
    found = engine.match_batch(list(cases.events.values()))
    assert not found.rejected
    assert not found.errors
    answers: dict[str, set[str]] = {where: set() for where in expected}
    for name, ids in zip(cases.events, found.ids, strict=True):
        assert len(ids) == len(set(ids))
        for where in ids:
            answers[where].add(name)
    assert answers == expected


@pytest.mark.parametrize("cases", FILES, ids=lambda cases: cases.name)
def test_golden_cases_by_reference(cases: CaseFile) -> None:
    for where, names in cases.expected:
        expression = parse(where)
        found = {
            name
            for name, raw in cases.events.items()
            if reference.matches(expression, Event.of(raw, cases.schema).attributes, cases.schema)
        }
        assert found == names, where


def can_take(algorithm: str, where: str, schema: Schema | None) -> bool:
    return Compiler(schema).compile(where).capabilities <= algorithm_capabilities(algorithm)


REJECTION_SCHEMA, REJECTIONS = rejections()


@pytest.mark.parametrize("text", REJECTIONS, ids=lambda text: text["where"] or "empty")
def test_rejections(text: dict[str, object]) -> None:
    engine = Engine(REJECTION_SCHEMA)
    with pytest.raises(HarkenError) as caught:
        engine.subscribe("x", str(text["where"]))
    error = caught.value
    assert type(error).__name__ == text["error"]
    if "column" in text:
        assert error.place is not None
        assert (error.place.line, error.place.column) == (text.get("line", 1), text["column"])
        assert error.excerpt is not None
        assert error.excerpt.split("\n")[1].index("^") == text["column"] - 1
    if "hint" in text:
        assert str(text["hint"]) in (error.hint or "")
    assert len(engine) == 0


def test_one_event_is_a_batch_of_one(algorithm: str) -> None:
    engine = Engine(algorithm=algorithm)
    engine.subscribe("cheap", "price < 5")
    engine.subscribe("toy", "category = 'Toy'")
    event = {"category": "Toy", "price": 3}
    alone = engine.match(event)
    assert sorted(alone.ids) == sorted(engine.match_batch([event]).ids[0]) == ["cheap", "toy"]
    assert alone.candidates >= 2
    assert set(alone.seconds) == {"decode", "match"}


def test_subscriptions_come_and_go(algorithm: str) -> None:
    if Trait.UNSUBSCRIBE not in algorithm_traits(algorithm):
        pytest.skip(f"{algorithm} does not unsubscribe, by design")
    engine = Engine(algorithm=algorithm)
    for number in range(20):
        engine.subscribe(f"s{number}", f"x >= {number}")
    for number in range(0, 20, 2):
        engine.unsubscribe(f"s{number}")
    numbers = {engine.subscription(f"s{number}").number for number in range(1, 20, 2)}
    engine.subscribe("new", "x = 5")
    assert engine.subscription("new").number < 20, "a number that became free is used again"
    assert engine.subscription("new").number not in numbers
    assert sorted(engine.match({"x": 5}).ids) == ["new", "s1", "s3", "s5"]
    with pytest.raises(UnknownIdError):
        engine.unsubscribe("s0")
    with pytest.raises(DuplicateIdError):
        engine.subscribe("new", "x = 6")
    engine.subscribe("new", "x = 6", replace=True)
    assert "new" not in engine.match({"x": 5}).ids
    assert "new" in engine.match({"x": 6}).ids
    assert len(engine) == 11


def test_a_bad_event_leaves_the_others(algorithm: str) -> None:
    engine = Engine(algorithm=algorithm)
    engine.subscribe("one", "x = 1")
    found = engine.match_batch([{"x": 1}, {"x": b"bytes"}, {"x": 2}, {"x": 1}])
    assert found.ids == [["one"], [], [], ["one"]]
    assert found.counts == [1, 0, 0, 1]
    assert [each.position for each in found.rejected] == [1]


def test_a_new_event_type_is_a_new_value(algorithm: str) -> None:
    engine = Engine(Schema(event_types={"sale": EventType("sale", {})}), algorithm)
    engine.subscribe("sales", "event_type = 'sale'")
    try:
        engine.subscribe("others", "event_type <> 'sale' OR event_type IS NULL")
    except CapabilityError:
        pytest.skip(f"{algorithm} does not take the subscription")
    engine.extend_schema(NewEventType(EventType("rental", {})))
    assert engine.schema is not None
    assert engine.schema.version == 2
    assert engine.match({"event_type": "rental"}).ids == ["others"]
    assert engine.match({"event_type": "sale"}).ids == ["sales"]
