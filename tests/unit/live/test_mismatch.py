"""Subscriptions against the columns of events: what is told, to whom, and how often."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pyarrow as pa
import pytest

from harken import Engine, HarkenError, HarkenWarning, Schema
from harken.errors import MismatchError, MismatchWarning
from harken.live.mismatch import Mismatch, Mismatches
from harken.matchers.algorithm_registry import ALGORITHMS
from harken.schema import BUILT_IN, EventType

TABLE = pa.table(
    {
        "price": [1.0, 2.0],
        "delta": ["a", "b"],
        "at": ["2026-01-01T00:00:00", "2026-01-02T00:00:00"],
        "seller": [{"country": "BE"}, {"country": "NL"}],
        "items": [[{"qty": 1}], [{"qty": 2}]],
        "tags": [["x"], ["y"]],
        "labels": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        "nothing": pa.nulls(2),
    }
)


def engine_of(*texts: str, algorithm: str = "columnar", schema: Schema | None = None) -> Engine:
    engine = Engine(schema, algorithm)
    for number, text in enumerate(texts):
        engine.subscribe(f"s{number}", text)
    return engine


def only(found: Mismatches) -> Mismatch:
    assert len(found) == 1, str(found)
    (each,) = found
    return each


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("prise > 1", "`prise` is no column: 1 subscription asks for it ('s0'); did you mean `price`?"),
        (
            "PRICE > 1",
            "`PRICE` is no column: 1 subscription asks for it ('s0'); did you mean `price`? Names are case-sensitive",
        ),
        (
            "price > '1'",
            "`price` is of type double: 1 subscription compares it with a string ('s0'); write numbers without quotes",
        ),
        (
            "delta > 5",
            "`delta` is of type string: 1 subscription compares it with a number ('s0'); "
            "cast the column, or write strings in single quotes",
        ),
        (
            "items.qtty > 1",
            "`items.qtty` is no column: 1 subscription asks for it ('s0'); did you mean `items.qty`?",
        ),
        (
            "seller = 'BE'",
            "`seller` is of type struct: 1 subscription compares it with a string ('s0'); "
            "ask for a field of it, such as `seller.country`",
        ),
        (
            "labels = 1",
            "`labels` is of type map: 1 subscription compares it with a number ('s0'); "
            "ask for one of its keys, such as `labels.key`",
        ),
        (
            "gone IS NULL",
            "`gone` is no column, so that IS NULL is always true: 1 subscription asks it ('s0')",
        ),
        ("gone IS NOT NULL", "`gone` is no column: 1 subscription asks for it ('s0')"),
        ("price < gone", "`gone` is no column: 1 subscription asks for it ('s0')"),
        ("gone LIKE '%a%b%'", "`gone` is no column: 1 subscription asks for it ('s0')"),
        ("NOT gone CONTAINS 'x'", "`gone` is no column: 1 subscription asks for it ('s0')"),
        (
            "price < TIMESTAMP '2026-01-01 00:00:00'",
            "`price` is of type double: 1 subscription compares it with a timestamp ('s0')",
        ),
    ],
)
def test_what_is_told(where: str, told: str) -> None:
    assert str(only(engine_of(where).mismatches(TABLE.schema))) == told


@pytest.mark.parametrize(
    "where",
    [
        "price > 1",
        "seller.country = 'BE' AND items.qty > 0",
        "seller IS NOT NULL",
        "tags CONTAINS 'x'",
        "labels.k = 1",
        "nothing = 1",
        "nothing = 'a'",
        "price IS NULL",
        "at < TIMESTAMP '2026-01-01 00:00:00' AND delta > DATE '2026-01-01'",  # strings are read
    ],
)
def test_what_fits(where: str) -> None:
    assert not engine_of(where).mismatches(TABLE.schema)


@pytest.mark.parametrize("algorithm", sorted(set(ALGORITHMS) - {"gough"}))
def test_whatever_the_algorithm(algorithm: str) -> None:
    engine = engine_of("prise > 1 AND price > 0", "prise = 'x' OR price > 1", "price > 1", algorithm=algorithm)
    found = engine.mismatches(TABLE.schema)
    assert (only(found).attribute, only(found).subscriptions) == ("prise", 2)
    assert (found.never, found.partly, found.subscriptions) == (1, 1, 3)


def test_all_of_it_as_text() -> None:
    engine = engine_of("prise > 1", "prise > 2", "prise > 3", "prise > 4", "delta > 1 OR price > 1", "gone IS NULL")
    assert str(engine.mismatches(TABLE.schema)) == (
        "4 of 6 subscriptions can never match these events, and 1 of 6 subscriptions can match them only in part:\n"
        "  `prise` is no column: 4 subscriptions ask for it ('s0', 's1', 's2', …); did you mean `price`?\n"
        "  `delta` is of type string: 1 subscription compares it with a number ('s4'); "
        "cast the column, or write strings in single quotes\n"
        "  `gone` is no column, so that IS NULL is always true: 1 subscription asks it ('s5')"
    )


def test_of_many_the_first_ten_are_told() -> None:
    found = engine_of(*(f"unknown{number} = 1" for number in range(13))).mismatches(TABLE.schema)
    assert len(str(found).splitlines()) == 12
    assert str(found).endswith("and 3 more such columns")


def test_as_plain_data() -> None:
    plain = engine_of("prise > 1").mismatches(TABLE.schema).to_dict()
    assert json.loads(json.dumps(plain)) == {
        "never": 1,
        "partly": 0,
        "subscriptions": 1,
        "columns": [
            {
                "attribute": "prise",
                "asks": "value",
                "found": None,
                "subscriptions": 1,
                "ids": ["s0"],
                "hint": "did you mean `price`?",
            }
        ],
    }


def test_a_schema_tells_what_strings_are() -> None:
    schema = Schema(attributes={("at",): BUILT_IN["timestamp"], ("price",): BUILT_IN["string"]})
    engine = engine_of("at < TIMESTAMP '2027-01-01 00:00:00'", "price = 'x'", schema=schema)
    assert only(engine.mismatches(TABLE.schema)).attribute == "price"


def test_with_event_types_events_are_judged_one_by_one() -> None:
    schema = Schema(attributes={("cost",): BUILT_IN["float"]}, event_types={"Sale": EventType("Sale")})
    assert not engine_of("cost > 1", schema=schema).mismatches(TABLE.schema)


# On tables


def test_a_table_is_compared_and_warned_of_once() -> None:
    engine = engine_of("prise > 1", "price > 1")
    with pytest.warns(MismatchWarning, match="`prise` is no column") as told:
        assert engine.match_batch(TABLE).ids == [[], ["s1"]]
    assert told[0].filename == __file__
    assert issubclass(MismatchWarning, HarkenWarning)
    for same in (TABLE, TABLE.slice(1), TABLE.to_batches()[0], TABLE.to_reader(), TABLE.select(["price"])):
        engine.match_batch(same)


def test_what_comes_later_is_told_with_all_that_is_wrong() -> None:
    engine = engine_of("prise > 1")
    with pytest.warns(MismatchWarning):
        engine.match_batch(TABLE)
    engine.subscribe("later", "delta > 5")
    with pytest.warns(MismatchWarning, match="2 of 2 subscriptions can never match") as told:
        engine.match_batch(TABLE)
    assert all(name in str(told[0].message) for name in ("`delta`", "`prise`"))


def test_a_table_that_lacks_a_column_that_others_had_is_told() -> None:
    engine = engine_of("price > 1")
    engine.match_batch(TABLE)
    with pytest.warns(MismatchWarning, match="`price` is no column"):
        engine.match_batch(TABLE.drop_columns("price"))


def test_fail_raises_each_time_until_it_is_mended() -> None:
    engine = engine_of("prise > 1", "price > 1")
    for _ in range(2):
        with pytest.raises(MismatchError, match="`prise` is no column"):
            engine.match_batch(TABLE, on_mismatch="fail")
    engine.unsubscribe("s0")
    assert engine.match_batch(TABLE, on_mismatch="fail").ids == [[], ["s1"]]


def test_what_is_always_null_fails_too() -> None:
    with pytest.raises(MismatchError, match="subscriptions ask whether columns are null that these events do not have"):
        engine_of("gone IS NULL").match_batch(TABLE, on_mismatch="fail")


def test_ignore_says_nothing_and_lists_are_not_compared() -> None:
    engine = engine_of("prise > 1")
    assert engine.match_batch(TABLE, on_mismatch="ignore").ids == [[], []]
    assert engine.match_batch(TABLE.select(["price"]).to_pylist(), on_mismatch="fail").ids == [[], []]


def test_any_other_word_is_rejected() -> None:
    with pytest.raises(HarkenError, match="did you mean `fail`"):
        engine_of("price > 1").match_batch([], on_mismatch="fial")  # type: ignore[arg-type]


def test_what_was_compared_is_not_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from harken.schema import EventColumns

    engine = engine_of("price > 1", "prise > 1")
    with pytest.warns(MismatchWarning):
        engine.match_batch(TABLE)
    monkeypatch.setattr(EventColumns, "from_arrow", lambda schema: pytest.fail("it was compared already"))
    engine.match_batch(TABLE.slice(0, 1))
    engine.subscribe("more", "price > 2")
    engine.match_batch(TABLE)


def test_a_loaded_engine_tells_too(tmp_path: object) -> None:
    engine_of("prise > 1").save(str(tmp_path))
    with pytest.warns(MismatchWarning, match="prise"):
        Engine.load(str(tmp_path)).match_batch(TABLE)


def test_a_large_index_is_counted_without_its_texts() -> None:
    count = 20_000
    predicates = [
        [{"attribute": "price" if number % 4 else "prise", "operator": ">", "integer": 1}] for number in range(count)
    ]
    table = pa.table({"id": [f"s{number}" for number in range(count)], "predicates": predicates})
    engine = Engine()
    engine.subscribe_many(table)
    engine.unsubscribe("s0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = engine.mismatches(TABLE.schema)
    assert only(found).subscriptions == found.never == np.arange(4, count, 4).size
    assert only(found).ids == ("s4", "s8", "s12")


def test_another_fault_of_a_column_is_told_too_and_counts_are_of_all() -> None:
    engine = Engine()
    engine.subscribe_many([("a", "price > 3"), ("b", "size > 3")])
    with pytest.warns(MismatchWarning, match="1 of 2 subscriptions can never match"):
        engine.match_batch(pa.table({"Price": [1.0], "size": [4]}))
    with pytest.warns(MismatchWarning, match="`price` is of type string"):
        engine.match_batch(pa.table({"price": ["1"], "size": [4]}))
    with pytest.warns(MismatchWarning, match="2 of 2 subscriptions can never match"):
        engine.match_batch(pa.table({"Price": [1.0]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.match_batch(pa.table({"Price": [1.0]}))
