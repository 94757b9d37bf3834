"""`replace_all`: what is added, changed, removed and kept, and that a match sees all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harken import Engine, Schema
from harken.errors import DuplicateIdError, LimitError, SubscriptionError
from harken.language.compiled import Compiler
from harken.live.catalogue import Catalogue
from harken.live.live_set import LiveSet
from harken.schema import BUILT_IN, NewAttribute

RULES = [("a", "x = 1"), {"id": "b", "where": "x = 2", "owner": "Ada"}, ("c", "x = 3")]


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.subscribe_many(RULES)
    return engine


def texts(engine: Engine) -> dict[str, str]:
    return {each.id: each.where for each in engine}


def matched(engine: Engine, *values: int) -> list[list[str]]:
    return [sorted(ids) for ids in engine.match_batch([{"x": value} for value in values]).ids]


# What comes of it


def test_added_changed_removed_and_unchanged(engine: Engine) -> None:
    given = [{"id": "b", "where": "x = 2", "owner": "Ada"}, ("c", "x = 4"), ("d", "x = 5"), ("e", "TRUE")]
    found = engine.replace_all(given)
    assert (found.added, found.changed, found.removed) == (["d", "e"], ["c"], ["a"])
    assert (found.unchanged, found.kept, found.faults) == (["b"], [], [])
    assert found.warnings == [("e", "it is always true: every event will match")]
    assert texts(engine) == {"b": "x = 2", "c": "x = 4", "d": "x = 5", "e": "TRUE"}
    assert matched(engine, 1, 2, 3, 4, 5) == [["e"], ["b", "e"], ["e"], ["c", "e"], ["d", "e"]]
    assert len(engine) == 4
    assert "a" not in engine
    assert repr(found) == "<Replacement: 2 added, 1 changed, 1 removed, 1 unchanged, 0 kept, 0 faults, 1 warnings>"


def test_nothing_removes_all(engine: Engine) -> None:
    assert engine.replace_all([]).removed == ["a", "b", "c"]
    assert len(engine) == 0
    assert matched(engine, 1, 2, 3) == [[], [], []]
    assert engine.replace_all(RULES).added == ["a", "b", "c"]
    assert matched(engine, 1, 2, 3) == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize(
    "given", [{"id": "b", "where": "x = 2"}, {"id": "b", "where": "x = 2", "owner": "Bo"}, ("b", "/a", "xpath")]
)
def test_another_field_or_language_is_a_change(engine: Engine, given: Any) -> None:
    record = given if isinstance(given, dict) else dict(zip(("id", "where", "language"), given, strict=True))
    found = engine.replace_all([record, ("a", "x = 1"), ("c", "x = 3")])
    assert (found.changed, found.unchanged) == (["b"], ["a", "c"])
    subscription = engine.subscription("b")
    assert subscription.language == record.get("language", "sql")
    assert dict(subscription.fields) == {name: record[name] for name in record.keys() & {"owner"}}


def test_if_all_are_faulty_nothing_is_replaced(engine: Engine) -> None:
    before = texts(engine)
    with pytest.raises(
        SubscriptionError, match="none of the 2 subscriptions can be used, so nothing is replaced"
    ) as raised:
        engine.replace_all([("new", "y <"), 5])
    assert raised.value.message.endswith("the text ends too early")
    assert texts(engine) == before
    assert engine.replace_all([]).removed == ["a", "b", "c"], "no subscription at all is meant"


def test_a_faulty_one_keeps_what_was_there(engine: Engine) -> None:
    given = [("b", "x ="), ("a", "x = 9"), ("new", "y <"), {"id": "c"}, ("", "x = 1"), 5]
    found = engine.replace_all(given)
    assert [(each.position, each.id) for each in found.faults] == [(0, "b"), (2, "new"), (3, "c"), (4, ""), (5, None)]
    assert (found.added, found.changed, found.removed) == ([], ["a"], [])
    assert found.kept == ["b", "c"]
    assert texts(engine) == {"a": "x = 9", "b": "x = 2", "c": "x = 3"}


def test_of_several_with_one_id_the_first_good_one_counts(engine: Engine) -> None:
    given = [("b", "x ="), ("b", "x = 7"), ("b", "x = 8"), ("a", "x = 1"), ("a", "x = 6")]
    found = engine.replace_all(given)
    assert (found.changed, found.unchanged, found.kept, found.removed) == (["b"], ["a"], [], ["c"])
    assert [(each.position, type(each.error)) for each in found.faults][1:] == [
        (2, DuplicateIdError),
        (4, DuplicateIdError),
    ]
    assert found.faults[1].error.message == "another subscription before it has the id 'b'"
    assert texts(engine) == {"b": "x = 7", "a": "x = 1"}


def test_a_schema_judges(tmp_path: Path) -> None:
    engine = Engine(Schema(attributes={("price",): BUILT_IN["float"]}))
    engine.subscribe("a", "price < 5")
    found = engine.replace_all([("a", "prise < 5"), ("b", "price > 5")])
    assert (found.added, found.kept, found.faults[0].error.hint) == (["b"], ["a"], "did you mean `price`?")


# What it takes


def test_an_arrow_table(engine: Engine) -> None:
    table = pa.table({"id": [1, 2], "where": ["x = 1", "x = 2"], "owner": ["Ada", None]})
    assert engine.replace_all(table).added == ["1", "2"]
    assert engine.replace_all(table).unchanged == ["1", "2"]


def test_a_table_of_predicates(engine: Engine) -> None:
    asked = [[{"attribute": "x", "operator": "=", "integer": value}] for value in (1, 5)]
    found = engine.replace_all(pa.table({"id": ["a", "e"], "predicates": asked}))
    assert (found.added, found.unchanged, found.removed) == (["e"], ["a"], ["b", "c"])
    assert matched(engine, 1, 5) == [["a"], ["e"]]


def test_a_generator_and_its_progress(engine: Engine) -> None:
    told: list[int] = []
    found = engine.replace_all(((f"s{n}", f"x = {n}") for n in range(2_500)), progress=told.append)
    assert told == [1_000, 2_000]
    assert (len(found.added), len(found.removed)) == (2_500, 3)
    assert matched(engine, 7) == [["s7"]]


def test_a_source_that_breaks_changes_nothing(engine: Engine) -> None:
    def broken() -> Iterable[Any]:
        yield ("a", "x = 9")
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        engine.replace_all(broken())
    assert texts(engine) == {"a": "x = 1", "b": "x = 2", "c": "x = 3"}


def test_a_saved_engine_is_compared_too(engine: Engine, tmp_path: Path) -> None:
    engine.save(tmp_path)
    loaded = Engine.load(tmp_path)
    found = loaded.replace_all([*RULES[:2], ("d", "x = 4")])
    assert (found.unchanged, found.removed, found.added) == (["a", "b"], ["c"], ["d"])
    loaded.save(tmp_path)
    assert texts(Engine.load(tmp_path)) == {"a": "x = 1", "b": "x = 2", "d": "x = 4"}


# What stays as it is is left alone


def test_what_does_not_change_is_not_compiled_nor_moved(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {each.id: each.number for each in engine}
    compiled: list[str] = []
    compile = Compiler.compile

    def counting(self: Compiler, text: str, language: str = "sql") -> Any:
        compiled.append(text)
        return compile(self, text, language)

    monkeypatch.setattr(Compiler, "compile", counting)
    engine.replace_all([*RULES[:2], ("c", "x = 4")])
    assert compiled == ["x = 4"]
    assert [engine.subscription(id).number for id in "ab"] == [numbers["a"], numbers["b"]]
    version = engine._live.catalogue.changes
    engine.replace_all([*RULES[:2], ("c", "x = 4")])
    assert engine._live.catalogue.changes == version


# All or nothing


def test_a_matcher_without_room_changes_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise LimitError("the matrix is full", limit="max_matrix_bytes")

    monkeypatch.setattr(engine._live.matcher.__class__, "add", full)
    with pytest.raises(LimitError):
        engine.replace_all([("d", "x = 4")])
    monkeypatch.undo()
    assert texts(engine) == {"a": "x = 1", "b": "x = 2", "c": "x = 3"}
    assert matched(engine, 1, 2, 3, 4) == [["a"], ["b"], ["c"], []]


SETS: list[list[Any]] = [
    [
        *((f"old-{n}", f"x >= {n}") for n in range(5)),
        ("both", "x = 9"),
        {"id": "path", "where": "/a", "language": "xpath"},
    ],
    [*((f"new-{n}", f"x >= -{n} AND y IS NULL") for n in range(7)), ("both", "x > 8"), ("like", "s LIKE '%b%'")],
]
EVENT = {"x": 9, "s": "abc", "document": "<a/>"}
WANTED = [sorted(each["id"] if isinstance(each, dict) else each[0] for each in rules) for rules in SETS]


@pytest.mark.parametrize(
    ("owner", "method", "seen"),
    [
        (Catalogue, "announce", WANTED[0]),
        (LiveSet, "decode_also", WANTED[0]),
        (Catalogue, "add", WANTED[1]),
        (LiveSet, "forget", WANTED[1]),
    ],
)
def test_a_match_at_any_step_sees_all_or_nothing(
    owner: type, method: str, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each step of the change an event is matched: by the first of these the index has nothing of it yet."""
    engine = Engine()
    engine.subscribe_many(SETS[0])
    step = getattr(owner, method)
    ids: list[list[str]] = []

    def matching(self: Any, *arguments: Any) -> Any:
        ids.append(sorted(engine.match(EVENT).ids))
        ids.extend(map(sorted, engine.match_batch([EVENT] * 3).ids))
        return step(self, *arguments)

    monkeypatch.setattr(owner, method, matching)
    engine.replace_all(SETS[1])
    monkeypatch.undo()
    assert ids == [seen] * 4
    assert sorted(engine.match(EVENT).ids) == WANTED[1]


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda engine: engine.subscribe("guest", "x = 1"),
        lambda engine: engine.unsubscribe("a"),
        lambda engine: engine.subscribe("a", "x = 7", replace=True),
        lambda engine: engine.replace_all([("other", "x = 1")]),
    ],
    ids=["subscribe", "unsubscribe", "replace", "replace_all"],
)
def test_what_comes_while_texts_are_compiled_is_replaced_too(
    engine: Engine, meanwhile: Callable[[Engine], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    compile = LiveSet.compile
    pending = [meanwhile]

    def interrupted(self: LiveSet, *arguments: Any) -> Any:
        if pending:
            pending.pop()(engine)
        return compile(self, *arguments)

    monkeypatch.setattr(LiveSet, "compile", interrupted)
    engine.replace_all([*RULES[:2], ("d", "x = 4")])
    assert texts(engine) == {"a": "x = 1", "b": "x = 2", "d": "x = 4"}
    assert matched(engine, 1, 2, 3, 4, 7) == [["a"], ["b"], [], ["d"], []]


def test_a_schema_that_is_extended_meanwhile_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(Schema(attributes={("x",): BUILT_IN["float"]}))
    compile = LiveSet.compile
    pending = [NewAttribute(("y",), "string")]

    def interrupted(self: LiveSet, *arguments: Any) -> Any:
        if pending:
            engine.extend_schema(pending.pop())
        return compile(self, *arguments)

    monkeypatch.setattr(LiveSet, "compile", interrupted)
    found = engine.replace_all([("a", "x = 1"), ("b", "y = 'b'"), ("c", "y = 2")])
    assert (found.added, [fault.id for fault in found.faults]) == (["a", "b"], ["c"])
