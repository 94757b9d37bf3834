"""The callback for completed steps of a batch, with which crash tests stop the process at any step."""

from __future__ import annotations

from collections.abc import Callable

Reached = Callable[[str], None]
"""Called with the name of each completed step."""


def ignore_step(step: str) -> None:
    """The default callback, which does nothing."""
