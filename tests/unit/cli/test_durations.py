"""Durations on the command line."""

from __future__ import annotations

import pytest
import typer

from harken.cli.durations import seconds_of, seconds_option


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5", 1.5), ("30s", 30), ("15m", 900), ("1h30m", 5_400), ("7d", 604_800), ("2W", 1_209_600)],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
    assert seconds_option(text, "--x") == seconds


def test_milliseconds_are_no_minutes() -> None:
    assert seconds_of("250ms") == 0.25


@pytest.mark.parametrize("text", ["", "m", "5 m", "1y", "-5", "1h 30", "30m5", "1e3", "５"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: write 30s"):
        seconds_of(text)
    with pytest.raises(typer.BadParameter):
        seconds_option(text, "--x")
