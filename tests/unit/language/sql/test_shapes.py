"""Parsing by shape: what is shared and what is not, what is counted, and that errors are the parser's own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from harken.errors import CheckError, ContradictionError, HarkenError, LimitError, ParseError
from harken.language import Compiler, NormalForm, normalise
from harken.language.ast import Expression
from harken.language.compiled import FlatPlan, ProgramPlan
from harken.language.sql import parse
from harken.language.sql.shapes import ShapeCache
from harken.limits import Limits
from harken.schema import Schema
from unit.deadline import without_hanging


def read(cache: ShapeCache, text: str) -> NormalForm:
    plan = cache.plan(text)[0]
    assert isinstance(plan, FlatPlan | ProgramPlan)
    return plan.form if isinstance(plan, FlatPlan) else plan.multiplied()


# Hits and misses


@pytest.mark.parametrize("text", ["a = 1", "a LIKE '%x'", "a = 1 OR b = 2"])
def test_the_first_two_texts_of_a_shape_are_parsed(text: str) -> None:
    cache = ShapeCache()
    for _ in range(3):
        cache.plan(text)
    assert (cache.hits, cache.misses) == (1, 2)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a = 1", "a = 2"),
        ("a = 1.5", "a = .5e3"),
        ("a = -1", "a = -2"),
        ("a = 'x'", "a = 'it''s'"),
        ("a = 'x'", "a = 'a -- b `c` 5'"),
        ("1 < a", "2 < a"),
        ("a BETWEEN 1 AND 2", "a BETWEEN 3 AND 4"),
        ("a IN (1, 'x', 2.5)", "a IN (2, 'y', 3.5)"),
        ("a LIKE 'x%'", "a LIKE '%y'"),
        ("a CONTAINS 1", "a CONTAINS 2"),
        ("a = DATE '2026-01-01'", "a = DATE '2026-12-31'"),
        ("a = TIMESTAMP '2026-01-01'", "a = TIMESTAMP '2026-01-01T00:00:00+02:00'"),
        ("a OR NOT (b < 1 AND c = 'x')", "a OR NOT (b < 9 AND c = 'y')"),
        ("a1 = 1 AND `b 2` = 3", "a1 = 4 AND `b 2` = 5"),
        ("a = 1 -- 5", "a = 2 -- 5"),
    ],
)
def test_texts_that_differ_in_constants_share_a_shape(first: str, second: str) -> None:
    cache = ShapeCache()
    for text in (first, first):
        read(cache, text)
    assert read(cache, second) == normalise(parse(second))
    assert (cache.hits, cache.misses) == (1, 2)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a = 1", "b = 1"),
        ("a = 1", "a < 1"),
        ("a = 1", "a = 1.0"),
        ("a = 1", "a = '1'"),
        ("a = 1", "a = -1"),
        ("a = 1", "a  = 1"),
        ("a IN (1)", "a IN (1, 2)"),
        ("a = TRUE", "a = FALSE"),
        ("`a 1` = 1", "`a 2` = 1"),
        ("a1 = 1", "a2 = 1"),
        ("a = 1 -- 1", "a = 1 -- 2"),
        ("a = DATE '2026-01-01'", "a = TIMESTAMP '2026-01-01'"),
        ("a = 1", "a = 9223372036854775807"),
    ],
)
def test_texts_that_differ_otherwise_do_not(first: str, second: str) -> None:
    cache = ShapeCache()
    for text in (first, first):
        read(cache, text)
    assert read(cache, second) == normalise(parse(second))
    assert (cache.hits, cache.misses) == (0, 3)


@pytest.mark.parametrize("text", ["a LIKE '{}!%' ESCAPE '!'", "1 = 1 AND a = {}", "a = - -{}", "startswith(a, '{}')"])
def test_what_has_no_template_is_parsed_every_time(text: str) -> None:
    cache = ShapeCache()
    for n in (1, 2, 3):
        assert read(cache, text.format(n)) == normalise(parse(text.format(n)))
    assert (cache.hits, cache.misses) == (0, 3)


def test_a_template_is_not_changed_by_the_texts_that_use_it() -> None:
    cache = ShapeCache()
    texts = [f"a = {n} OR b IN ({n}, 'x')" for n in range(5)]
    assert [read(cache, text) for text in texts] == [normalise(parse(text)) for text in texts]
    assert cache.hits == 3


# Conjuncts of known shapes

CONJUNCTS = ["a = 1", "b.c <> 'x'", "d BETWEEN 2 AND 3", "e NOT IN (4, 5)", "f IS NOT NULL", "g >= 2.5", "h IS NULL"]


def test_a_text_of_known_conjuncts_is_not_parsed() -> None:
    cache = ShapeCache()
    for text in CONJUNCTS * 2:
        read(cache, text)
    before = cache.misses
    for text in (" AND ".join(CONJUNCTS), " and ".join(reversed(CONJUNCTS)), "g >= 7.5 AND a = 9"):
        assert read(cache, text) == normalise(parse(text))
    assert (cache.hits, cache.misses) == (3, before)


def test_several_known_conjuncts_may_be_on_one_attribute() -> None:
    """The most common alert of all: a price within bounds."""
    cache = ShapeCache()
    for text in ("p > 1.5", "p < 2.5", "p <> 3", "s = 'x'", "p IN (1, 2, 3)") * 2:
        read(cache, text)
    before = cache.hits, cache.misses
    texts = ["s = 'y' AND p > 4.5 AND p < 9.5", "p <> 7 AND p <> 8 AND p > 2.5", "p IN (5, 6, 7) AND p < 6.5"]
    for text in texts:
        assert read(cache, text) == normalise(parse(text))
    assert (cache.hits, cache.misses) == (before[0] + len(texts), before[1])
    with pytest.raises(ContradictionError, match="no event can ever match this"):
        read(cache, "p > 5.5 AND p < 4.5")


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 AND a = 1.5",
        "a = 1 AND (b.c <> 'x')",
        "a = 1 OR b.c <> 'x'",
        "a = 1 AND b.c <> 'x' OR g >= 2.5",
        "NOT a = 1 AND g >= 2.5",
        "a = 1 AND -5 < g",
        "5 < a AND 6 < g",
        "d BETWEEN 2 AND g AND 3 = a",
        "d BETWEEN a AND g AND a = 1",
        "d BETWEEN 2 AND 3 AND 5 < a",
        "a = 1 -- AND g >= 2.5",
        "a = 1 /* AND g >= 2.5 */ AND f IS NOT NULL",
        "`a = 1 AND g` >= 2.5",
        "a = 1 AND d BETWEEN -2 AND -3 AND g >= 2.5",
        "a = 1 AND a IS NOT NULL AND g >= 1.5",
        "f IS NOT NULL IS TRUE",
    ],
)
def test_a_text_that_only_looks_like_known_conjuncts(text: str) -> None:
    cache = ShapeCache()
    for each in CONJUNCTS * 2:
        read(cache, each)
    for _ in range(3):
        found, expected = outcome(lambda: read(cache, text)), outcome(lambda: normalise(parse(text)))
        assert found == expected
    for each in CONJUNCTS:
        assert read(cache, each) == normalise(parse(each))


def outcome(read: Callable[[], object]) -> object:
    try:
        return read()
    except HarkenError as error:
        return type(error), error.message, error.hint


def test_the_limits_hold_for_known_conjuncts() -> None:
    cache = ShapeCache(limits=Limits(max_values=3))
    for text in ["a = 1", "b IN (1, 2)"] * 2:
        read(cache, text)
    assert read(cache, "a = 1 AND b IN (1, 2)")
    with pytest.raises(LimitError):
        read(cache, "b IN (1, 2) AND b IN (1, 2)")


def test_a_rejected_text_leaves_no_shape() -> None:
    cache = ShapeCache()
    for _ in range(2):
        with pytest.raises(ParseError):
            cache.plan("a = = 1")
    assert (cache.hits, cache.misses) == (0, 0)


def test_accept_is_asked_of_what_is_parsed() -> None:
    asked: list[str] = []

    def accept(expression: Expression, text: str) -> None:
        asked.append(text)

    cache = ShapeCache(accept=accept)
    for n in range(4):
        cache.plan(f"a = {n}")
    assert asked == ["a = 0", "a = 1"]


def test_a_shape_that_was_not_accepted_is_judged_again() -> None:
    def accept(expression: Expression, text: str) -> None:
        raise CheckError(text)

    cache = ShapeCache(accept=accept)
    for n in range(2):
        with pytest.raises(CheckError, match=f"a = {n}"):
            cache.plan(f"a = {n}")


# The cache is bounded


@pytest.mark.parametrize(("count", "hits"), [(256, 1), (257, 0)])
def test_a_shape_of_very_many_constants_is_not_kept(count: int, hits: int) -> None:
    cache = ShapeCache()
    text = f"a IN ({', '.join(map(str, range(count)))})"
    forms = [read(cache, text) for _ in range(3)]
    assert forms == [normalise(parse(text))] * 3
    assert cache.hits == hits


def shape(number: int) -> str:
    return f"a{number} = 1 OR b = 2"


def test_as_many_shapes_are_kept_as_it_says() -> None:
    cache = ShapeCache(max_shapes=3)
    for number in (0, 1, 2) * 3:
        cache.plan(shape(number))
    assert (cache.hits, cache.misses) == (3, 6)


def test_one_shape_more_lets_go_of_the_others() -> None:
    cache = ShapeCache(max_shapes=3)
    for number in (0, 0, 1, 2, 3, 3, 3):
        cache.plan(shape(number))
    assert (cache.hits, cache.misses) == (1, 6)
    cache.plan(shape(0))
    assert (cache.hits, cache.misses) == (1, 7)


def test_the_number_of_shapes_stays_bounded() -> None:
    cache = ShapeCache(max_shapes=3)
    for number in range(100):
        cache.plan(shape(number))
        cache.plan(f"a{number} = 1")
        assert len(cache._known) <= 3
        assert len(cache._conjuncts) <= 3


# Errors are those of the parser, with its places


@pytest.mark.parametrize(
    ("first", "wrong", "message", "column"),
    [
        ("a = 1 AND b = DATE '2026-01-01'", "a = 10 AND b = DATE 'junk'", "'junk' is not a date", 21),
        ("b = TIMESTAMP '2026-01-01'", "b = TIMESTAMP 'junk'", "'junk' is not an ISO 8601 timestamp", 15),
        ("a = 1 AND s LIKE 'x%'", r"a = 1 AND s LIKE '\x'", "the escape before 'x' is stray", 19),
        ("s LIKE 'x' ESCAPE '!'", "s LIKE '!' ESCAPE '!'", "ends with an escape that escapes nothing", 9),
        ("TRUE OR b = DATE '2026-01-01'", "TRUE OR b = DATE 'junk'", "'junk' is not a date", 18),
        ("a = 1", "a = 9223372036854775808", "does not fit in 64 bits", 5),
        ("a = 1.5", "a = 1e999", "finite", 5),
    ],
)
def test_a_wrong_constant_of_a_known_shape_is_located(first: str, wrong: str, message: str, column: int) -> None:
    compiler = Compiler()
    for _ in range(2):
        compiler.compile(first)
    with pytest.raises(ParseError, match=message) as caught:
        compiler.compile(wrong)
    assert caught.value.place is not None
    assert caught.value.place.column == column


@pytest.mark.parametrize(
    ("first", "wrong", "column"),
    [
        ("colour = 'red'", "colour = 'pink'", 10),
        ("sold AND 'red' <> colour", "sold AND 'pink' <> colour", 10),
        ("colour IN ('red', 'green')", "colour IN ('red', 'pink')", 19),
        ("colour CONTAINS 'red'", "colour CONTAINS 'pink'", 17),
        ("size BETWEEN 'small' AND 'large'", "size BETWEEN 'small' AND 'pink'", 26),
        ("TRUE OR colour = 'red'", "TRUE OR colour = 'pink'", 18),
    ],
)
def test_a_value_outside_its_domain_is_found_in_a_known_shape(
    first: str, wrong: str, column: int, schema: Schema
) -> None:
    compiler = Compiler(schema)
    for _ in range(2):
        compiler.compile(first)
    with pytest.raises(CheckError, match="'pink' is not a value of") as caught:
        compiler.compile(wrong)
    assert caught.value.place is not None
    assert caught.value.place.column == column


def test_a_wrong_constant_does_not_spoil_the_shape() -> None:
    compiler = Compiler()
    for _ in range(2):
        compiler.compile("a = DATE '2026-01-01'")
    with pytest.raises(ParseError):
        compiler.compile("a = DATE 'junk'")
    text = "a = DATE '2026-12-31'"
    assert compiler.compile(text).normal_form == normalise(parse(text))
    assert compiler.stats()["shapes"]["hits"] == 1


def test_a_text_beyond_the_limit_is_not_cut() -> None:
    cache = ShapeCache(limits=Limits(max_text_length=10))
    cache.plan("a = 1")
    with pytest.raises(LimitError):
        cache.plan("a = 1" + " " * 10)


def rejected(parse: Callable[[str], object], text: str) -> HarkenError:
    with pytest.raises(HarkenError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("text", ["a = \0i", "a = 'x", "a = `x", "a = 1 /* open", "a = 1 2", "", "a = 5x"])
def test_what_is_cut_oddly_is_rejected_as_the_parser_rejects_it(text: str) -> None:
    cache = ShapeCache()
    cache.plan("a = 1")
    assert rejected(cache.plan, text).to_dict() == rejected(parse, text).to_dict()


@pytest.mark.parametrize("part", ["/* ", "'", "`", "1.", "''", "- ", "/*", "e1"])
def test_cutting_is_quick_whatever_the_text(part: str) -> None:
    text = ("a = " + part * 65_536)[:65_536]
    with without_hanging(), suppress(HarkenError):
        ShapeCache().plan(text)
