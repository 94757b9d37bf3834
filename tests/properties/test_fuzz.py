"""Any text gives an expression or a HarkenError with a place, and soon: never another exception, never a hang."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.engine import Engine
from harken.errors import CheckError, ContradictionError, HarkenError, LimitError, ParseError, UnavailableError
from harken.language.ast import Expression
from harken.language.compiled import Compiled, Compiler
from harken.language.sql.parser import parse
from harken.language.sql.printer import print_expression
from harken.limits import DEFAULT_LIMITS, Limits
from properties.generators import OperatorExpressions, nested_events, vocabulary_of
from properties.replay import many_examples
from unit.deadline import without_hanging

randoms = st.randoms(use_true_random=False)
_TOKEN = re.compile(r"\s+|'(?:[^']|'')*'|`(?:[^`]|``)+`|\?\w+|[0-9.]+(?:e[+-]?[0-9]+)?|\w+|<=|>=|<>|\S")
_SOUP = (
    "a b.c `d e` NOT AND OR IN LIKE BETWEEN IS NULL CONTAINS ESCAPE TRUE FALSE DATE TIMESTAMP date 5 -5 .5 1e400 5. "
    "'x' '' '2024-01-01' '%\\' ?x ? f( ( ) , . = <> != < <= > >= + - * / -- /* */ ' ` \" ; "
    "99999999999999999999 é 😀 \0 \ud800"
).split(" ")


def parsed(text: str, limits: Limits = DEFAULT_LIMITS) -> Expression | None:
    """The expression, or None if the text was rejected as it should be: with a place inside the text."""
    found = in_time(lambda: parse(text, limits))
    if isinstance(found, HarkenError):
        assert isinstance(found, ParseError | LimitError), found
        assert_placed(found, text)
        return None
    return found


def in_time(call: Callable[[], Any]) -> Any:
    """What the call returns, or the HarkenError that it raises."""
    with without_hanging():
        try:
            return call()
        except HarkenError as error:
            return error


def assert_placed(error: HarkenError, text: str) -> None:
    place = error.place
    assert place is not None, error
    lines = text.split("\n")
    assert 1 <= place.line <= len(lines), error
    assert place.column is not None, error
    assert 1 <= place.column <= len(lines[place.line - 1]) + 1, error
    assert error.message, error
    assert str(error), error
    assert error.to_dict()["line"] == place.line


def compiled(text: str, compiler: Compiler) -> None:
    """Compile the text, which may be rejected at more places."""
    found = in_time(lambda: compiler.compile(text))
    placed = ParseError | CheckError | UnavailableError  # a check, of a constant that no function takes
    assert isinstance(found, Compiled | LimitError | ContradictionError | placed), found
    if isinstance(found, placed):
        assert_placed(found, text)


def tried(text: str) -> None:
    """Parse and compile the text; compile it again when its shape is known."""
    parsed(text)
    compiler = Compiler()
    compiled(text, compiler)
    compiled(text, compiler)


@many_examples
@given(st.text())
def test_any_text(text):
    tried(text)


@many_examples
@given(st.text(alphabet=[*"aN1. '`\"?-/*()=<>,\n\\%", "\0", "é", "😀", "\u2028", "\ud800"]))
def test_any_text_of_signs(text):
    tried(text)


@many_examples
@given(st.lists(st.sampled_from(_SOUP)), st.sampled_from([" ", "", "\n"]))
def test_token_soup(tokens, gap):
    text = gap.join(tokens)
    tried(text)


@many_examples
@given(randoms)
def test_mutations_of_valid_texts(rng):
    text = print_expression(OperatorExpressions(rng, vocabulary_of(nested_events(rng, 2))).expression(2))
    for _ in range(3):
        text = mutated(rng, text)
        tried(text)


def mutated(rng: Random, text: str) -> str:
    """The text with a token deleted, doubled, swapped or replaced, or cut off in the middle."""
    tokens = _TOKEN.findall(text) or [""]
    at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    match rng.randrange(5):
        case 0:
            del tokens[at]
        case 1:
            tokens.insert(at, tokens[other])
        case 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case 3:
            tokens[at] = rng.choice(_SOUP)
        case _:
            return text[: rng.randrange(len(text) + 1)]
    return "".join(tokens)


# Large texts: as long as the limit lets pass, and longer.

_MOST = DEFAULT_LIMITS.max_text_length
_REPEATED = 1 << 17
"""Characters of a text in which something is repeated: all of them take time in proportion to it."""
_LONGER = Limits(max_text_length=10**7)


def filled(before: str, repeated: str, after: str = "", closing: str = "") -> str:
    """As many repetitions as such a text has."""
    count = (_REPEATED - len(before) - len(after)) // (len(repeated) + len(closing))
    return before + repeated * count + after + closing * count


LARGE = {
    "parentheses": filled("", "(", "a", ")"),
    "parentheses left open": filled("", "("),
    "parentheses only closed": filled("a", ")"),
    "parentheses around values": filled("a = ", "(", "5", ")"),
    "NOT": filled("", "NOT ", "a"),
    "NOT with parentheses": filled("", "NOT (", "a", ")"),
    "minus signs": filled("a = ", "- ", "5"),
    "minus signs before a variable": filled("?x = ", "- ", "?x"),
    "sum": filled("?x", "+1", " > 1"),
    "difference to the right": filled("1 > ", "(1 - ", "?x", ")"),
    "AND": filled("a", " AND a"),
    "AND to the right": filled("", "a AND (", "a", ")"),
    "AND to the left": filled("", "(", "a", " AND a)"),
    "AND and OR in turn": filled("", "a AND (b OR (", "a", "))"),
    "OR of AND": filled("a AND b", " OR a AND b"),
    "many conditions": filled("a = 1", " OR b = 2 AND c = 3"),
    "BETWEEN": filled("a", " BETWEEN 1 AND 2"),
    "values in a list": filled("a IN (1", ",1", ")"),
    "strings in a list": filled("a IN ('x'", ",'y'", ")"),
    "arguments": filled("f(1", ",1", ")"),
    "calls": filled("", "f(", "1", ")"),
    "keys of a path": filled("a", ".a", " = 1"),
    "one name": "a" * _MOST,
    "two long names": "a" * (_MOST // 2) + " " + "b" * (_MOST // 2 - 1),
    "one string": "a = '" + "x" * (_MOST - 6) + "'",
    "a string not closed": "a = '" + "x" * (_MOST - 5),
    "quotes": filled("a = ", "''"),
    "quotes, an odd number": filled("a = '", "''"),
    "backticks": filled("", "`"),
    "digits": "a = " + "1" * (_MOST - 4),
    "digits behind a point": "a = ." + "1" * (_MOST - 5),
    "digits of an exponent": "a = 1e" + "9" * (_MOST - 6),
    "points": filled("a = 1", "."),
    "comments": filled("a = 5", " /**/"),
    "comments not closed": filled("a = 5", " /*"),
    "comments not closed from the start": filled("", "/* "),
    "stars": filled("a = 5 /*", "*"),
    "dashes": filled("a = 5 ", "-"),
    "line comments": filled("a = 5", " --\n"),
    "lines": filled("", "\n", "a ="),
    "spaces": filled("", " "),
    "a pattern of wildcards": "a LIKE '" + "%_" * (_MOST // 2 - 5) + "'",
    "patterns": filled("a LIKE 'x'", " OR a LIKE '%x'"),
    "escapes": "a LIKE '" + "\\%" * (_MOST // 2 - 5) + "'",
    "unknown characters": filled("", "\0"),
    "commas": filled("f(", ","),
    "comparisons": filled("a", " = a"),
}


@pytest.mark.seconds
@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_large_texts(text):
    assert len(text) <= _MOST
    compiled(text, Compiler())


@pytest.mark.seconds
@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000 + "a" + ")" * 100_000,
        "NOT " * 100_000 + "a",
        "a = " + "- " * 100_000 + "5",
        "?x" + "+1" * 100_000 + " > 1",
        "a IN (" + "1," * 100_000 + "1)",
        "a = '" + "x" * 1_000_000 + "'",
    ],
    ids=["parentheses", "NOT", "minus signs", "sum", "values", "string"],
)
def test_larger_texts_with_a_larger_limit(text):
    parsed(text)
    parsed(text, _LONGER)


# Every limit of the language is hit by name.


def rejection(text: str, limits: Limits = DEFAULT_LIMITS) -> LimitError:
    with pytest.raises(LimitError) as caught:
        Compiler(limits=limits).compile(text)
    assert caught.value.limit in str(caught.value.to_dict())
    return caught.value


def test_max_text_length():
    text = "a = 1" + " " * (_MOST - 5)
    assert parsed(text) is not None
    assert rejection(text + " ").limit == "max_text_length"
    assert rejection("a = 12", Limits(max_text_length=5)).limit == "max_text_length"


@pytest.mark.parametrize(
    ("deep", "levels"),
    [
        (lambda levels: "NOT " * levels + "a", 100),
        (lambda levels: "a AND (b OR (" * (levels // 2) + "c" + "))" * (levels // 2), 100),
        (lambda levels: "?x" + " + 1" * levels + " > 1", 100),
        (lambda levels: "1 > " + "(1 - " * levels + "?x" + ")" * levels, 100),
    ],
    ids=["NOT", "AND and OR", "sum", "difference"],
)
def test_max_nesting(deep, levels):
    assert parsed(deep(levels)) is not None
    with pytest.raises(LimitError) as caught:
        parse(deep(levels + 2))
    assert caught.value.limit == "max_nesting"
    with pytest.raises(LimitError) as caught:
        parse(deep(6), Limits(max_nesting=4))
    assert caught.value.limit == "max_nesting"


def test_max_values():
    values = ",".join(["1"] * 9_999)
    assert parsed(f"a IN ({values}, 1)") is not None
    assert rejection(f"a IN ({values}, 1, 1)").limit == "max_values"
    assert rejection(f"a IN ({values}, 1) OR b = 1").limit == "max_values"
    assert rejection("a = 1 OR b = 2", Limits(max_values=1)).limit == "max_values"


def test_max_xpath_steps():
    most = "a" + "/a" * 59
    assert Compiler().compile("/" + most, "xpath")
    for text, language in ((f"/{most}/a", "xpath"), (f"xpath_boolean(doc, '/{most}/a')", "sql")):
        with pytest.raises(LimitError) as caught:
            Compiler().compile(text, language)
        assert caught.value.limit == "max_xpath_steps"
        assert "more than 60 steps" in caught.value.message
        assert Compiler(limits=Limits(max_xpath_steps=61)).compile(text, language)


def test_max_xpath_visits():
    """A condition on a document that takes too much work fails on that document, for that subscription alone."""
    document = b"<a>" + b"<b>1</b>" * 50 + b"</a>"
    for limits, ids, failed in ((Limits(), ["all", "b"], []), (Limits(max_xpath_visits=1_000), ["b"], ["all"])):
        engine = Engine(limits=limits)
        engine.subscribe("all", "count(//b[. = //b]) = 50", language="xpath")
        engine.subscribe("b", "/a/b = 1", language="xpath")
        matches = engine.match(document)
        assert sorted(matches.ids) == ids
        assert [(id, error.limit) for id, error in matches.errors] == [(id, "max_xpath_visits") for id in failed]


def test_max_conjunctions():
    def product(factors: int) -> str:
        return " AND ".join(f"(a{index} = 1 OR b{index} = 1)" for index in range(factors))

    assert len(Compiler().compile(product(10)).normal_form.conjunctions) == 1_024
    assert_not_multiplied(product(11))
    assert_not_multiplied("a = 1 OR b = 2", Limits(max_conjunctions=1))
    # Alternatives of one attribute are one constraint.
    assert Compiler(limits=Limits(max_conjunctions=1)).compile("a = 1 OR a = 2 OR a > 7").plan.kind == "flat"


@pytest.mark.parametrize(
    "text",
    [
        " AND ".join(f"(a{index} = 1 OR b{index} = 1)" for index in range(1_000)),
        " AND ".join(f"(a{index % 9} < {index} OR b{index % 7} > {index})" for index in range(1_000)),
        " AND ".join(f"NOT (a = {index} AND b = {index})" for index in range(1_000)),
        " AND ".join(f"(a LIKE '%{index}%' OR b LIKE '%{index}%')" for index in range(500)),
        " AND ".join(f"(a LIKE '%{index}' OR b = {index})" for index in range(500)),
        " AND ".join(f"(a CONTAINS {index} OR b = {index})" for index in range(500)),
        " AND ".join(f"(a{index} < b OR c = {index})" for index in range(500)),
        " AND ".join(f"(a <> {index} OR b = {index})" for index in range(500)),
        " OR ".join(f"a{index} = 1" for index in range(5_000)),
    ],
    ids=[
        "product",
        "product of few attributes",
        "negated",
        "patterns",
        "pattern",
        "contains",
        "attributes",
        "unequal",
        "sum",
    ],
)
def test_a_normal_form_that_is_too_large_is_given_up_soon(text):
    with without_hanging():
        assert_not_multiplied(text)


def assert_not_multiplied(text: str, limits: Limits = DEFAULT_LIMITS) -> None:
    """It is taken, and has no normal form within the limits."""
    compiled = Compiler(limits=limits).compile(text)
    assert compiled.plan.kind == "programs"
    with pytest.raises(LimitError) as caught:
        _ = compiled.normal_form
    assert caught.value.limit == "max_conjunctions"


def limits_of_the_language() -> set[str]:
    """All but those on events and of matchers; that on bindings is tested with the bindings."""
    of_others = ("max_event", "max_document", "max_operator", "max_bindings", "max_matrix", "max_table", "max_tree")
    return {name for name in Limits.__slots__ if not name.startswith(of_others)}


def test_every_limit_of_the_language_is_tested_here():
    assert limits_of_the_language() == {
        name.removeprefix("test_") for name in globals() if name.startswith("test_max_")
    }
