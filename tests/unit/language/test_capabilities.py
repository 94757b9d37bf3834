"""What each kind of normal form asks of a matcher."""

from __future__ import annotations

import pytest

from harken.language import normalise
from harken.language.capabilities import Capability, required_capabilities
from harken.language.sql import parse
from harken.schema import Schema, parse_schema

SCHEMA = parse_schema("""
[domains.category]
type = "hierarchical"
[domains.category.children]
thing = ["toy", "lamp"]
toy = ["doll", "robot"]

[domains.size]
type = "enumerated"
values = ["small", "medium", "large"]
order = [["small", "medium", "large"]]

[domains.age]
type = "integer"
low = 0
high = 150

[attributes]
category = "category"
size = "size"
other_size = "size"
age = "age"
day = "date"
""")


def required(text: str, schema: Schema | None = None) -> set[str]:
    return {each.name for each in required_capabilities(normalise(parse(text), schema))}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("TRUE", ""),
        ("a", "EQUALITY"),
        ("NOT a", "EQUALITY"),
        ("a = DATE '2026-01-01'", "EQUALITY"),
        ("a = DATE '0001-01-01'", "EQUALITY"),
        ("a = DATE '9999-12-31'", "EQUALITY"),
        ("a = TIMESTAMP '2026-01-01'", "EQUALITY"),
        ("a > DATE '2026-01-01'", "RANGE"),
        ("s = ''", "EQUALITY"),
        ("a = 1", "EQUALITY"),
        ("a = 'x' AND b = 2", "EQUALITY"),
        ("a < 1", "RANGE"),
        ("a >= 1", "RANGE"),
        ("a BETWEEN 1 AND 2", "RANGE"),
        ("a >= 1 AND a <= 1", "EQUALITY"),
        ("s LIKE 'x%'", "RANGE"),
        ("s LIKE 'x'", "EQUALITY"),
        ("a IN (1)", "EQUALITY"),
        ("a IN (1, 2)", "VALUE_SET"),
        ("a <> 1", "VALUE_SET"),
        ("a NOT BETWEEN 1 AND 2", "VALUE_SET"),
        ("a = 1 OR a > 5", "VALUE_SET"),
        ("a IN (1, 'x')", "EQUALITY VALUE_SET"),
        ("a IS NULL", "PRESENCE"),
        ("a IS NOT NULL", "PRESENCE"),
        ("a = 1 OR b = 1", "DISJUNCTION EQUALITY"),
        ("a = 1 OR a IS NULL", "DISJUNCTION EQUALITY PRESENCE"),
        ("s LIKE '%x'", "PATTERN"),
        ("s NOT LIKE '%x'", "PATTERN"),
        ("s LIKE 'x%y'", "PATTERN RANGE"),
        ("a CONTAINS 1", "CONTAINS"),
        ("a NOT CONTAINS 1", "CONTAINS"),
        ("a < b", "ATTRIBUTE_COMPARISON"),
        ("a = 1 AND b < 2 AND c < d", "ATTRIBUTE_COMPARISON EQUALITY RANGE"),
        ("a = 1 AND b < 2 OR s LIKE '%x'", "DISJUNCTION EQUALITY PATTERN RANGE"),
    ],
)
def test_required_capabilities(text: str, names: str) -> None:
    assert required(text) == set(names.split())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("category <= 'toy'", "DOMAIN_ORDER RANGE"),
        ("size <= 'medium'", "DOMAIN_ORDER RANGE"),
        ("size <> 'medium'", "DOMAIN_ORDER VALUE_SET"),
        ("size < other_size", "ATTRIBUTE_COMPARISON"),
        ("age < 5", "RANGE"),
    ],
)
def test_required_capabilities_in_domains(text: str, names: str) -> None:
    assert required(text, SCHEMA) == set(names.split())


@pytest.mark.parametrize(
    "text", ["category = 'toy'", "size = 'small'", "size < 'medium'", "age = 5", "age < 1", "day = DATE '2026-01-01'"]
)
def test_one_value_of_a_counted_domain_is_equality(text: str) -> None:
    assert required(text, SCHEMA) == {"EQUALITY"}


def test_a_capability_reads_as_words() -> None:
    assert str(Capability.DOMAIN_ORDER) == "hierarchies and partial orders"
