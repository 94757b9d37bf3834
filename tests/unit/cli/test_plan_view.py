"""What `harken explain --plan` says of a group."""

from __future__ import annotations

from typing import Any

import pytest

from harken.cli.plan_view import found_by


@pytest.mark.parametrize(
    ("group", "told"),
    [
        ({"key": None, "filter": [], "range": None}, "all"),
        ({"key": "a number", "filter": [], "range": "c number"}, "key a number, range of c number"),
        ({"key": None, "filter": [], "range": "c number"}, "range of c number"),
        (
            {"key": "a number", "filter": ["b string"], "range": None},
            "key a number, filter of a number, b string",
        ),
        ({"directory": ["a number", "b string"]}, "directory of a number, b string"),
        ({"directory": []}, "bitmaps"),
    ],
)
def test_what_leads_to_a_group(group: dict[str, Any], told: str) -> None:
    assert found_by(group) == told
