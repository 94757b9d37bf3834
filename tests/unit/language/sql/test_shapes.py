"""Parsing by shape: what is shared and what is not, what is counted, and that errors are the parser's own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from harken.errors import CheckError, HarkenError, LimitError, ParseError
from harken.language import Compiler, NormalForm, normalise, parse
from harken.language.ast import Expression
from harken.language.sql.shapes import ShapeCache
from harken.limits import Limits
from harken.schema import Schema
from unit.deadline import within


def read(cache: ShapeCache, text: str) -> NormalForm:
    shape, constants = cache.parse(text)
    return shape.template.fill(constants)


# Hits and misses


def test_the_first_text_of_a_shape_is_parsed() -> None:
    cache = ShapeCache()
    cache.parse("a = 1")
    assert (cache.hits, cache.misses) == (0, 1)


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
    read(cache, first)
    assert read(cache, second) == normalise(parse(second))
    assert (cache.hits, cache.misses) == (1, 1)


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
    read(cache, first)
    assert read(cache, second) == normalise(parse(second))
    assert (cache.hits, cache.misses) == (0, 2)


@pytest.mark.parametrize("text", ["a LIKE '{}!%' ESCAPE '!'", "1 = 1 AND a = {}", "a = - -{}"])
def test_what_has_no_template_is_parsed_every_time(text: str) -> None:
    cache = ShapeCache()
    for n in (1, 2):
        assert read(cache, text.format(n)) == normalise(parse(text.format(n)))
    assert (cache.hits, cache.misses) == (0, 2)


def test_a_template_is_not_changed_by_the_texts_that_use_it() -> None:
    cache = ShapeCache()
    forms = [read(cache, f"a = {n} AND b IN ({n}, 'x')") for n in range(3)]
    assert forms == [normalise(parse(f"a = {n} AND b IN ({n}, 'x')")) for n in range(3)]


def test_a_refused_text_leaves_no_shape() -> None:
    cache = ShapeCache()
    for _ in range(2):
        with pytest.raises(ParseError):
            cache.parse("a = = 1")
    assert (cache.hits, cache.misses) == (0, 0)


def test_accept_is_asked_once_for_a_shape() -> None:
    asked: list[str] = []

    def accept(expression: Expression, text: str) -> None:
        asked.append(text)

    cache = ShapeCache(accept=accept)
    for n in range(3):
        cache.parse(f"a = {n}")
    assert asked == ["a = 0"]


def test_a_shape_that_was_not_accepted_is_judged_again() -> None:
    def accept(expression: Expression, text: str) -> None:
        raise CheckError(text)

    cache = ShapeCache(accept=accept)
    for n in range(2):
        with pytest.raises(CheckError, match=f"a = {n}"):
            cache.parse(f"a = {n}")


# The cache is bounded


@pytest.mark.parametrize(("count", "hits"), [(256, 1), (257, 0)])
def test_a_shape_of_very_many_constants_is_not_kept(count: int, hits: int) -> None:
    cache = ShapeCache()
    text = f"a IN ({', '.join(map(str, range(count)))})"
    forms = [read(cache, text) for _ in range(2)]
    assert forms == [normalise(parse(text))] * 2
    assert cache.hits == hits


def shape(number: int) -> str:
    return f"a{number} = 1"


def test_as_many_shapes_are_kept_as_it_says() -> None:
    cache = ShapeCache(max_shapes=3)
    for number in (0, 1, 2, 0, 1, 2):
        cache.parse(shape(number))
    assert (cache.hits, cache.misses) == (3, 3)


def test_one_shape_more_lets_go_of_the_others() -> None:
    cache = ShapeCache(max_shapes=3)
    for number in (0, 1, 2, 3):
        cache.parse(shape(number))
    cache.parse(shape(3))
    assert cache.hits == 1
    cache.parse(shape(0))
    assert (cache.hits, cache.misses) == (1, 5)


def test_the_number_of_shapes_stays_bounded() -> None:
    cache = ShapeCache(max_shapes=3)
    for number in range(100):
        cache.parse(shape(number))
        assert len(cache._known) <= 3


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
    compiler.compile(first)
    with pytest.raises(CheckError, match="'pink' is no value of") as caught:
        compiler.compile(wrong)
    assert caught.value.place is not None
    assert caught.value.place.column == column


def test_a_wrong_constant_does_not_spoil_the_shape() -> None:
    compiler = Compiler()
    compiler.compile("a = DATE '2026-01-01'")
    with pytest.raises(ParseError):
        compiler.compile("a = DATE 'junk'")
    text = "a = DATE '2026-12-31'"
    assert compiler.compile(text).normal_form == normalise(parse(text))
    assert compiler.stats()["shapes"]["hits"] == 1


def test_a_text_beyond_the_limit_is_not_cut() -> None:
    cache = ShapeCache(limits=Limits(max_text_length=10))
    cache.parse("a = 1")
    with pytest.raises(LimitError):
        cache.parse("a = 1" + " " * 10)


def refused(parse: Callable[[str], object], text: str) -> HarkenError:
    with pytest.raises(HarkenError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("text", ["a = \0i", "a = 'x", "a = `x", "a = 1 /* open", "a = 1 2", "", "a = 5x"])
def test_what_is_cut_oddly_is_refused_as_the_parser_refuses_it(text: str) -> None:
    cache = ShapeCache()
    cache.parse("a = 1")
    assert refused(cache.parse, text).to_dict() == refused(parse, text).to_dict()


@pytest.mark.parametrize("part", ["/* ", "'", "`", "1.", "''", "- ", "/*", "e1"])
def test_cutting_is_quick_whatever_the_text(part: str) -> None:
    text = ("a = " + part * 65_536)[:65_536]
    with within(10), suppress(HarkenError):
        ShapeCache().parse(text)
