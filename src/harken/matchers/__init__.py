"""Matching algorithms behind one protocol. An algorithm is a file here and a line in the registry."""

from harken.language.capabilities import Capability
from harken.matchers.base import Entry, FormOf, Matcher, MatchResult, Trait
from harken.matchers.registry import ALGORITHMS, algorithm_capabilities, algorithm_traits, create_matcher

__all__ = [
    "ALGORITHMS",
    "Capability",
    "Entry",
    "FormOf",
    "MatchResult",
    "Matcher",
    "Trait",
    "algorithm_capabilities",
    "algorithm_traits",
    "create_matcher",
]
