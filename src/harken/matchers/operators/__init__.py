"""Subscriptions with predicates that plugged-in operators decide, evaluated as few times as possible."""

from harken.matchers.operators.matcher import OperatorMatcher, new_matcher

__all__ = ["OperatorMatcher", "new_matcher"]
