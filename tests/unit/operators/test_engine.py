"""Engines with operators, as users have them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import harken
from harken import Limits, Schema
from harken.errors import CheckError, ContradictionError, LimitError, OperatorError, UnavailableError
from harken.internals import join_engines
from harken.operators import ORDERS
from harken.schema import parse_schema

FREE = harken.FREE


@harken.operator(cost=3)
def loc_in(event: Any, region: str) -> bool:
    return bool(event["region"] == region)


@harken.operator(cost=20, reads=("image",))
def mob_pattern(event: Any, people: Any = FREE) -> Any:
    yield int(event["image"].sum())


@harken.operator
def near(event: Any, position: Any, place: str, distance: Any = FREE) -> Any:
    return [abs(position[0] - len(place)), 100]


@harken.operator
def knows(event: Any, who: Any = FREE, whom: Any = FREE) -> Any:
    return event.get("knows", [])


ALL = [loc_in, mob_pattern, near, knows]


def engine(*texts: str, **options: Any) -> harken.Engine:
    made = harken.Engine(operators=ALL, **options)
    for number, text in enumerate(texts):
        made.subscribe(number, text)
    return made


def matches(text: str, event: dict[str, Any]) -> bool:
    matches = [bool(engine(text, order=order).match(event).ids) for order in ORDERS]
    assert len(set(matches)) == 1
    return matches[0]


BRONX = {"region": "Bronx", "image": np.ones((10, 6)), "price": 5}


def test_the_contract() -> None:
    made = harken.Engine(operators=[loc_in, mob_pattern], order="adaptive")
    made.subscribe("s2", "loc_in('Bronx') AND mob_pattern(?people) AND ?people > 50")
    assert made.stats()["operators"]["mob_pattern"]["calls"] == 0
    assert made.match(BRONX).ids == ["s2"]
    assert made.stats()["operators"]["mob_pattern"]["calls"] == 1
    assert made.match({**BRONX, "region": "Queens"}).ids == []
    assert made.stats()["operators"]["mob_pattern"]["calls"] == 1, "a cheap one that fails spares a dear one"


@pytest.mark.parametrize(
    ("text", "is_true"),
    [
        ("mob_pattern(?people) AND ?people = 60", True),
        ("mob_pattern(?people) AND ?people > 60", False),
        ("mob_pattern(?people) AND ?people > 10 * price", True),
        ("mob_pattern(?people) AND ?people > 12 * price", False),
        ("NOT loc_in('Queens')", True),
        ("NOT mob_pattern(?anybody)", False),
        ("price < 5 OR loc_in('Bronx')", True),
        ("price < 5 AND loc_in('Bronx')", False),
        ("loc_in(region)", True),
        ("loc_in(nothing)", False),
        ("NOT loc_in(nothing)", False),
        ("loc_in(nothing) OR price = 5", True),
    ],
)
def test_truth(text: str, is_true: bool) -> None:
    assert matches(text, BRONX) is is_true


def test_variables_hold_predicates_together() -> None:
    event = {"knows": [("ann", "bob"), ("bob", "cid"), ("dan", "dan")]}
    assert matches("knows(?a, ?b) AND knows(?b, ?c) AND ?a <> ?b", event)
    assert matches("knows(?a, 'bob') AND knows('bob', ?a)", {"knows": True}) is False
    assert not matches("knows(?a, ?b) AND knows(?b, ?a) AND ?a < ?b", event)
    assert matches("knows(?x, ?x)", event)
    assert not matches("knows(?x, ?x) AND ?x = 'ann'", event)


def test_predicates_that_unify_are_one() -> None:
    calls: list[Any] = []

    @harken.operator
    def p(event: Any, a: Any = FREE, b: Any = FREE) -> Any:
        calls.append((a, b))
        return [(1, 2)]

    made = harken.Engine(operators=[p])
    for number, text in enumerate(["p(?a, ?b) AND ?a < 5", "p(?c, ?d) AND ?d = 2", "p(?x, ?x)", "NOT p(?x, ?x)"]):
        made.subscribe(number, text)
    assert sorted(made.match({}).ids) == ["0", "1", "3"]
    assert calls == [(FREE, FREE)]


@pytest.mark.seconds
def test_bindings_are_not_multiplied_out() -> None:
    """A hundred thousand bindings of each of two calls, which share no variable, or one."""

    @harken.operator
    def left(event: Any, x: Any = FREE) -> Any:
        return range(50_000)

    @harken.operator
    def right(event: Any, y: Any = FREE) -> Any:
        return range(49_999, 99_999)

    made = harken.Engine(operators=[left, right])
    made.subscribe("apart", "left(?x) AND right(?y)")
    made.subscribe("shared", "left(?x) AND right(?x)")
    made.subscribe("tested", "left(?x) AND right(?y) AND ?x > ?y + 1")
    matches = made.match({})
    assert sorted(matches.ids) == ["apart", "shared"]
    ((id, error),) = matches.errors
    assert id == "tested"
    assert isinstance(error, LimitError)
    assert error.limit == "max_bindings"


def test_arrays_and_variables_meet_in_one_element() -> None:
    @harken.operator
    def limit(event: Any, x: Any = FREE) -> Any:
        return [3]

    made = harken.Engine(operators=[limit])
    made.subscribe("a", "limit(?x) AND items.price > ?x AND items.colour = 'red'")
    assert made.match({"items": [{"price": 5, "colour": "red"}, {"price": 1, "colour": "blue"}]}).ids == ["a"]
    assert made.match({"items": [{"price": 5, "colour": "blue"}, {"price": 1, "colour": "red"}]}).ids == []


def test_plain_parts_on_arrays_that_lead_to_those_of_a_variable_are_met_by_the_same_elements() -> None:
    @harken.operator
    def five(event: Any, x: Any = FREE) -> Any:
        return [5]

    made = harken.Engine(operators=[five])
    made.subscribe("a", "five(?d) AND ?d < a AND a < b AND b < 6")
    event = {"a": [3, 7], "b": [5, 9]}
    assert made.match(event).ids == []
    assert not made.explain("a", event).matched
    assert made.match({"a": [5.2, 7], "b": [5.5, 9]}).ids == ["a"]


def test_documents_and_operators_in_one_subscription() -> None:
    made = engine("xpath_boolean(doc, '/a[b > 3]') AND loc_in('Bronx')")
    assert made.match({"doc": "<a><b>4</b></a>", "region": "Bronx"}).ids == ["0"]
    assert made.match({"doc": "<a><b>2</b></a>", "region": "Bronx"}).ids == []


@pytest.mark.parametrize(
    ("text", "error", "column", "message"),
    [
        ("loc_im('Bronx')", CheckError, 1, "there is no operator `loc_im`"),
        ("price > 1 AND loc_in()", CheckError, 15, "`loc_in` takes 1 argument, not 0"),
        ("loc_in(5)", CheckError, 8, "the region of `loc_in` is a string, and this is the number 5"),
        ("loc_in(?x)", CheckError, 8, "the region of `loc_in` cannot be a variable"),
        ("loc_in('x') AND ?x > 3", CheckError, 17, "no operator binds ?x here"),
        ("mob_pattern(?x) OR ?x > 3", CheckError, 20, "no operator binds ?x here"),
        ("NOT mob_pattern(?x) AND ?x > 3", CheckError, 17, "?x stands under NOT and elsewhere"),
        ("?x > 3 AND NOT mob_pattern(?x)", CheckError, 28, "?x stands under NOT and elsewhere"),
        (
            "NOT (mob_pattern(?x) AND ?x > 3)",
            CheckError,
            18,
            "under NOT `mob_pattern(?x)` only tests whether there is any ?x: `?x > 3` cannot use its bindings",
        ),
        (
            "price = 5 AND NOT (price = 7 OR (mob_pattern(?x) AND knows(?x, 'a')))",
            CheckError,
            46,
            "there is any ?x: `knows(?x, 'a')` cannot use its bindings",
        ),
        (
            "(mob_pattern(?x) AND ?x > 3) IS FALSE",
            CheckError,
            14,
            "under NOT `mob_pattern(?x)` only tests whether there is any ?x: `?x > 3` cannot use its bindings",
        ),
        ("NOT (loc_in('x') IS TRUE)", CheckError, 6, "IS TRUE and IS FALSE cannot be negated"),
        ("mob_pattern(?x) AND ?x > 3 AND ?x < 2", ContradictionError, 1, ""),
        ("loc_in('x') AND price > 3 AND price < 2", ContradictionError, 1, ""),
    ],
)
def test_what_is_wrong_is_said_when_it_is_subscribed(text: str, error: type, column: int, message: str) -> None:
    with pytest.raises(error) as caught:
        engine(text)
    assert message in caught.value.message
    assert caught.value.place.column == column


def test_arguments_are_checked_against_the_schema() -> None:
    schema = parse_schema("version = 1\n[attributes]\nregion = 'string'\nprice = 'float'\n")
    made = harken.Engine(schema, operators=ALL)
    made.subscribe("a", "loc_in(region) AND mob_pattern(?p) AND ?p > price")
    with pytest.raises(CheckError, match="the region of `loc_in` is a string, and this is `price`"):
        made.subscribe("b", "loc_in(price)")
    with pytest.raises(CheckError, match="the schema has no attribute `regio`"):
        made.subscribe("c", "loc_in(regio)")
    assert made.match({"region": "Bronx", "price": 3.5, "image": np.ones(4)}).ids == ["a"]
    assert made.match({"region": "Bronx", "price": 4.5, "image": np.ones(4)}).ids == []
    assert isinstance(schema, Schema)


def test_the_ways_to_meet_operators_are_bounded() -> None:
    text = " AND ".join(f"(loc_in('a{n}') OR loc_in('b{n}'))" for n in range(12))
    with pytest.raises(LimitError) as caught:
        engine(text)
    assert caught.value.limit == "max_conjunctions"


def test_many_events_at_once_are_batched() -> None:
    sizes: list[int] = []

    @harken.operator(batched=True, reads=("n",))
    def even(events: pa.Table, by: pa.Array) -> list[bool]:
        sizes.append(len(by))
        return [n % each == 0 for n, each in zip(events["n"].to_pylist(), by.to_pylist(), strict=True)]

    made = harken.Engine(operators=[even])
    made.subscribe("a", "n > 10 AND even(2)")
    made.subscribe("b", "n > 10 AND even(3)")
    events = [{"n": n} for n in range(30)]
    expected = [[id for id, by in (("a", 2), ("b", 3)) if n > 10 and n % by == 0] for n in range(30)]
    assert list(map(sorted, made.match_batch(events).ids)) == expected
    assert sizes == [19, 19]
    assert list(map(sorted, made.match_batch(pa.table({"n": list(range(30))})).ids)) == expected
    assert made.stats()["operators"]["even"]["mean_call_size"] == 19.0


def test_only_what_survives_the_plain_part_reaches_operators() -> None:
    made = engine("price > 100 AND loc_in('Bronx')", "price < 3 AND loc_in('Queens')")
    assert made.match(BRONX).ids == []
    assert made.stats()["operators"]["loc_in"]["calls"] == 0


def test_failures_come_with_the_matches() -> None:
    made = engine(
        "loc_in('Bronx')", "mob_pattern(?x) AND ?x > 3", "NOT mob_pattern(?x)", "price = 5 OR mob_pattern(?x)"
    )
    matches = made.match({"region": "Bronx", "price": 5})
    assert sorted(matches.ids) == ["0", "3"]
    assert sorted(id for id, _ in matches.errors) == ["1", "2"]
    assert all(isinstance(error, OperatorError) for _, error in matches.errors)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("answer", [None, 3, [(1, 2)]])
def test_what_is_no_binding_makes_a_predicate_unknown_also_under_not(answer: Any, order: str) -> None:
    @harken.operator(most_failures=100)
    def f(event: Any, a: Any = FREE) -> Any:
        return answer

    made = harken.Engine(operators=[f], order=order)
    texts = ["NOT f(?a)", "f(?a)", "NOT (n = 2 AND f(?a))", "n = 1 OR NOT f(?a)"]
    for text in texts:
        made.subscribe(text, text)
    matches = made.match({"n": 2})
    assert matches.ids == []
    assert sorted(id for id, _ in matches.errors) == sorted(texts)
    assert sorted(made.match({"n": 1}).ids) == [texts[2], texts[3]]
    assert made.stats()["operators"]["f"]["failures"] > 0
    assert not made.explain(text="NOT f(?a)", event={"n": 2}).matched
    assert made.explain(text="NOT f(?a)", event={"n": 2}).tree.truth is None


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("answer", [[False], [0], [60]])
def test_bindings_where_there_is_no_variable_make_a_predicate_unknown(answer: Any, order: str) -> None:
    @harken.operator(most_failures=100)
    def f(event: Any, a: Any = FREE) -> Any:
        return answer

    made = harken.Engine(operators=[f], order=order)
    texts = ["f(60)", "NOT f(60)", "f(?a)", "NOT f(?a)"]
    for text in texts:
        made.subscribe(text, text)
    matches = made.match({"n": 1})
    assert matches.ids == ["f(?a)"]
    assert sorted(id for id, _ in matches.errors) == ["NOT f(60)", "f(60)"]
    assert "there is no variable to bind" in str(matches.errors[0][1])


@pytest.mark.parametrize("order", ORDERS)
def test_saved_loaded_cut_and_joined(tmp_path: Path, order: str) -> None:
    texts = [
        "loc_in('Bronx') AND mob_pattern(?n) AND ?n > 3",
        "price = 5",
        "price > 2 AND loc_in('Bronx')",
        "knows('a', 'b')",
    ]
    made = engine(*texts, order=order)
    events = [BRONX, {**BRONX, "region": "Queens"}, {**BRONX, "knows": True}]
    wanted = list(map(sorted, made.match_batch(events).ids))
    made.save(tmp_path / "engine")
    with pytest.raises(UnavailableError) as caught:
        harken.Engine.load(tmp_path / "engine")
    assert caught.value.hint == "pass the operators: Engine.load(path, operators=[…])"
    loaded = harken.Engine.load(tmp_path / "engine", operators=ALL, order=order)
    assert list(map(sorted, loaded.match_batch(events).ids)) == wanted
    assert loaded.internals.operators.keys() == made.internals.operators.keys()
    assert loaded.internals.order == order
    parts = loaded.internals.cut(2)
    assert [sorted(a + b) for a, b in zip(*(part.match_batch(events).ids for part in parts), strict=True)] == wanted
    joined, twice = join_engines(parts)
    assert list(map(sorted, joined.match_batch(events).ids)) == wanted
    assert not twice


def test_what_was_learnt_is_saved(tmp_path: Path) -> None:
    made = engine("loc_in('Bronx')", "loc_in('Queens')")
    made.match_batch([{"region": "Bronx", "n": n} for n in range(100)])
    made.save(tmp_path / "engine")
    loaded = harken.Engine.load(tmp_path / "engine", operators=ALL)
    plan = {each["text"]: each for each in loaded.internals.operator_plan()}
    assert plan["loc_in('Bronx')"]["tried"] == 100
    assert plan["loc_in('Bronx')"]["holding"] > 0.9
    assert plan["loc_in('Queens')"]["holding"] < 0.1


def test_an_engine_that_follows_goes_on_with_its_operators(tmp_path: Path) -> None:
    made = engine("loc_in('Bronx')")
    made.save(tmp_path / "engine")
    follower = harken.Engine.load(tmp_path / "engine", follow=True, operators=ALL)
    assert follower.match(BRONX).ids == ["0"]
    made.subscribe("more", "loc_in('Bronx') AND price = 5")
    made.save(tmp_path / "engine")
    assert sorted(follower.match(BRONX).ids) == ["0", "more"]
    assert follower.stats()["operators"]["loc_in"]["calls"] == 2


def test_subscriptions_change_while_operators_run() -> None:
    """A match that waits for an operator blocks no change, and sees the subscriptions of its beginning."""
    entered, release = threading.Event(), threading.Event()

    @harken.operator
    def waits(event: Any, n: int) -> bool:
        entered.set()
        return release.wait(30)

    made = harken.Engine(operators=[waits])
    made.subscribe("a", "waits(1)")
    matches: list[Any] = []
    thread = threading.Thread(target=lambda: matches.append(made.match({}).ids))
    thread.start()
    assert entered.wait(30)
    for number in range(2_000):
        made.subscribe(f"more {number}", f"waits({number % 7}) AND n = {number}")
    made.unsubscribe("more 3")
    release.set()
    thread.join(30)
    assert matches == [["a"]]
    assert made.match({"n": 4}).ids == ["a", "more 4"] or set(made.match({"n": 4}).ids) == {"a", "more 4"}


def test_one_that_is_replaced_is_there_all_the_time() -> None:
    @harken.operator
    def holds(event: Any) -> bool:
        return True

    made = harken.Engine(operators=[holds])
    made.subscribe("s", "a = 1 AND holds()")
    is_over = threading.Event()

    def replace() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            made.subscribe("s", f"a = 1 AND holds() AND b <> {number % 3}", replace=True)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        matches = [made.match({"a": 1, "b": 7}).ids for _ in range(300)]
    finally:
        is_over.set()
        thread.join(30)
    assert matches == [["s"]] * 300


def test_what_is_replaced_again_and_again_takes_no_more_room() -> None:
    made = engine()
    for number in range(3_000):
        made.subscribe("s", f"loc_in('r{number}') AND price > {number}", replace=True)
    assert len(made.internals.operator_plan()) <= 1_002
    assert made.match({"region": "r2999", "price": 3_000}).ids == ["s"]


def test_a_batch_sees_one_moment() -> None:
    """A subscription that comes in the middle of a batch is not there for its later events."""

    @harken.operator
    def adds(event: Any) -> bool:
        if event["n"] == 5:
            made.subscribe("new", "adds()")
        return True

    made = harken.Engine(operators=[adds])
    made.subscribe("a", "adds()")
    assert made.match_batch([{"n": n} for n in range(200)]).ids == [["a"]] * 200
    assert sorted(made.match({"n": 0}).ids) == ["a", "new"]


def test_an_operator_is_called_in_one_thread_unless_it_says_otherwise() -> None:
    running = most = 0
    lock = threading.Lock()

    @harken.operator
    def slow(event: Any) -> bool:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.002)
        with lock:
            running -= 1
        return True

    made = harken.Engine(operators=[slow])
    made.subscribe("a", "slow()")
    assert made.match_batch([{"n": n} for n in range(40)], threads=4).ids == [["a"]] * 40
    assert most == 1


def test_columns_that_no_operator_reads_are_left_alone() -> None:
    odd = pa.array([b"\xff"]).view(pa.utf8())
    table = pa.table({"n": [1], "other": odd})

    @harken.operator(reads=("n",))
    def one(event: Any) -> bool:
        return bool(event["n"] == 1)

    made = harken.Engine(operators=[one])
    made.subscribe("a", "one()")
    assert made.match_batch(table).ids == [["a"]]

    @harken.operator(reads=("other",))
    def reads_it(event: Any) -> bool:
        return True

    made = harken.Engine(operators=[reads_it])
    made.subscribe("a", "reads_it()")
    matches = made.match_batch(table)
    assert matches.ids == [[]]
    assert "the event cannot be read for the operator `reads_it`: UnicodeDecodeError" in str(matches.errors[0][2])


def test_arguments_that_cannot_be_compared() -> None:
    made = engine("near(position, 'abc', ?d) AND ?d = 100")
    assert made.match({"position": memoryview(bytearray(b"ab"))}).ids == ["0"]


def test_many_tests_of_one_call() -> None:
    """Only those are made that somebody needs."""
    made = engine()
    for number in range(2_000):
        made.subscribe(number, f"price = {number} AND mob_pattern(?n) AND ?n > {number}")
    assert made.match({**BRONX, "price": 59}).ids == ["59"]
    assert made.match({**BRONX, "price": 61}).ids == []
    tried = {each["text"]: each["tried"] for each in made.internals.operator_plan()}
    assert tried["mob_pattern(?0) AND ?0 > 59"] == 1
    assert sum(tried.values()) == 2
    assert [id for id, _ in made.match({"price": 7}).errors] == ["7"]


def test_many_come_and_go() -> None:
    made = engine()
    for number in range(3_000):
        made.subscribe(number, f"loc_in('r{number % 50}') AND price > {number % 7}")
    for number in range(2_990):
        made.unsubscribe(number)
    assert sorted(made.match({"region": "r45", "price": 100}).ids) == ["2995"]
    made.subscribe("again", "loc_in('r45')")
    assert sorted(made.match({"region": "r45", "price": 100}).ids) == ["2995", "again"]


def test_value_limits_do_not_count_what_only_operators_see() -> None:
    made = harken.Engine(operators=[mob_pattern], limits=Limits(max_event_values=10))
    made.subscribe("a", "price = 5 AND mob_pattern(?n) AND ?n = 1000")
    assert made.match({"price": 5, "image": np.ones(1000), "other": list(range(100))}).ids == ["a"]
    assert made.match_batch([{"price": 5, "image": np.ones(1000)}]).ids == [["a"]]


def test_explain_shows_the_substitution_or_what_failed() -> None:
    made = engine("loc_in('Bronx') AND mob_pattern(?people) AND ?people > 50")
    assert str(made.explain(0, BRONX)).splitlines() == [
        "matches",
        "✓ AND   -- with ?people = 60",
        "  ✓ loc_in('Bronx')",
        "  ✓ mob_pattern(?people)   -- ?people is 60",
        "  ✓ ?people > 50   -- ?people = 60",
    ]
    assert str(made.explain(0, {**BRONX, "image": np.ones(3)})).splitlines() == [
        "does not match",
        "✗ AND",
        "  ✓ loc_in('Bronx')",
        "  ✓ mob_pattern(?people)   -- ?people is 3",
        "  ✗ ?people > 50   -- ?people is 3",
    ]
    assert "? mob_pattern(?people)   -- the operator `mob_pattern` failed: KeyError: 'image'" in str(
        made.explain(0, {"region": "Bronx"})
    )


@pytest.mark.parametrize(
    ("text", "event", "lines"),
    [
        (
            "ones(?n) AND NOT (?n > 2)",
            {"ones": [1, 3]},
            [
                "matches",
                "✓ AND   -- with ?n = 1",
                "  ✓ ones(?n)   -- ?n is one of 1, 3",
                "  ✓ NOT",
                "    ✗ ?n > 2   -- ?n = 1",
            ],
        ),
        (
            "NOT (NOT ones(?n) OR ?n > 2)",
            {"ones": [1, 3]},
            [
                "matches",
                "✓ NOT   -- with ?n = 1",
                "  ✗ OR",
                "    ✗ NOT ones(?n)   -- ?n is one of 1, 3",
                "    ✗ ?n > 2   -- ?n = 1",
            ],
        ),
        (
            "NOT NOT (ones(?n) AND ?n > 2)",
            {"ones": [1]},
            [
                "does not match",
                "✗ NOT",
                "  ✓ NOT",
                "    ✗ AND",
                "      ✓ ones(?n)   -- ?n is 1",
                "      ✗ ?n > 2   -- ?n is 1",
            ],
        ),
        (
            "(ones(?n) AND ?n > 2 AND a = 9) OR (twos(?n) AND ?n < 1)",
            {"ones": [3], "twos": [5], "a": 1},
            [
                "does not match",
                "✗ OR",
                "  ✗ AND",
                "    ✓ ones(?n)   -- ?n is 3",
                "    ✓ ?n > 2   -- ?n is 3",
                "    ✗ a = 9   (a is 1)",
                "  ✗ AND",
                "    ✓ twos(?n)   -- ?n is 5",
                "    ✗ ?n < 1   -- ?n is 5",
            ],
        ),
        (
            "ones(?n) AND twos(?n) AND ?n > 2",
            {"ones": [1], "twos": [3]},
            [
                "does not match",
                "✗ AND   -- each holds for some binding, none for all of them",
                "  ✓ ones(?n)   -- ?n is 1",
                "  ✓ twos(?n)   -- ?n is 3",
                "  ✓ ?n > 2   -- ?n is one of 1, 3",
            ],
        ),
        (
            "NOT (NOT ones(?n) OR NOT twos(?n))",
            {"ones": [1], "twos": [3]},
            [
                "does not match",
                "✗ NOT",
                "  ✓ OR   -- each is false for some binding, none for all of them",
                "    ✗ NOT ones(?n)   -- ?n is 1",
                "    ✗ NOT twos(?n)   -- ?n is 3",
            ],
        ),
        (
            "NOT (ones(?n) AND a > 2)",
            {"ones": None, "a": 3},
            [
                "does not match",
                "? NOT",
                "  ? AND",
                "    ? ones(?n)   -- the operator `ones` failed: it returned None, not bindings",
                "    ✓ a > 2   (a is 3)",
            ],
        ),
    ],
)
def test_the_reasons_of_an_explanation(text: str, event: dict[str, Any], lines: list[str]) -> None:
    @harken.operator
    def ones(event: Any, n: Any = FREE) -> Any:
        return event["ones"]

    @harken.operator
    def twos(event: Any, n: Any = FREE) -> Any:
        return event["twos"]

    made = harken.Engine(operators=[ones, twos])
    made.subscribe("s", text)
    assert str(made.explain("s", event)).splitlines() == lines
    assert bool(made.match(event).ids) == (lines[0] == "matches")
