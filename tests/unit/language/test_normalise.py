"""The normal form, written readably: a conjunction is `attribute: set` for every constraint, then its residuals."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest

from harken.errors import ContradictionError, LimitError
from harken.language import NormalForm, normalise
from harken.language.ast import Attribute, Constant, Contains, Expression, Like, Not, RLike
from harken.language.intervals import Intervals
from harken.language.normal_form import Conjunction, Constraint, Presence, Residual
from harken.language.residuals import ContainsResidual, LikeResidual, RLikeResidual
from harken.language.sql import parse, print_expression
from harken.limits import Limits
from harken.schema import BUILT_IN, EventType, Schema, format_path
from harken.schema.values import show
from unit.deadline import without_hanging


def normal(text: str, schema: Schema | None = None, **limits: int) -> NormalForm:
    return normalise(parse(text), schema, Limits(**limits))


def shown(text: str, schema: Schema | None = None, **limits: int) -> set[str]:
    """The conjunctions of a text's normal form. Those with equal writing would be equal: there are none such."""
    conjunctions = normal(text, schema, **limits).conjunctions
    found = {_conjunction(each) for each in conjunctions}
    assert len(found) == len(conjunctions)
    return found


def _conjunction(conjunction: Conjunction) -> str:
    constraints = [f"{format_path(path)}: {_constraint(each)}" for path, each in conjunction.constraints]
    return "; ".join(constraints + [print_expression(_residual(each)) for each in conjunction.residuals])


def _residual(residual: Residual) -> Expression:
    match residual:
        case LikeResidual(path=path, pattern=pattern, escape=escape):
            found: Expression = Like(Attribute(path), Constant(pattern), escape)
        case RLikeResidual(path=path, pattern=pattern):
            found = RLike(Attribute(path), Constant(pattern))
        case ContainsResidual(path=path, value=value):
            found = Contains(Attribute(path), Constant(value))
        case _:
            raise AssertionError(residual)
    return Not(found) if residual.negated else found


def _constraint(constraint: Constraint) -> str:
    if isinstance(constraint, Presence):
        return constraint.value
    if constraint.domain is not None:
        ((_, codes),) = constraint.parts
        return "{" + ", ".join(each for code, each in enumerate(constraint.domain.values) if code in codes) + "}"
    texts = [_intervals(each) for _, each in constraint.parts]
    if len(texts) == 1 and not constraint.parts[0][1].full:
        return texts[0]
    return " or ".join(f"{kind} {text}" for (kind, _), text in zip(constraint.parts, texts, strict=True))


def _intervals(intervals: Intervals) -> str:
    ends: list[Any] = [*([None] if intervals.inside else []), *intervals.cuts]
    ends += [None] * (len(ends) % 2)
    return " ∪ ".join(_interval(low, high) for low, high in zip(ends[::2], ends[1::2], strict=True))


def _interval(low: Any, high: Any) -> str:
    if low is not None and high is not None and low[0] == high[0]:
        return f"{{{show(low[0])}}}"
    left = "(-∞" if low is None else ("(" if low[1] else "[") + show(low[0])
    right = "∞)" if high is None else show(high[0]) + ("]" if high[1] else ")")
    return f"{left}, {right}"


# One constraint for an attribute


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a = 5", "a: {5}"),
        ("a <> 5", "a: (-∞, 5) ∪ (5, ∞)"),
        ("a < 5", "a: (-∞, 5)"),
        ("a <= 5", "a: (-∞, 5]"),
        ("a > 5", "a: (5, ∞)"),
        ("a >= 5", "a: [5, ∞)"),
        ("5 < a", "a: (5, ∞)"),
        ("5 >= a", "a: (-∞, 5]"),
        ("5 = a", "a: {5}"),
        ("a BETWEEN 1 AND 5", "a: [1, 5]"),
        ("a BETWEEN 5 AND 5", "a: {5}"),
        ("a NOT BETWEEN 1 AND 5", "a: (-∞, 1) ∪ (5, ∞)"),
        ("a NOT BETWEEN 1 AND 'x'", "a: number (-∞, 1) or string ('x', ∞)"),
        ("a IN (3, 1, 2, 3)", "a: {1} ∪ {2} ∪ {3}"),
        ("a NOT IN (1, 2)", "a: (-∞, 1) ∪ (1, 2) ∪ (2, ∞)"),
        ("a IN (1, 'x')", "a: number {1} or string {'x'}"),
        ("a = 'x'", "a: {'x'}"),
        ("a", "a: [TRUE, ∞)"),
        ("NOT a", "a: (-∞, TRUE)"),
        ("a = FALSE", "a: (-∞, TRUE)"),
        ("a IS NULL", "a: is null"),
        ("a IS NOT NULL", "a: is not null"),
        ("a.b = 5", "a.b: {5}"),
    ],
)
def test_a_predicate_is_a_constraint(text: str, form: str) -> None:
    assert shown(text) == {form}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a > 1 AND a <= 5", "a: (1, 5]"),
        ("a > 1 AND a > 3 AND a > 2", "a: (3, ∞)"),
        ("a BETWEEN 1 AND 9 AND a <> 5", "a: [1, 5) ∪ (5, 9]"),
        ("a IN (1, 2, 3) AND a <> 2", "a: {1} ∪ {3}"),
        ("a IN (1, 'x') AND a < 5", "a: {1}"),
        ("a = 1 AND a IS NOT NULL", "a: {1}"),
        ("a >= 5 AND a <= 5", "a: {5}"),
        ("a = 5 AND a = 5.0", "a: {5}"),
        ("a > 1 AND b < 2 AND a < 5 AND b > 0", "a: (1, 5); b: (0, 2)"),
        ("b = 1 AND (a = 2 AND c = 3)", "a: {2}; b: {1}; c: {3}"),
    ],
)
def test_a_conjunction_has_one_constraint_for_an_attribute(text: str, form: str) -> None:
    assert shown(text) == {form}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a = 1 OR a = 2", "a: {1} ∪ {2}"),
        ("a < 1 OR a > 5 OR a = 3", "a: (-∞, 1) ∪ {3} ∪ (5, ∞)"),
        ("a < 3 OR a BETWEEN 2 AND 4", "a: (-∞, 4]"),
        ("a = 1 OR a = 'x'", "a: number {1} or string {'x'}"),
        ("a = 1 OR a IS NOT NULL", "a: is not null"),
        ("NOT (a <> 1 AND a <> 2)", "a: {1} ∪ {2}"),
        ("a < 5 OR a >= 5", "a: number (-∞, ∞)"),
    ],
)
def test_alternatives_of_one_attribute_are_united(text: str, form: str) -> None:
    assert shown(text) == {form}


def test_alternatives_of_several_attributes_are_conjunctions() -> None:
    assert shown("a = 1 OR b = 2 OR a = 3 OR c IS NULL") == {"a: {1} ∪ {3}", "b: {2}", "c: is null"}


def test_a_missing_attribute_is_an_alternative_of_its_own() -> None:
    assert shown("a = 1 OR a IS NULL") == {"a: {1}", "a: is null"}


def test_alternatives_multiply_under_a_conjunction() -> None:
    assert shown("(a = 1 OR b = 1) AND (c = 1 OR d = 1)") == {
        "a: {1}; c: {1}",
        "a: {1}; d: {1}",
        "b: {1}; c: {1}",
        "b: {1}; d: {1}",
    }


def test_residuals_multiply_too() -> None:
    assert shown("(a LIKE '%b' OR c = 1) AND (d LIKE '%e' OR a LIKE '%b' OR f = 1)") == {
        "a LIKE '%b'; d LIKE '%e'",
        "a LIKE '%b'",
        "f: {1}; a LIKE '%b'",
        "c: {1}; d LIKE '%e'",
        "c: {1}; a LIKE '%b'",
        "c: {1}; f: {1}",
    }


def test_alternatives_that_contradict_each_other_are_dropped() -> None:
    assert shown("(a = 1 OR b = 1) AND (a = 2 OR b = 2)") == {"a: {1}; b: {2}", "a: {2}; b: {1}"}


def test_in_and_unequal_do_not_multiply_conjunctions() -> None:
    text = " AND ".join(f"a{n} IN (1, 2, 3) AND b{n} <> 5" for n in range(20))
    (conjunction,) = normal(text).conjunctions
    assert len(conjunction.constraints) == 40


def test_equal_conjunctions_are_stored_once() -> None:
    assert shown("(a = 1 AND b = 2) OR (b = 2 AND a = 1) OR (a = 1.0 AND b = 2)") == {"a: {1}; b: {2}"}


# Negation, in three-valued logic


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("NOT a < 5", "a >= 5"),
        ("NOT NOT a < 5", "a < 5"),
        ("NOT (a = 1 AND b = 1)", "a <> 1 OR b <> 1"),
        ("NOT (a = 1 OR b = 1)", "a <> 1 AND b <> 1"),
        ("NOT (a = 1 AND NOT b = 1)", "a <> 1 OR b = 1"),
        ("NOT a IN (1, 2)", "a <> 1 AND a <> 2"),
        ("NOT a IS NULL", "a IS NOT NULL"),
        ("a NOT BETWEEN b AND 5", "NOT (a >= b AND a <= 5)"),
    ],
)
def test_negation_goes_to_the_predicates(text: str, same: str) -> None:
    assert normal(text) == normal(same)


# Strings


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("s LIKE 'abc%'", "s: ['abc', 'abd')"),
        ("s NOT LIKE 'abc%'", "s: (-∞, 'abc') ∪ ['abd', ∞)"),
        (r"s LIKE 'a\%%'", "s: ['a%', 'a&')"),
        ("s LIKE 'a!_%' ESCAPE '!'", "s: ['a_', 'a`')"),
        ("s LIKE 'a\U0010ffff%'", "s: ['a\U0010ffff', 'b')"),
        ("s LIKE '\ud7ff%'", "s: ['\ud7ff', '\ue000')"),
        ("s LIKE '%'", "s: string (-∞, ∞)"),
        ("s LIKE 'abc'", "s: {'abc'}"),
        (r"s LIKE '100\%'", "s: {'100%'}"),
        ("s NOT LIKE 'abc'", "s: (-∞, 'abc') ∪ ('abc', ∞)"),
        ("s LIKE ''", "s: (-∞, '']"),  # there is no string before the empty one
    ],
)
def test_a_prefix_or_a_plain_text_is_an_interval(text: str, form: str) -> None:
    assert shown(text) == {form}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("s LIKE '%abc'", "s LIKE '%abc'"),
        ("s NOT LIKE '%abc'", "s NOT LIKE '%abc'"),
        ("s LIKE 'ab%c'", "s: ['ab', 'ac'); s LIKE 'ab%c'"),
        ("s LIKE 'ab_'", "s: ['ab', 'ac'); s LIKE 'ab_'"),
        ("s LIKE '_'", "s LIKE '_'"),
        ("s NOT LIKE 'ab%c'", "s NOT LIKE 'ab%c'"),
    ],
)
def test_another_pattern_is_a_residual_with_the_interval_of_its_prefix(text: str, form: str) -> None:
    assert shown(text) == {form}


# Residuals


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a CONTAINS 1", "a CONTAINS 1"),
        ("a NOT CONTAINS 1", "a NOT CONTAINS 1"),
        ("a CONTAINS 1 AND a CONTAINS 2 AND a CONTAINS 1", "a CONTAINS 1; a CONTAINS 2"),
        ("a RLIKE 'x+' AND c = 1", "c: {1}; a RLIKE 'x+'"),
        ("NOT lower(a) LIKE '%x'", "lower(a) NOT LIKE '%x'"),
    ],
)
def test_what_no_constraint_says_is_a_residual(text: str, form: str) -> None:
    assert shown(text) == {form}


# Derived attributes


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a < b", "a compared with b: {-1}"),
        ("b > a", "a compared with b: {-1}"),
        ("a <= b", "a compared with b: [-1, 0]"),
        ("NOT a < b", "a compared with b: [0, 1]"),
        ("a <> b", "a compared with b: (-∞, 0) ∪ (0, ∞)"),
        ("a <= b AND b <= a", "a compared with b: {0}"),
        ("a BETWEEN b AND 5", "a compared with b: [0, 1]; a: (-∞, 5]"),
        ("5 BETWEEN a AND b", "a: (-∞, 5]; b: [5, ∞)"),
        ("lower(a) = 'x' OR lower(a) = 'y'", "lower(a): {'x'} ∪ {'y'}"),
        ("a * 2 > 7 AND a * 2 < 9", "a * 2: (7, 9)"),
        ("a * 2 > b", "a * 2 compared with b: {1}"),
        ("a ILIKE 'X%'", "lower(a): ['x', 'y')"),
        ("cidr_contains('10.0.0.0/8', ip)", "address(ip): ['40a000000', '40affffff']"),
        ("coalesce(a, 0) = 0", "coalesce(a, 0): {0}"),
        ("flag IS TRUE", "flag: [TRUE, ∞)"),
    ],
)
def test_what_is_worked_out_is_an_attribute(text: str, form: str) -> None:
    assert shown(text) == {form}


def test_unknown_is_told_from_false_where_that_is_asked() -> None:
    assert shown("(a > 5) IS NOT TRUE") == {"a: (-∞, 5]", "lacks(a, 'number'): [TRUE, ∞)"}
    assert shown("(lower(a) = 'x') IS NOT TRUE") == {
        "lower(a): (-∞, 'x') ∪ ('x', ∞)",
        "lacks(lower(a), 'string'): [TRUE, ∞)",
    }
    assert shown("(a LIKE '%x') IS NOT FALSE") == {"a LIKE '%x'", "lacks(a, 'string'): [TRUE, ∞)"}
    assert shown("(a IS NULL) IS NOT TRUE") == {"a: is not null"}


def test_a_derived_attribute_needs_what_it_is_worked_out_from() -> None:
    with pytest.raises(ContradictionError):
        normal("lower(a) = 'x' AND a IS NULL")
    assert shown("coalesce(a, 1) = 1 AND a IS NULL") == {"coalesce(a, 1): {1}; a: is null"}


# Constants


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("TRUE AND a = 1", "a: {1}"),
        ("FALSE OR a = 1", "a: {1}"),
        ("1 < 2 AND a = 1", "a: {1}"),
        ("1 = 'x' OR a = 1", "a: {1}"),
        ("1 IN (1, 2) AND a = 1", "a: {1}"),
        ("'abc' LIKE 'a%' AND a = 1", "a: {1}"),
        ("2 BETWEEN 1 AND 3 AND a = 1", "a: {1}"),
        ("NOT (FALSE OR NOT a = 1)", "a: {1}"),
    ],
)
def test_what_is_said_of_constants_alone_is_settled(text: str, form: str) -> None:
    assert shown(text) == {form}


# Domains


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("colour = 'red'", "colour: {red}"),
        ("colour <> 'red'", "colour: {green, blue}"),
        ("colour NOT IN ('red', 'blue')", "colour: {green}"),
        ("size < 'large'", "size: {small}"),
        ("size <= 'large'", "size: {small, large}"),
        ("NOT size < 'large'", "size: {large}"),
        ("size BETWEEN 'small' AND 'large'", "size: {small, large}"),
        ("category <= 'toy'", "category: {toy, doll, robot}"),
        ("category < 'toy'", "category: {doll, robot}"),
        ("NOT category <= 'toy'", "category: {thing, lamp}"),
        ("category >= 'toy'", "category: {thing, toy}"),
        ("category > 'toy'", "category: {thing}"),
        ("category <= 'toy' AND category <> 'doll'", "category: {toy, robot}"),
        ("category = 'lamp' OR category < 'toy'", "category: {doll, robot, lamp}"),
        ("category LIKE 't%'", "category LIKE 't%'"),
        ("colour CONTAINS 'red'", "colour CONTAINS 'red'"),
        ("colour = other_colour", "colour compared with other_colour: {0}"),
    ],
)
def test_listed_domains(text: str, form: str, schema: Schema) -> None:
    assert shown(text, schema) == {form}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("age < 2.5", "age: (-∞, 3)"),
        ("age > 3", "age: [4, ∞)"),
        ("age = 3", "age: [3, 4)"),
        ("age > 3 AND age < 5", "age: [4, 5)"),
        ("age > 3 AND age <= 150", "age: [4, ∞)"),
        ("count > 2.5", "count: [3, ∞)"),
        ("price > 2.5", "price: (2.5, ∞)"),
    ],
)
def test_integers_are_counted(text: str, form: str, schema: Schema) -> None:
    assert shown(text, schema) == {form}


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("day <= DATE '2026-01-31'", "day < DATE '2026-02-01'"),
        ("day > DATE '2026-01-31'", "day >= DATE '2026-02-01'"),
        ("ends > TIMESTAMP '2026-01-01 00:00:00'", "ends >= TIMESTAMP '2026-01-01 00:00:00.000001'"),
    ],
)
def test_dates_and_timestamps_are_counted_with_or_without_a_schema(text: str, same: str, schema: Schema) -> None:
    assert normal(text) == normal(same)
    assert normal(text, schema) == normal(same, schema)


def test_comparisons_with_timestamps_are_one_interval_beside_that_of_the_string() -> None:
    text = "t >= TIMESTAMP '2026-01-01' AND TIMESTAMP '2026-02-01' > t AND t <> 'x' AND t LIKE '2026%'"
    (conjunction,) = normal(text).conjunctions
    assert [path for path, _ in conjunction.constraints] == [("", '["timestamp",{"at":["t"]}]'), ("t",)]
    assert normal("t < TIMESTAMP '2026-01-01' OR t >= TIMESTAMP '2026-01-01'").conjunctions[0].paths() == [("t",)]


def test_with_a_schema_strings_are_not_read() -> None:
    schema = Schema(attributes={("t",): BUILT_IN["timestamp"]})
    (conjunction,) = normal("t >= TIMESTAMP '2026-01-01'", schema).conjunctions
    assert [path for path, _ in conjunction.constraints] == [("t",)]


# Contradictions


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("a < 1 AND a > 2", "a"),
        ("a = 1 AND a = 2", "a"),
        ("a = 1 AND a <> 1", "a"),
        ("a = 1 AND a = 'x'", "a"),
        ("a IN (1, 2) AND a NOT IN (1, 2)", "a"),
        ("a NOT IN (1, 'x')", "a"),
        ("a BETWEEN 5 AND 1", "a"),
        ("a BETWEEN 1 AND 'x'", "a"),
        ("a IS NULL AND a = 1", "a"),
        ("a IS NULL AND a IS NOT NULL", "a"),
        ("a AND NOT a", "a"),
        ("b = 1 AND (a = 1 AND a = 2)", "a"),
        ("s LIKE 'a%' AND s LIKE 'b%'", "s"),
        ("s LIKE 'a%' AND s = 'b'", "s"),
        ("s < ''", "s"),
        ("d < DATE '0001-01-01'", "d"),
        ("d > DATE '9999-12-31'", "d"),
        ("d > DATE '2026-01-01' AND d < DATE '2026-01-02'", "d"),
        ("t > TIMESTAMP '2026-01-01' AND t < TIMESTAMP '2026-01-01 00:00:00.000001'", "t"),
        ("t IS NULL AND t > TIMESTAMP '2026-01-01'", "t"),
        ("t > TIMESTAMP '2026-01-01' AND t < 5", "t"),
        ("t > TIMESTAMP '2026-01-01' AND t >= DATE '2026-01-01'", "t"),
        ("t NOT IN (TIMESTAMP '2026-01-01', DATE '2026-01-01')", "t"),
        ("t LIKE '%a%b' AND t > TIMESTAMP '2026-01-01' AND t < TIMESTAMP '2026-01-01'", "t"),
        ("t LIKE '%a%b' AND t > TIMESTAMP '2026-01-01' AND t < DATE '2026-01-01'", "t"),
        ("b < FALSE", "b"),
        ("a IS NULL AND a < c", "a"),
        ("a IS NULL AND a CONTAINS 1", "a"),
        ("s IS NULL AND s LIKE '%x'", "s"),
        ("a < a", "a"),
        ("a <> a", "a"),
    ],
)
def test_a_contradiction_is_rejected_and_the_attribute_named(text: str, attribute: str) -> None:
    with pytest.raises(ContradictionError, match="no event can ever match this") as caught:
        normal(text)
    assert caught.value.hint == f"its conditions on `{attribute}` leave no value that meets them all"


@pytest.mark.parametrize(
    "text",
    [
        "age > 3 AND age < 4",
        "age = 3.5",
        "age > 150",
        "age < 0",
        "count > 9223372036854775807",
        "category < 'doll'",
        "category > 'thing'",
        "category <= 'toy' AND category <= 'lamp'",
        "size < 'small'",
        "size < 'unknown'",
        "size >= 'unknown' AND size < 'large'",
        "colour <> 'red' AND colour <> 'green' AND colour <> 'blue'",
        "colour NOT IN ('red', 'green', 'blue')",
    ],
)
def test_a_contradiction_in_a_domain(text: str, schema: Schema) -> None:
    with pytest.raises(ContradictionError):
        normal(text, schema)


@pytest.mark.parametrize("text", ["FALSE", "1 = 2", "1 = 'x'", "NOT 1 = 'x'", "TRUE AND FALSE", "'a' LIKE 'b%'"])
def test_what_is_never_true_of_any_event(text: str) -> None:
    with pytest.raises(ContradictionError) as caught:
        normal(text)
    assert caught.value.hint == "it is false, or unknown, whatever the event"


@pytest.mark.parametrize(
    "text",
    ["price > 3 AND price < 4", "title > 'a' AND title < 'a!'", "size <= 'unknown'", "age >= 150", "category >= 'toy'"],
)
def test_what_is_no_contradiction_in_its_domain(text: str, schema: Schema) -> None:
    assert normal(text, schema).conjunctions


# Tautologies


@pytest.mark.parametrize(
    "text",
    [
        "TRUE",
        "a = 1 OR TRUE",
        "a IS NULL OR a IS NOT NULL",
        "NOT FALSE",
        "1 = 1",
        "a IS NULL OR b = 1 OR a IS NOT NULL",
    ],
)
def test_a_tautology(text: str) -> None:
    assert normal(text).always


@pytest.mark.parametrize(
    "text",
    [
        "price < 5 OR price >= 5 OR price IS NULL",
        "count < 5 OR count > 4 OR count IS NULL",
        "age >= 0 OR age IS NULL",
        "title >= '' OR title IS NULL",
        "title LIKE '%' OR title IS NULL",
        "sold OR NOT sold OR sold IS NULL",
        "colour IN ('red', 'green', 'blue') OR colour IS NULL",
        "category <= 'thing' OR category IS NULL",
        "day >= DATE '0001-01-01' OR day IS NULL",
        "ends <= TIMESTAMP '9999-12-31 23:59:59.999999' OR ends IS NULL",
    ],
)
def test_a_tautology_in_a_domain(text: str, schema: Schema) -> None:
    assert normal(text, schema).always


@pytest.mark.parametrize(
    "text",
    [
        "a < 5 OR a >= 5 OR a IS NULL",  # a may be a string
        "a OR NOT a OR a IS NULL",
        "a IS NULL OR b IS NOT NULL",
        "a IS NOT NULL",
    ],
)
def test_what_is_no_tautology_without_a_schema(text: str) -> None:
    assert not normal(text).always


@pytest.mark.parametrize(
    "text",
    [
        "price < 5 OR price >= 5",
        "price < 5 OR price > 5 OR price IS NULL",
        "size <= 'large' OR size > 'large' OR size IS NULL",  # `unknown` compares unknown
        "category < 'thing' OR category IS NULL",
        "price < 5 OR price >= 5 OR price IS NULL AND sold",
        "price < 5 OR price >= 5 OR price IS NULL AND title LIKE '%x'",
        "(price < 5 OR price >= 5) AND title LIKE '%x' OR price IS NULL",
    ],
)
def test_what_is_no_tautology_in_its_domain(text: str, schema: Schema) -> None:
    assert not normal(text, schema).always


def test_a_set_that_fills_its_domain_still_asks_for_a_value(schema: Schema) -> None:
    """It picks an element, which another constraint may share: it must not become IS NOT NULL."""
    assert shown("age >= 0 AND title = 'x'", schema) == {"age: number (-∞, ∞); title: {'x'}"}


def test_event_types_are_a_domain() -> None:
    schema = Schema(event_types={name: EventType(name, {}) for name in ("sale", "rental")})
    assert shown("event_type <> 'sale'", schema) == {"event_type: {rental}"}


# Limits


def alternatives(count: int) -> str:
    return " OR ".join(f"(a = {n} AND b = {n})" for n in range(count))


def test_as_many_conjunctions_as_the_limit_says() -> None:
    assert len(shown(alternatives(4), max_conjunctions=4)) == 4


def test_one_conjunction_more_is_rejected_with_the_limit_s_name() -> None:
    with pytest.raises(LimitError, match="more than 4 conjunctions") as caught:
        normal(alternatives(5), max_conjunctions=4)
    assert caught.value.limit == "max_conjunctions"


def test_the_limit_holds_for_products() -> None:
    with pytest.raises(LimitError) as caught:
        normal(" AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(11)))
    assert caught.value.limit == "max_conjunctions"


def test_the_limit_counts_different_conjunctions() -> None:
    assert shown("(a = 1 AND b = 1) OR " * 8 + "c = 1", max_conjunctions=2) == {"a: {1}; b: {1}", "c: {1}"}


def test_a_thousand_and_twenty_four_conjunctions_are_taken_by_default() -> None:
    assert len(normal(alternatives(1024)).conjunctions) == 1024


@pytest.mark.parametrize(
    "alternative",
    [
        "(a = {n} OR b = {n})",
        "(a <> {n} OR b <> {n})",
        "(a < {n} OR b < {n})",
        "(a <> {n} OR b = {n})",
        "(a LIKE '%{n}' OR b LIKE '%{n}')",
        "(s LIKE '%{n}' OR c = {n})",
        "(s CONTAINS {n} OR c = {n})",
        "(a{n} = 1 OR c = {n})",
        "(a IS NULL OR a <> {n})",
    ],
)
def test_five_hundred_alternatives_over_few_attributes_end_quickly(alternative: str) -> None:
    """With an answer or a rejection: what counts is that a subscriber cannot hold up the others."""
    text = " AND ".join(alternative.format(n=n) for n in range(500))
    with without_hanging(), suppress(LimitError, ContradictionError):
        normal(text)


def test_alternatives_beside_a_long_list_end_quickly() -> None:
    numbers = ", ".join(str(n) for n in range(1000, 9000))
    text = f"a IN ({numbers}) AND " + " AND ".join(f"(a <> {1000 + n} OR b = {n})" for n in range(500))
    with without_hanging(), suppress(LimitError):
        normal(text)


def test_a_long_list_of_constants_is_quick() -> None:
    numbers = ", ".join(str(n) for n in range(9_999))
    with without_hanging():
        (conjunction,) = normal(f"a NOT IN ({numbers})").conjunctions
    ((_, constraint),) = conjunction.constraints
    assert not isinstance(constraint, Presence)
    assert len(constraint.parts[0][1].cuts) == 2 * 9_999


def test_a_long_conjunction_of_one_attribute_is_quick() -> None:
    text = " AND ".join(f"a <> {n}" for n in range(2_000))
    with without_hanging():
        (conjunction,) = normal(text).conjunctions
    assert len(conjunction.constraints) == 1


def test_a_long_disjunction_of_one_attribute_is_quick() -> None:
    text = " OR ".join(f"a = {n}" for n in range(2_000))
    with without_hanging():
        (conjunction,) = normal(text).conjunctions
    assert len(conjunction.constraints) == 1


def test_the_form_does_not_depend_on_the_hash_seed() -> None:
    text = " OR ".join(f"{name} IS NULL" for name in "abcdefgh")
    imports = "from harken.language import normalise; from harken.language.sql import parse"
    program = f"{imports}; print(normalise(parse({text!r})))"
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.strip() == str(normal(text))


def test_comparisons_with_the_same_small_number_are_one_object() -> None:
    forms = [normalise(parse(text)) for text in ("x = 1", "y = 1 AND z < 5", "x = 1.0", "x = TRUE", "NOT x <> 1")]
    first, second, a_float, a_boolean, negated = [form.conjunctions[0].constraints[0][1] for form in forms]
    assert first is second is negated
    assert first is not a_float
    assert first != a_boolean
