"""The index of programs: for subscriptions with patterns, and for those whose normal form would be large."""

from harken.matchers.programs.matcher import ProgramMatcher

__all__ = ["ProgramMatcher"]
