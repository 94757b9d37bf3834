"""Subscriptions whose predicates are decided by plugged-in operators, evaluated as few times as possible."""

from harken.matchers.operators.matcher import OperatorMatcher, new_matcher

__all__ = ["OperatorMatcher", "new_matcher"]
