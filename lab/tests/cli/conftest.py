"""The laboratory's commands are tested as the others are."""

from __future__ import annotations

from unit.cli.conftest import events, no_colours_from_outside, program, run, state, subscriptions, write

__all__ = ["events", "no_colours_from_outside", "program", "run", "state", "subscriptions", "write"]
