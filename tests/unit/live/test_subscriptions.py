"""Subscriptions as they come: pairs, mappings and rows become records, and what cannot becomes a fault in its place."""

from __future__ import annotations

import json
import sqlite3
from datetime import date
from typing import Any
from uuid import UUID

import numpy
import pandas
import pyarrow
import pytest

from harken.errors import DecodeError, InvalidIdError, SubscriptionError
from harken.events import Row
from harken.live.subscriptions import Fault, Record, Subscription, checked_id, record_of, records_of, records_of_rows

# Ids


@pytest.mark.parametrize(("given", "id"), [("alice", "alice"), (" ", " "), (7, "7"), (-3, "-3"), (0, "0")])
def test_id(given: object, id: str) -> None:
    assert checked_id(given) == id


@pytest.mark.parametrize(
    "given", ["", True, False, 1.0, float("nan"), b"alice", ["alice"], {}, 2**63, pytest.param(10**5000, id="long")]
)
def test_what_cannot_be_an_id(given: object) -> None:
    with pytest.raises(InvalidIdError, match="an id is a string that is not empty, or an integer, not "):
        checked_id(given)


def test_an_id_that_no_file_can_hold() -> None:
    with pytest.raises(InvalidIdError, match="lone surrogate"):
        checked_id("\ud800")


def test_a_missing_id_is_called_missing() -> None:
    with pytest.raises(InvalidIdError, match="the subscription has no `id`"):
        checked_id(None)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (UUID(int=5), "pass str(id)"),
        (date(2026, 1, 31), "pass str(id)"),
        (numpy.int64(5), "pass int(id)"),
        (b"alice", "pass id.decode()"),
        (False, "in YAML no and off, yes and on are booleans: put them in quotes"),
        (True, "in YAML no and off, yes and on are booleans: put them in quotes"),
        (["a"], None),
        ("", None),
    ],
)
def test_what_to_pass_in_place_of_it(given: object, hint: str | None) -> None:
    with pytest.raises(InvalidIdError) as caught:
        checked_id(given)
    assert caught.value.hint == hint


def test_a_long_wrong_id_is_shown_short() -> None:
    with pytest.raises(InvalidIdError) as caught:
        checked_id(["x" * 1000])
    assert len(caught.value.message) < 120


# Records


def test_record_of_a_mapping() -> None:
    assert record_of({"id": "a", "where": "x = 1"}, 3, 9) == Record(3, "a", "x = 1", "sql", {}, 9)


def test_record_keeps_the_other_fields() -> None:
    record = record_of({"id": "a", "owner": "Ada", "where": "x = 1", "tags": [1]}, 0)
    assert record == Record(0, "a", "x = 1", fields={"owner": "Ada", "tags": [1]})


def test_record_takes_its_language() -> None:
    record = record_of({"id": "a", "where": "/x", "language": "xpath"}, 0)
    assert isinstance(record, Record)
    assert record.language == "xpath"
    assert record.fields == {}


def test_an_empty_cell_for_the_language_is_sql() -> None:
    record = record_of({"id": "a", "where": "x = 1", "language": None}, 0)
    assert isinstance(record, Record)
    assert record.language == "sql"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"where": "x = 1"}, "the subscription has no `id`"),
        ({}, "the subscription has no `id` and no `where`"),
        ({"id": "a"}, "the subscription has no `where`"),
        ({"id": "a", "where": None}, "the subscription has no `where`"),
        ({"id": "a", "where": 5}, "`where` is a text, not int"),
        ({"id": "", "where": "x = 1"}, "an id is a string that is not empty, or an integer, not ''"),
    ],
)
def test_what_is_no_record_is_a_fault(content: dict[str, Any], message: str) -> None:
    fault = record_of(content, 4, 5)
    assert isinstance(fault, Fault)
    assert (fault.position, fault.line, fault.error.message) == (4, 5, message)


def test_a_fault_knows_the_id_if_there_is_one() -> None:
    fault = record_of({"id": 7}, 0)
    assert isinstance(fault, Fault)
    assert fault.id == "7"


@pytest.mark.parametrize("given", ["", "\ud800"])
def test_a_fault_tells_a_wrong_id_if_it_is_a_string(given: str) -> None:
    fault = record_of({"id": given, "where": "x = 1"}, 0)
    assert isinstance(fault, Fault)
    assert fault.id == given


@pytest.mark.parametrize("given", [None, True, 1.5, ["a"], 2**63])
def test_a_fault_tells_no_wrong_id_that_is_none(given: object) -> None:
    fault = record_of({"id": given, "where": "x = 1"}, 0)
    assert isinstance(fault, Fault)
    assert fault.id is None


def test_a_misspelt_where_is_guessed() -> None:
    fault = record_of({"id": "a", 5: "x", "were": "x = 1"}, 0)  # type: ignore[dict-item]
    assert isinstance(fault, Fault)
    assert fault.error.hint == "is `were` meant to be `where`?"


@pytest.mark.parametrize("name", ["condition", "Condition", "expression", "query", "filter", "rule", "sql"])
def test_another_word_for_where_is_guessed(name: str) -> None:
    fault = record_of({"id": "a", "owner": "Ada", name: "x = 1"}, 0)
    assert isinstance(fault, Fault)
    assert fault.error.hint == f"is `{name}` meant to be `where`?"


def test_owner_is_not_taken_for_where() -> None:
    fault = record_of({"id": "a", "owner": "Ada"}, 0)
    assert isinstance(fault, Fault)
    assert fault.error.hint == "it has `owner`"


@pytest.mark.parametrize("where", [False, True])
def test_a_where_that_yaml_made_a_boolean(where: bool) -> None:
    fault = record_of({"id": "a", "where": where}, 0)
    assert isinstance(fault, Fault)
    assert fault.error.message == "`where` is a text, not bool"
    assert fault.error.hint == "in YAML no and off, yes and on are booleans: put them in quotes"


def test_a_language_that_is_no_name() -> None:
    fault = record_of({"id": "a", "where": "x = 1", "language": False}, 0)
    assert isinstance(fault, Fault)
    assert fault.error.message == "`language` is a name such as sql or xpath, not False"
    assert fault.error.hint == "in YAML no and off, yes and on are booleans: put them in quotes"


def test_rows_of_a_database() -> None:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    rows = connection.execute("SELECT 'a' AS id, 'x = 1' AS \"where\", 'Ada' AS owner")
    (record,) = records_of(rows)
    connection.close()
    assert isinstance(record, Record)
    assert (record.id, record.where, dict(record.fields)) == ("a", "x = 1", {"owner": "Ada"})


# Sources


@pytest.mark.parametrize("values", [{"a": "x = 1"}, ["x = 1"]])
def test_a_series_of_texts_is_no_source(values: Any) -> None:
    with pytest.raises(SubscriptionError, match="as a list or a table, not as a Series") as caught:
        list(records_of(pandas.Series(values)))
    assert caught.value.hint == "pass its items(), which are pairs of an id and a text"
    assert len(list(records_of(pandas.Series(values).items()))) == 1


def test_a_series_of_pairs_is_one() -> None:
    assert list(records_of(pandas.Series([("a", "x = 1")]))) == [Record(0, "a", "x = 1")]


def test_records_of_pairs_and_mappings() -> None:
    source = [("a", "x = 1"), ["b", "x = 2"], {"id": 3, "where": "x = 3"}]
    assert list(records_of(source)) == [Record(0, "a", "x = 1"), Record(1, "b", "x = 2"), Record(2, "3", "x = 3")]


def test_records_of_an_arrow_table() -> None:
    table = pyarrow.table({"id": [1, 2], "where": ["x = 1", "x = 2"], "owner": ["Ada", "Bo"]})
    assert list(records_of(table)) == [
        Record(0, "1", "x = 1", fields={"owner": "Ada"}),
        Record(1, "2", "x = 2", fields={"owner": "Bo"}),
    ]


def test_a_null_cell_of_an_arrow_table_is_a_missing_where() -> None:
    (fault,) = records_of(pyarrow.table({"id": ["a"], "where": pyarrow.array([None], pyarrow.string())}))
    assert isinstance(fault, Fault)
    assert fault.error.message == "the subscription has no `where`"


@pytest.mark.parametrize("item", ["x = 1", ("a",), ("a", "x = 1", "sql"), 5, None])
def test_what_is_neither_pair_nor_mapping_is_a_fault(item: object) -> None:
    _, fault = records_of([("a", "x = 1"), item])
    assert isinstance(fault, Fault)
    assert (fault.position, fault.id) == (1, None)
    assert fault.error.message == "a subscription is an (id, where) pair or a mapping with `id` and `where`"


def test_records_and_faults_pass_as_they_are() -> None:
    source = [Record(8, "a", "x = 1"), Fault(9, None, SubscriptionError("it is wrong"))]
    assert list(records_of(source)) == source


def test_records_are_made_as_they_are_asked_for() -> None:
    def endless() -> Any:
        while True:
            yield "a", "x = 1"

    assert next(records_of(endless())) == Record(0, "a", "x = 1")


def test_records_of_rows_keep_position_and_line() -> None:
    rows = [Row(4, 6, {"id": "a", "where": "x = 1"}, None, None)]
    assert list(records_of_rows(rows)) == [Record(4, "a", "x = 1", line=6)]


def test_a_row_that_cannot_be_read_is_a_fault() -> None:
    error = DecodeError("it is not JSON")
    assert list(records_of_rows([Row(4, 6, None, error, "{")])) == [Fault(4, None, error, 6)]


# Plain data, and what is kept


def test_fault_as_plain_data() -> None:
    plain = Fault(4, "a", SubscriptionError("it is wrong"), 6).to_dict()
    assert plain == {
        "position": 4,
        "id": "a",
        "file_line": 6,
        "error": "SubscriptionError",
        "message": "it is wrong",
    }
    assert json.loads(json.dumps(plain)) == plain


def test_fault_of_a_source_without_lines_has_no_line() -> None:
    assert "file_line" not in Fault(0, None, SubscriptionError("it is wrong")).to_dict()


def test_a_subscription_gives_back_the_record_that_it_came_from() -> None:
    subscription = Subscription("a", "x  =  1", "sql", 12, {"owner": "Ada"})
    assert subscription.record() == Record(0, "a", "x  =  1", "sql", {"owner": "Ada"})


def test_a_subscription_tells_its_text_and_warnings() -> None:
    subscription = Subscription("a", "TRUE", "sql", 0, warnings=("it is always true: every event will match",))
    assert subscription.where == "TRUE"
    assert subscription.warnings == ("it is always true: every event will match",)
