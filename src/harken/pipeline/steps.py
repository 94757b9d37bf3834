"""The steps of a batch, announced as they are completed, so that a crash test can stop the process at any of them."""

from __future__ import annotations

from collections.abc import Callable

Reached = Callable[[str], None]
"""Is called with the name of a step that is completed."""


def ignore_step(step: str) -> None:
    """The usual listener: it does nothing."""
