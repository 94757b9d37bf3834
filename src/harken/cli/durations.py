"""Durations on the command line: 90, 30s, 15m, 1h30m, 7d, 2w."""

from __future__ import annotations

import re

import typer

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])", re.ASCII)
_PLAIN = re.compile(r"\d+(?:\.\d+)?", re.ASCII)


def seconds_of(text: str) -> float:
    """The seconds of a duration; a number without a unit is seconds. Raises ValueError."""
    written = text.strip().lower()
    if _PLAIN.fullmatch(written):
        return float(written)
    parts = _PART.findall(written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        raise ValueError(f"{text!r} is not a duration: write 30s, 15m, 1h30m or 7d")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


def seconds_option(text: str | None, option: str) -> float | None:
    """The seconds of an option's value. Raises BadParameter."""
    try:
        return None if text is None else seconds_of(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
