"""Matching algorithms behind one protocol. An algorithm is a file here and a line in the registry."""

from harken.matchers.base import Capability, Entry, FormOf, Matcher, MatchResult
from harken.matchers.registry import ALGORITHMS, algorithm_capabilities, create_matcher

__all__ = [
    "ALGORITHMS",
    "Capability",
    "Entry",
    "FormOf",
    "MatchResult",
    "Matcher",
    "algorithm_capabilities",
    "create_matcher",
]
