"""From text to what matchers take: what is rejected at which step, what is warned of, and all faults at once."""

from __future__ import annotations

import pytest

from harken.errors import (
    CheckError,
    ContradictionError,
    HarkenError,
    LanguageError,
    LimitError,
    ParseError,
    UnavailableError,
)
from harken.language import Compiler, normalise
from harken.language.capabilities import Capability
from harken.language.sql import parse
from harken.language.sql.front_end import SqlFrontEnd
from harken.limits import Limits
from harken.schema import Schema


def test_a_text_is_parsed_and_normalised() -> None:
    compiled = Compiler().compile("a = 1 OR b = 2")
    assert compiled.text == "a = 1 OR b = 2"
    assert compiled.normal_form == normalise(parse("a = 1 OR b = 2"))
    assert compiled.warnings == ()


def test_the_expression_is_that_of_the_text_at_hand() -> None:
    front_end = SqlFrontEnd()
    front_end.compile("a = 1")
    front_end.compile("a = 2")
    assert front_end.parse("a = 2") == parse("a = 2")


def test_the_expression_of_a_long_text_is_not_rejected_later() -> None:
    limits = Limits(max_nesting=10_000)
    text = "NOT " * 200 + "a"
    front_end = SqlFrontEnd(limits=limits)
    front_end.compile(text)
    assert front_end.parse(text) == parse(text, limits)


def test_the_schema_is_known(schema: Schema) -> None:
    compiled = Compiler(schema).compile("age > 3 AND age < 5")
    assert compiled.normal_form == normalise(parse("age > 3 AND age < 5"), schema)


@pytest.mark.parametrize("text", ["TRUE", "a IS NULL OR a IS NOT NULL"])
def test_what_is_always_true_is_warned_of(text: str) -> None:
    assert Compiler().compile(text).warnings == ("it is always true: every event will match",)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("price < ", ParseError),
        ("prise < 5", CheckError),
        ("price < 5 AND price > 6", ContradictionError),
        ("near(price)", UnavailableError),
        ("NOT " * 200 + "sold", LimitError),
    ],
)
def test_rejections(text: str, error: type[HarkenError], schema: Schema) -> None:
    with pytest.raises(error):
        Compiler(schema).compile(text)


@pytest.mark.parametrize(
    ("text", "column"),
    [("sold AND price < 5 AND price > 6", 10), ("`price` < 5 AND price > 6", 1), ("1 = 2", 1), ("sold AND FALSE", 1)],
)
def test_a_contradiction_is_placed_at_the_attribute_that_it_is_about(text: str, column: int) -> None:
    with pytest.raises(ContradictionError) as caught:
        Compiler().compile(text)
    assert caught.value.place is not None
    assert (caught.value.place.line, caught.value.place.column) == (1, column)
    assert caught.value.excerpt is not None


def test_a_form_that_is_too_large_is_not_multiplied_out() -> None:
    compiled = Compiler(limits=Limits(max_conjunctions=1)).compile("a = 1 OR b = 1")
    assert compiled.plan.kind == "programs"
    assert compiled.capabilities == {Capability.EQUALITY, Capability.DISJUNCTION}
    assert compiled.plan.names() == {"a", "b"}
    with pytest.raises(LimitError) as caught:
        _ = compiled.normal_form
    assert caught.value.limit == "max_conjunctions"


def test_nesting_beyond_what_python_can_follow_is_rejected_by_name() -> None:
    with pytest.raises(LimitError) as caught:
        Compiler(limits=Limits(max_nesting=100_000)).compile("NOT " * 15_000 + "a")
    assert caught.value.limit == "max_nesting"


def test_the_language_is_remembered() -> None:
    assert Compiler().compile("a = 1").language == "sql"


def test_the_first_fault_is_raised(schema: Schema) -> None:
    with pytest.raises(CheckError) as caught:
        Compiler(schema).compile("prise < 5 AND tytle = 'x'")
    assert caught.value.place is not None
    assert caught.value.place.column == 1


@pytest.mark.parametrize("text", [None, 5, b"a = 1"])
def test_a_text_is_a_string(text: object) -> None:
    with pytest.raises(LanguageError, match="the text of a subscription is a string"):
        Compiler().compile(text)  # type: ignore[arg-type]


def test_a_language_has_to_be_there() -> None:
    assert Compiler().compile("/a", "xpath").language == "xpath"
    with pytest.raises(UnavailableError, match="'xquery' is not available"):
        Compiler().compile("/a", "xquery")


def test_faults_lists_all(schema: Schema) -> None:
    found = Compiler(schema).faults("prise < 5 AND title AND near(price)")
    assert [(type(each), each.place.column) for each in found if each.place is not None] == [
        (CheckError, 1),
        (CheckError, 15),
        (UnavailableError, 25),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [("price <", ParseError), ("price < 5 AND price > 6", ContradictionError), ("a" * 2_000_000, LimitError)],
    ids=["cut short", "contradiction", "too long"],
)
def test_faults_lists_the_one_that_ends_the_reading(text: str, error: type[HarkenError], schema: Schema) -> None:
    assert [type(each) for each in Compiler(schema).faults(text)] == [error]


def test_a_text_without_faults(schema: Schema) -> None:
    assert Compiler(schema).faults("price < 5") == []
