"""Normal forms to rows."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from harken.codes import flatten as module
from harken.codes.flatten import flatten, plain_predicates
from harken.language import normalise
from harken.language.sql import parse
from harken.schema import Schema, parse_schema

SCHEMA = parse_schema("""
[domains.size]
type = "enumerated"
values = ["S", "M", "L", "XL"]
order = [["S", "M", "L", "XL"]]
[domains.age]
type = "integer"
low = 0
high = 150
[attributes]
size = "size"
age = "age"
n = "integer"
""")

Row = dict[str, tuple[Any, Any]]


def rows(*texts: str, schema: Schema | None = None) -> list[tuple[int, bool, Row]]:
    """The number of each row, whether it is exact, and its intervals by column: (low cut, high cut)."""
    entries = [(number, normalise(parse(text), schema)) for number, text in enumerate(texts)]
    numbers, columns, inexact, _ = flatten(entries)
    found: list[Row] = [{} for _ in numbers]
    for each in columns:
        constants: Any = each.constants
        assert list(each.rows) == sorted(set(each.rows.tolist()))
        for place, row in enumerate(each.rows):
            low, high = each.low[place], each.high[place]
            found[row][str(each.column)] = (
                None if low < 0 else (constants[low], int(each.low_side[place])),
                None if high < 0 else (constants[high], int(each.high_side[place])),
            )
    return [(int(number), not doubt, row) for number, doubt, row in zip(numbers, inexact, found, strict=True)]


def point(value: Any) -> tuple[Any, Any]:
    return (value, 0), (value, 1)


PRESENT, ABSENT = point(True), point(False)
ANY = (None, None)


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("x = 5", {"x number": point(5)}),
        ("x <> 5", {"x number": ((5, 1), (5, 0))}),
        ("x < 5", {"x number": (None, (5, 0))}),
        ("x >= 5", {"x number": ((5, 0), None)}),
        ("x BETWEEN 5 AND 7.5", {"x number": ((5, 0), (7.5, 1))}),
        ("x NOT BETWEEN 5 AND 7", {"x number": ((7, 1), (5, 0))}),
        ("x LIKE 'ab%'", {"x string": (("ab", 0), ("ac", 0))}),
        ("x", {"x boolean": point(True)}),
        ("NOT x", {"x boolean": point(False)}),
        ("x = DATE '2026-01-01'", {"x date": point(date(2026, 1, 1))}),
        ("x <> DATE '2026-01-01'", {"x date": ((date(2026, 1, 1), 1), (date(2026, 1, 1), 0))}),
        ("x <= DATE '2026-01-01'", {"x date": (None, (date(2026, 1, 1), 1))}),
        ("x = DATE '0001-01-01'", {"x date": point(date.min)}),
        ("x = DATE '9999-12-31'", {"x date": point(date.max)}),
        ("x IS NULL", {"x presence": ABSENT}),
        ("x IS NOT NULL", {"x presence": PRESENT}),
        ("x < 5 OR x >= 5", {"x number": ANY}),
        ("x = 1 AND y.z = 'a'", {"x number": point(1), "y.z string": point("a")}),
        ("TRUE", {}),
    ],
)
def test_what_is_one_row(text: str, interval: Row) -> None:
    assert rows(text) == [(0, True, interval)]


def test_intervals_and_kinds_are_rows() -> None:
    found = rows("x IN (1, 2, 'a') AND y < 3")
    assert [row for _, _, row in found] == [
        {"x number": point(1), "y number": (None, (3, 0))},
        {"x number": point(2), "y number": (None, (3, 0))},
        {"x string": point("a"), "y number": (None, (3, 0))},
    ]
    assert all(exact for _, exact, _ in found)


def test_alternatives_are_rows() -> None:
    assert rows("x = 1 OR y = 2", "z = 3") == [
        (0, True, {"x number": point(1)}),
        (0, True, {"y number": point(2)}),
        (1, True, {"z number": point(3)}),
    ]


# Derived attributes


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("x < y", {"x compared with y number": point(-1)}),
        ("x < y AND x > 3", {"x compared with y number": point(-1), "x number": ((3, 1), None)}),
        ("lower(x) = 'a'", {"lower(x) string": point("a")}),
        ("size(x) > 2", {"size(x) number": ((2, 1), None)}),
    ],
)
def test_derived_attributes_are_columns(text: str, row: Row) -> None:
    assert rows(text) == [(0, True, row)]


# Residual predicates


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("x CONTAINS 5", {"x number": point(5)}),
        ("x CONTAINS 5 AND x CONTAINS 6", {"x number": point(5)}),
        ("x NOT CONTAINS 5", {"x presence": PRESENT}),
        ("x LIKE '%a'", {"x string": ANY}),
        ("x NOT LIKE '%a'", {"x string": ANY}),
        ("x LIKE 'b%a'", {"x string": (("b", 0), ("c", 0))}),
    ],
)
def test_residuals_leave_what_they_imply(text: str, row: Row) -> None:
    assert rows(text) == [(0, False, row)]


def test_equal_rows_of_one_are_one() -> None:
    assert len(rows("x LIKE '%a' OR x LIKE '%b'")) == 1
    assert rows("y NOT CONTAINS 1 AND x > 3 OR y IS NOT NULL AND x > 3") == [
        (0, True, {"x number": ((3, 1), None), "y presence": PRESENT})
    ]
    assert len(rows("x LIKE '%a'", "x LIKE '%b'")) == 2


# Domains


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("size = 'S'", point(0)),
        ("size = 'M'", point(1)),
        ("size = 'XL'", point(3)),
        ("size <> 'M'", ((1, 1), (1, 0))),
        ("size < 'L'", (None, (1, 1))),
        ("size >= 'M'", ((1, 0), None)),
    ],
)
def test_coded_domains(text: str, interval: Any) -> None:
    ((_, exact, row),) = rows(text, schema=SCHEMA)
    assert exact
    assert row == {"size string": interval}
    _, (column,), _, _ = flatten([(0, normalise(parse(text), SCHEMA))])
    assert column.column.coded == ("S", "M", "L", "XL")


def test_contains_in_a_coded_domain_is_about_strings() -> None:
    _, (column,), inexact, _ = flatten([(0, normalise(parse("size CONTAINS 'M'"), SCHEMA))])
    assert (column.column.coded, column.constants, inexact.tolist()) == (None, ["M"], [True])


@pytest.mark.parametrize(
    ("text", "interval"),
    [("age = 5", point(5)), ("age <= 5", (None, (5, 1))), ("age <> 5", ((5, 1), (5, 0))), ("age = 150", point(150))],
)
def test_integers_are_known_by_the_schema(text: str, interval: Any) -> None:
    assert rows(text, schema=SCHEMA) == [(0, True, {"age number": interval})]


# Limits


def test_ten_thousand_values_are_as_many_rows() -> None:
    found = rows(f"x IN ({', '.join(map(str, range(0, 20_000, 2)))})")
    assert len(found) == 10_000
    assert all(exact for _, exact, _ in found)


def test_beyond_the_limit_others_have_their_hull() -> None:
    found = rows("x IN (1, 3, 5, 7, 9) AND y IN (1, 3, 5, 7) AND z IN (2, 4, 6, 8, 10, 12)")
    assert len(found) == 24
    assert not any(exact for _, exact, _ in found)
    assert {row["x number"] for _, _, row in found} == {((1, 0), (9, 1))}
    assert len({(row["y number"], row["z number"]) for _, _, row in found}) == 24


def test_within_the_limit_all_are_expanded() -> None:
    found = rows("x IN (1, 3, 5, 7) AND y IN (1, 3, 5, 7) AND z IN (2, 4, 6, 8, 10, 12)")
    assert len(found) == 4 * 4 * 6
    assert all(exact for _, exact, _ in found)


def test_the_hull_of_several_kinds_is_presence() -> None:
    found = rows("x IN (1, 3, 5, 7) AND y IN (1, 'a', 2.5, 'b', 7) AND z IN (1, 3, 5, 7, 9, 11)")
    assert {row["y presence"] for _, _, row in found} == {PRESENT}
    assert len(found) == 24


def test_a_subscription_has_so_many_rows_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    found = rows("x IN (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21) OR y IN (1, 3, 5) AND z > 1")
    assert [(exact, row) for _, exact, row in found if "x number" in row] == [(False, {"x number": ((1, 0), (21, 1))})]
    assert len(found) == 4
    kept = rows("x IN (1, 3, 5, 7, 9, 11) AND y IN (1, 3)")
    assert len(kept) == 6
    assert {row["y number"] for _, _, row in kept} == {((1, 0), (3, 1))}


def test_nothing() -> None:
    numbers, columns, inexact, overlapping = flatten([])
    assert (len(numbers), columns, len(inexact), len(overlapping)) == (0, [], 0, 0)


@pytest.mark.parametrize("other", ["b IS NULL", "b = TRUE", "b <> 3 AND b <> 5", "b IN (1, 3)", "age > 17"])
def test_plain_rows_around_one_that_begins_as_they_do(other: str) -> None:
    """The quick way takes `a = 1`, and has to give it back when it comes to the other one."""
    alone = [row for _, _, row in rows(f"a = 1 AND {other}", schema=SCHEMA)]
    assert all("a number" in row and len(row) == 2 for row in alone)
    found = rows("a > 0 AND c = 'x'", f"a = 1 AND {other}", "a < 9", schema=SCHEMA)
    assert [(number, row) for number, _, row in found] == [
        (0, {"a number": ((0, 1), None), "c string": point("x")}),
        *((1, row) for row in alone),
        (2, {"a number": (None, (9, 0))}),
    ]


def test_rows_of_which_several_may_be_true() -> None:
    texts = ["a = 1", "a = 1 OR b = 1", "a IN (1, 3)", "a = 2"]
    numbers, _, _, overlapping = flatten((n, normalise(parse(text), None)) for n, text in enumerate(texts))
    assert list(zip(numbers.tolist(), overlapping.tolist(), strict=True)) == [
        (0, False),
        (1, True),
        (1, True),
        (2, False),
        (2, False),
        (3, False),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b = 'x' AND a > 1", [("a", "number", (1, 1), None), ("b", "string", *point("x"))]),
        ("a <> 2 AND b <= 7", [("a", "number", (2, 1), (2, 0)), ("b", "number", None, (7, 1))]),
        ("age <= 17", None),
        ("size = 'M'", None),
        ("a = TRUE", None),
        ("a IS NULL", None),
        ("a = 1 OR b = 2", None),
        ("a IN (1, 3)", None),
        ("a LIKE '%x%'", None),
    ],
)
def test_the_predicates_of_a_plain_subscription(text: str, expected: list[Any] | None) -> None:
    found = plain_predicates(normalise(parse(text), SCHEMA))
    if found is not None:
        found = sorted((*path, str(kind), low, high) for path, kind, low, high in found)
    assert found == expected
