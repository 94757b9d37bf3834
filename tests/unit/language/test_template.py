"""No normal form comes of a template with a hole in it."""

from __future__ import annotations

import pytest

from harken.errors import HarkenError
from harken.language import normalise
from harken.language.normalise import Template
from harken.language.sql import parse


@pytest.mark.parametrize(
    ("first", "second", "constants"),
    [
        ("a = 1", "a = 2", [2]),
        ("1 < a AND b = 'x'", "7 < a AND b = 'y'", [7, "y"]),
        ("a BETWEEN 1 AND 2", "a BETWEEN 3 AND 9", [3, 9]),
        ("5 BETWEEN a AND b", "6 BETWEEN a AND b", [6]),
        ("a IN (1, 'x') OR NOT b IN (1, 2)", "a IN (2, 'y') OR NOT b IN (3, 4)", [2, "y", 3, 4]),
        ("a LIKE 'x%'", "a LIKE '%y'", ["%y"]),
        ("a CONTAINS 1 AND c < d", "a CONTAINS 'x' AND c < d", ["x"]),
        ("1 = 1 AND a", "2 = 2 AND a", [2, 2]),
        ("TRUE AND a = 1", "TRUE AND a = 2", [True, 2]),
        ("1 IN (1, 2) AND a", "2 IN (1, 2) AND a", [2, 1, 2]),
        ("'x' LIKE 'x' AND a", "'y' LIKE '_' AND a", ["y", "_"]),
    ],
)
def test_a_template_takes_other_constants(first: str, second: str, constants: list[object]) -> None:
    template = Template(parse(first))
    assert template.holes == len(constants)
    assert template.fill(constants) == normalise(parse(second))  # type: ignore[arg-type]


@pytest.mark.parametrize("constants", [[], [1], [1, 2, 3]])
def test_a_hole_that_is_not_filled_raises(constants: list[int]) -> None:
    with pytest.raises(ValueError, match="a template with 2 holes was given"):
        Template(parse("a = 1 AND b < 2")).fill(constants)


def test_constants_that_are_false_together_are_settled_when_they_come() -> None:
    template = Template(parse("1 = 1 AND a"))
    with pytest.raises(HarkenError, match="no event can ever match this"):
        template.fill([1, 2])
