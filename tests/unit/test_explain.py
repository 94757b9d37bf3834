"""Explanations: the tree, its marks, the values that it shows, and the note where no binding meets all."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from harken import Engine, Limits, Schema
from harken.errors import LimitError
from harken.events import Event
from harken.explain.expressions import Explanation, explain
from harken.language.sql import parse
from harken.schema import parse_schema
from unit.deadline import without_hanging


def explained(where: str, event: dict[str, Any], schema: Schema | None = None) -> Explanation:
    return explain(parse(where), Event.of(event, schema).attributes, schema)


def lines(where: str, event: dict[str, Any], schema: Schema | None = None) -> list[str]:
    return str(explained(where, event, schema)).split("\n")


# Trees and marks


def test_a_match() -> None:
    assert lines("category = 'Toy' AND price < 5", {"category": "Toy", "price": 3.5}) == [
        "matches",
        "✓ AND",
        "  ✓ category = 'Toy'   (category is 'Toy')",
        "  ✓ price < 5   (price is 3.5)",
    ]


def test_a_miss() -> None:
    assert lines("category = 'Toy' AND price < 5", {"category": "Toy", "price": 8}) == [
        "does not match",
        "✗ AND",
        "  ✓ category = 'Toy'   (category is 'Toy')",
        "  ✗ price < 5   (price is 8)",
    ]


def test_unknown_is_marked_and_does_not_match() -> None:
    assert lines("category = 'Toy' AND price < 5", {"category": "Toy"}) == [
        "does not match",
        "? AND",
        "  ✓ category = 'Toy'   (category is 'Toy')",
        "  ? price < 5   (price is missing)",
    ]


def test_one_true_alternative_is_enough() -> None:
    assert lines("a = 1 OR b = 1 OR c = 1", {"a": 1, "b": 2}) == [
        "matches",
        "✓ OR",
        "  ✓ a = 1   (a is 1)",
        "  ✗ b = 1   (b is 2)",
        "  ? c = 1   (c is missing)",
    ]


def test_parts_inside_parts_are_indented() -> None:
    assert lines("NOT (a = 1 OR b = 1 AND c = 1)", {"a": 2, "b": 2, "c": 1}) == [
        "matches",
        "✓ NOT",
        "  ✗ OR",
        "    ✗ a = 1   (a is 2)",
        "    ✗ AND",
        "      ✗ b = 1   (b is 2)",
        "      ✓ c = 1   (c is 1)",
    ]


def test_a_negated_predicate_is_one_part() -> None:
    assert lines("a NOT IN (1, 2)", {"a": 3}) == ["matches", "✓ a NOT IN (1, 2)   (a is 3)"]


@pytest.mark.parametrize(
    ("event", "mark"),
    [({"a": 1}, "✗"), ({"a": 2}, "✓"), ({}, "?"), ({"a": "text"}, "?")],
)
def test_a_negation_of_unknown_is_unknown(event: dict[str, Any], mark: str) -> None:
    assert lines("NOT a = 1", event)[1].startswith(f"{mark} NOT a = 1 ")


CONTAINS_ASKS = (
    "CONTAINS asks whether 'cmd' is one of the values of a, not whether it is a part of one: "
    "to search in a string write a LIKE '%cmd%'"
)


@pytest.mark.parametrize(
    ("text", "value", "line"),
    [
        ("a CONTAINS 'cmd'", "cmd.exe", f"✗ a CONTAINS 'cmd'   (a is 'cmd.exe')   -- {CONTAINS_ASKS}"),
        ("a NOT CONTAINS 'cmd'", "cmd.exe", f"✓ a NOT CONTAINS 'cmd'   (a is 'cmd.exe')   -- {CONTAINS_ASKS}"),
        ("a CONTAINS 'cmd'", "cmd", "✓ a CONTAINS 'cmd'   (a is 'cmd')"),
        ("a CONTAINS 'cmd'", "sh", "✗ a CONTAINS 'cmd'   (a is 'sh')"),
        ("a CONTAINS 'cmd'", ["cmd", "cmd.exe"], "✓ a CONTAINS 'cmd'   (a is one of {'cmd', 'cmd.exe'})"),
    ],
)
def test_contains_that_was_meant_to_search_in_a_string(text: str, value: object, line: str) -> None:
    assert lines(text, {"a": value})[1] == line


def test_a_constant_meets_no_values() -> None:
    assert lines("TRUE", {}) == ["matches", "✓ TRUE"]


# Values


@pytest.mark.parametrize(
    ("event", "values"),
    [
        ({}, "a is missing"),
        ({"a": None}, "a is missing"),
        ({"a": float("nan")}, "a is missing"),
        ({"a": []}, "a is missing"),
        ({"a": "it's"}, "a is 'it''s'"),
        ({"a": True}, "a is TRUE"),
        ({"a": {"b": 1}}, "a is an object"),
        ({"a": [1]}, "a is 1"),
        ({"a": [1, 2]}, "a is one of {1, 2}"),
        ({"a": [1, {"b": 1}]}, "a is one of {1, an object}"),
        ({"a": list(range(8))}, "a is one of {0, 1, 2, 3, 4, 5, 6, 7}"),
        ({"a": list(range(11))}, "a is one of {0, 1, 2, 3, 4, 5, 6, 7, and 3 more}"),
    ],
)
def test_values(event: dict[str, Any], values: str) -> None:
    assert explained("a = 99", event).tree.values == values


def test_a_path_is_shown_as_it_is_written() -> None:
    assert explained("seller.`a b` = 1", {"seller": {"a b": 2}}).tree.values == "seller.`a b` is 2"


def test_both_sides_of_a_comparison_are_shown() -> None:
    assert explained("price < reserve", {"price": 3}).tree.values == "price is 3, reserve is missing"


def test_an_attribute_on_both_sides_is_shown_once() -> None:
    assert explained("a <= a", {"a": 3}).tree.values == "a is 3"


def test_the_value_that_was_picked_of_a_set_is_shown() -> None:
    assert explained("a > 2", {"a": [1, 2, 3]}).tree.values == "a is one of {1, 2, 3}, here 3"


def test_contains_picks_no_value() -> None:
    assert explained("a CONTAINS 2", {"a": [1, 2]}).tree.values == "a is one of {1, 2}"


def test_a_timestamp_is_shown_as_the_schema_reads_it() -> None:
    schema = parse_schema('[attributes]\nends = "timestamp"\n')
    tree = explained("ends IS NULL", {"ends": "2026-01-03T01:00:00+01:00"}, schema).tree
    assert tree.values == "ends is TIMESTAMP '2026-01-03 00:00:00'"


def test_the_order_is_the_domain_s() -> None:
    schema = parse_schema(
        '[domains.kind]\ntype = "hierarchical"\n[domains.kind.children]\nthing = ["toy", "lamp"]\n'
        '[attributes]\nkind = "kind"\n'
    )
    assert explained("kind <= 'thing'", {"kind": "toy"}, schema).matched
    assert explained("kind < 'toy'", {"kind": "lamp"}, schema).tree.truth is False


# Bindings

ITEMS = [{"price": 4, "qty": 1}, {"price": 1, "qty": 2}]


def test_a_match_is_told_under_one_binding() -> None:
    assert lines("items.price > 3 AND items.qty = 1", {"items": ITEMS}) == [
        "matches",
        "✓ AND",
        "  ✓ items.price > 3   (items.price is one of {4, 1}, here 4)",
        "  ✓ items.qty = 1   (items.qty is one of {1, 2}, here 1)",
    ]


def test_parts_that_hold_only_apart_are_noted() -> None:
    assert lines("items.price > 3 AND items.qty = 2", {"items": ITEMS}) == [
        "does not match",
        "✗ AND   -- each holds for some element of items, but no one choice of elements meets them all",
        "  ✓ items.price > 3   (items.price is one of {4, 1})",
        "  ✓ items.qty = 2   (items.qty is one of {1, 2})",
    ]


@pytest.mark.parametrize("price", [3, 5])
def test_there_is_no_note_where_a_part_fails_by_itself(price: int) -> None:
    tree = explained(f"items.price > {price} AND items.qty = 7", {"items": ITEMS}).tree
    assert tree.note is None


def test_the_note_names_the_array_also_where_each_attribute_has_one_value() -> None:
    tree = explained("items.price > 3 AND items.qty = 2", {"items": [{"price": 4}, {"qty": 2}]}).tree
    assert tree.note == "each holds for some element of items, but no one choice of elements meets them all"


def test_the_note_names_every_array() -> None:
    tree = explained("a > 1 AND b < 2 AND a < b", {"a": [1, 2], "b": [1, 3]}).tree
    assert tree.note == "each holds for some element of a, b, but no one choice of elements meets them all"


def test_explaining_many_alternatives_ends() -> None:
    names = [f"a{number}" for number in range(30)]
    where = " AND ".join(f"({name} = 1 OR {name} = 2)" for name in names)
    event = dict.fromkeys(names, 1) | {"a29": [3, 4]}
    with without_hanging():
        assert not explained(where, event).matched


def test_explaining_a_puzzle_is_given_up_by_a_named_limit() -> None:
    event = {name: list(range(10)) for name in "abcd"}
    with pytest.raises(LimitError) as caught:
        Engine(limits=Limits(max_bindings=50)).explain(text="a < b AND b < c AND c < d AND d < a", event=event)
    assert caught.value.limit == "max_bindings"


def test_the_marks_of_a_tree_agree_with_each_other() -> None:
    """An AND over ✓ and ? is ?, also where an element makes it false."""
    tree = explained("x > 3 AND y = 2", {"x": [1, 9]}).tree
    assert (tree.truth, [part.truth for part in tree.parts]) == (None, [True, None])


def test_a_negation_says_if_it_speaks_of_another_element() -> None:
    tree = explained("NOT (x > 3 AND x > 4) AND y = 1", {"x": [1, 9]}).tree.parts[0]
    assert (tree.text, tree.truth, tree.parts[0].truth) == ("NOT", True, True)
    assert tree.note == "for another element than the part below"


# Plain data, and the engine


def test_to_dict() -> None:
    plain = explained("items.price > 3 AND items.qty = 2", {"items": ITEMS}).to_dict()
    assert plain == {
        "matched": False,
        "tree": {
            "text": "AND",
            "truth": False,
            "note": "each holds for some element of items, but no one choice of elements meets them all",
            "parts": [
                {"text": "items.price > 3", "truth": True, "values": [{"attribute": "items.price", "values": [4, 1]}]},
                {"text": "items.qty = 2", "truth": True, "values": [{"attribute": "items.qty", "values": [1, 2]}]},
            ],
        },
    }


def test_to_dict_leaves_out_what_there_is_not() -> None:
    assert explained("FALSE", {}).to_dict() == {"matched": False, "tree": {"text": "FALSE", "truth": False}}


def test_to_dict_is_json_whatever_the_event_holds() -> None:
    event = {"a": [1.5, True, "x", {"b": None}], "t": datetime(2026, 1, 1)}
    plain = explained("a = 2 OR t IS NULL OR b", event).to_dict()
    assert json.loads(json.dumps(plain)) == plain


def test_the_engine_explains_by_id() -> None:
    engine = Engine()
    engine.subscribe("cheap", "price < 5")
    assert engine.explain("cheap", {"price": 3}).tree.text == "price < 5"


def test_the_engine_explains_by_an_integer_id() -> None:
    engine = Engine()
    engine.subscribe(7, "price < 5")
    assert engine.explain(7, {"price": 3}).matched


def test_the_engine_explains_a_text_that_nobody_subscribed() -> None:
    assert Engine().explain(text="price < 5", event={"price": 3}).matched


def test_a_string_beside_a_timestamp_is_read_as_one() -> None:
    assert explained("time > TIMESTAMP '2015-09-12 20:00:00'", {"time": "2015-09-12T23:48:48Z"}).matched
    part = explained("time > TIMESTAMP '2015-09-12 20:00:00'", {"time": "2015-09-12"}).tree
    assert (part.truth, part.note) == (None, "a string that is not a full ISO 8601 timestamp does not compare with one")
    part = explained("time > DATE '2015-09-12'", {"time": "20150913"}).tree
    assert (part.truth, part.note) == (None, "a string that is not a full ISO 8601 date does not compare with one")


def test_an_unknown_says_if_types_are_why() -> None:
    part = explained("time > 20", {"time": "2015-09-12T23:48:48Z"}).tree
    assert (part.truth, part.note) == (None, "a string does not compare with a number")
    assert explained("time > 5", {}).tree.note is None
    assert explained("time > 5", {"time": {}}).tree.note == "an object does not compare with a number"


def test_documents_as_deep_as_a_raised_limit_admits() -> None:
    engine = Engine(limits=Limits(max_event_depth=200))
    engine.subscribe("nested", "xpath_boolean(doc, '//b')")
    event = {"doc": "<a>" * 100 + "<b/>" + "</a>" * 100}
    assert engine.match(event).ids == ["nested"]
    assert engine.explain("nested", event).tree.truth is True
