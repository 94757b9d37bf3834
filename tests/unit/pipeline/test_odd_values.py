"""What is odd about a value, and what is not."""

from __future__ import annotations

import pytest

from harken.pipeline.odd_values import odd_values_of_event
from harken.schema import Kind

EXPECTED = {("delta",): Kind.NUMBER, ("a", "b"): Kind.NUMBER, ("flag",): Kind.BOOLEAN, ("zip",): Kind.STRING}


@pytest.mark.parametrize(
    ("exact", "found"),
    [
        ('{"delta":"lots"}', [("delta", '`delta` is "lots", where subscriptions expect a number')]),
        ('{"delta":true}', [("delta", "`delta` is true, where subscriptions expect a number")]),
        ('{"delta":{"x":1}}', [("delta", '`delta` is {"x": 1}, where subscriptions expect a number')]),
        ('{"delta":[1,"2"]}', [("delta", '`delta` is "2", where subscriptions expect a number')]),
        ('{"a":{"b":"x"}}', [("a.b", '`a.b` is "x", where subscriptions expect a number')]),
        ('{"flag":"true"}', [("flag", '`flag` is "true", where subscriptions expect a boolean')]),
        ('{"zip":123}', [("zip", "`zip` is 123, where subscriptions expect a string")]),
        ('{"delta":9007199254740993}', []),
        ('{"delta":[1,2.5],"a":[{"b":1},{"b":null},{}]}', []),
        ('{"whatever":"x"}', []),
    ],
)
def test_what_is_odd(exact: str, found: list[tuple[str, str]]) -> None:
    assert odd_values_of_event(exact, EXPECTED) == found


def test_a_long_value_is_shortened() -> None:
    ((_, reason),) = odd_values_of_event(f'{{"delta":"{"x" * 10_000}"}}', EXPECTED)
    assert len(reason) < 300
