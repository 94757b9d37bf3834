"""Matching algorithms behind one protocol. An algorithm is a file here and a line in the registry."""

from harken.language.capabilities import Capability
from harken.matchers.algorithm_registry import ALGORITHMS, algorithm_capabilities, algorithm_traits, create_matcher
from harken.matchers.base import Entry, FormOf, Matcher, MatchResult, Trait

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
