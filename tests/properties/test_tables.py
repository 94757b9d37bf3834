"""Tables of predicates against the slow way: the same subscriptions, one by one, by their texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from math import inf, isfinite, nan
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from harken import Engine
from harken.codes.encode import encode
from harken.codes.tables.table_rows import TableRows, rows_of_table
from harken.errors import ContradictionError
from harken.events import Event, EventBatch
from harken.language.ast import Attribute, Comparison, Constant, Expression, Holds, IsNull, Not, conjunction
from harken.language.sql.parser import parse
from harken.reference import expressions as reference
from harken.schema.paths import Path, format_path
from harken.schema.values import Value
from properties.generators import OPERATORS, RawEvent, Vocabulary, nested_events, vocabulary_of
from properties.scalars import one_in
from properties.test_flatten import admitted_rows, half_single

_ROUNDS, _SUBSCRIPTIONS, _EVENTS = 10, 60, 60

FIELDS = {int: "integer", float: "float", str: "string", bool: "boolean", datetime: "timestamp", date: "date"}
TYPES = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}
LISTS: list[Callable[[pa.DataType], pa.DataType]] = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
Predicate = dict[str, Any]


def test_tables_agree_with_the_slow_way(bulk):
    found: Counter[str] = Counter()
    for rng in bulk.rounds(_ROUNDS):
        events = half_single(nested_events(rng, _EVENTS))
        found += compare(rng, vocabulary_of(events), events, _SUBSCRIPTIONS)
        bulk.pairs += _SUBSCRIPTIONS * _EVENTS
    assert found["true"] > bulk.pairs * 0.05, found
    assert found["flat"] > bulk.pairs / _EVENTS * 0.3, found
    assert found["slow"] > bulk.pairs / _EVENTS * 0.05, found
    assert found["faults"] > bulk.pairs / _EVENTS * 0.05, found


@given(st.randoms(use_true_random=False))
def test_small_tables_agree_with_the_slow_way(rng):
    events = nested_events(rng, 3)
    compare(rng, vocabulary_of(events), events, 3)


def compare(rng: Random, vocabulary: Vocabulary, events: list[RawEvent], count: int) -> Counter[str]:
    """Read a table, and judge all of its subscriptions on every event: by rows, by texts, and by the reference."""
    drawn = [draw_subscription(rng, vocabulary) for _ in range(count)]
    expressions = {row: expression for row, (_, expression) in enumerate(drawn) if expression is not None}
    rows = rows_of_table(draw_table(rng, [predicates for predicates, _ in drawn]))
    flat = rows.flat.numbers.tolist()
    assert sorted([*flat, *rows.slow.tolist(), *(row for row, _ in rows.faults)]) == list(range(count))
    assert [row for row, _ in rows.faults] == [row for row in range(count) if row not in expressions]
    texts = rows.texts().to_pylist()
    engine = Engine(algorithm="naive")
    for row, text in enumerate(texts):
        assert (text is None) == (row not in expressions)
        if text is not None:
            assert parse(text) == expressions[row]
            try:
                engine.subscribe(row, text)
            except ContradictionError:
                assert row in rows.slow
                del expressions[row]
    true = judge(rows, engine, expressions, events)
    return Counter(true=true, flat=len(flat), slow=len(rows.slow), faults=len(rows.faults))


def judge(rows: TableRows, engine: Engine, expressions: dict[int, Expression], events: list[RawEvent]) -> int:
    coded = rows.flat.coded()
    assert not coded.inexact.any()
    batch = EventBatch.of(tuple(map(Event.of, events)), tuple(range(len(events))))
    encoded = encode(batch, coded.columns, coded.dictionaries)
    several = set(encoded.several.tolist())
    slow = set(map(str, rows.slow.tolist()))
    answers = engine.match_batch(events, on_mismatch="ignore").ids
    for index, (raw, ids) in enumerate(zip(events, answers, strict=True)):
        expected = {str(row) for row, each in expressions.items() if reference.matches(each, raw)}
        assert set(ids) == expected
        admitted = set(map(str, coded.numbers[admitted_rows(coded, encoded, index)].tolist()))
        assert admitted >= expected - slow, raw
        # Of an event with several bindings, rows only give candidates.
        assert index in several or admitted == expected - slow, raw
    return sum(map(len, answers))


# Subscriptions at random


def draw_subscription(rng: Random, vocabulary: Vocabulary) -> tuple[list[Predicate | None] | None, Expression | None]:
    """The predicates of a subscription, and the expression that they stand for; None if they stand for none."""
    if one_in(rng, 40):
        return None, None
    predicates: list[Predicate | None] = []
    parts: list[Expression | None] = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4, 0))):
        predicate, part = draw_predicate(rng, vocabulary)
        predicates.append(predicate)
        parts.append(part)
    sound = [part for part in parts if part is not None]
    if len(sound) < len(parts):
        return predicates, None
    return predicates, conjunction(sound) if sound else Holds(Constant(True))


def draw_predicate(rng: Random, vocabulary: Vocabulary) -> tuple[Predicate | None, Expression | None]:
    path = vocabulary.path(rng)
    if one_in(rng, 8):
        asked = IsNull(Attribute(path))
        negated = one_in(rng, 2)
        operator = rng.choice(("is not null", "IS NOT NULL") if negated else ("is null", "Is Null"))
        return spoilt(rng, {"attribute": spelt(rng, path), "operator": operator}, Not(asked) if negated else asked)
    (value,) = vocabulary.constants(rng, path, 1)
    operator = rng.choice(OPERATORS)
    sign = "!=" if operator == "<>" and one_in(rng, 2) else operator
    predicate = {"attribute": spelt(rng, path), "operator": sign, FIELDS[type(value)]: value}
    if isinstance(value, float) and not isfinite(value):
        return predicate, None
    return spoilt(rng, predicate, Comparison(Attribute(path), operator, Constant(value)))


def spelt(rng: Random, path: Path) -> str:
    """A name of the path, of which there are several."""
    if one_in(rng, 3):
        return ".".join("`" + key.replace("`", "``") + "`" for key in path)
    return format_path(path)


def spoilt(rng: Random, predicate: Predicate, part: Expression) -> tuple[Predicate | None, Expression | None]:
    """The predicate, or now and then one with a fault."""
    if not one_in(rng, 15):
        return predicate, part
    values = dict.fromkeys(TYPES)
    two: dict[str, Value] = {"integer": 1, "string": "a"}
    faulty: list[Predicate | None] = [
        None,
        predicate | {"attribute": None},
        predicate | {"attribute": rng.choice(("", "a b", "a.", ".a", "1a", "`", "a``b`"))},
        predicate | {"operator": None},
        predicate | {"operator": rng.choice(("", "==", "like", "is", "null", "= ="))},
        predicate | two,
        predicate | values | {"operator": "<"},
        predicate | values | {"float": nan},
        predicate | values | {"operator": ">", "float": rng.choice((inf, -inf))},
    ]
    return rng.choice(faulty), None


def draw_table(rng: Random, subscriptions: list[list[Predicate | None] | None]) -> pa.Table:
    """A table of these predicates: in pieces, with lists of any sort, names in dictionaries, a field called `value`."""
    names = rng.choice((pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())))
    fields = [("attribute", names), ("operator", names), *TYPES.items()]
    rng.shuffle(fields)
    called = {rng.choice(tuple(TYPES)): "value"} if one_in(rng, 2) else {}
    struct = pa.struct([(called.get(name, name), type) for name, type in fields])
    lists = [
        None if predicates is None else [each and {called.get(k, k): v for k, v in each.items()} for each in predicates]
        for predicates in subscriptions
    ]
    table = pa.table({"predicates": pa.array(lists, rng.choice(LISTS)(struct))})
    cut = rng.randrange(len(lists) + 1)
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)])
