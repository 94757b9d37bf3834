"""The algorithms by name. A module is imported only when its algorithm is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from harken.errors import CapabilityError, did_you_mean
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Capability, Matcher

ALGORITHMS: dict[str, str] = {
    "columnar": "harken.matchers.columnar:Columnar",
    "naive": "harken.matchers.naive:Naive",
    "scan": "harken.matchers.papers.scan:Scan",
    "counting_lists": "harken.matchers.papers.counting_lists:CountingLists",
    "counting_bits": "harken.matchers.papers.counting_bits:CountingBits",
    "counting_bytes": "harken.matchers.papers.counting_bytes:CountingBytes",
    "equality_preferred": "harken.matchers.papers.equality_preferred:EqualityPreferred",
    "quarantine": "harken.matchers.papers.quarantine:Quarantine",
    "hanson": "harken.matchers.papers.hanson:Hanson",
    "gough": "harken.matchers.papers.gough:Gough",
    "neon": "harken.matchers.papers.neon:Neon",
    "matching_tree": "harken.matchers.papers.matching_tree:MatchingTree",
}
DEFAULT_ALGORITHM = "columnar"


def create_matcher(algorithm: str, limits: Limits = DEFAULT_LIMITS, **options: Any) -> Matcher:
    """A new matcher. Raises CapabilityError if there is no such algorithm or it does not take the options."""
    factory = _factory(algorithm)
    try:
        matcher: Matcher = factory(limits=limits, **options)
    except TypeError as problem:
        raise CapabilityError(f"the algorithm `{algorithm}` does not take these options: {problem}") from None
    return matcher


def algorithm_capabilities(algorithm: str) -> frozenset[Capability]:
    """What an algorithm can do."""
    capabilities: frozenset[Capability] = _factory(algorithm).capabilities
    return capabilities


def algorithm_summary(algorithm: str) -> str:
    """The first line of what the algorithm's module says of itself."""
    return (import_module(ALGORITHMS[algorithm].partition(":")[0]).__doc__ or "").strip().partition("\n")[0]


def refuse_incapable(algorithm: str, required: frozenset[Capability]) -> None:
    """Raise CapabilityError, naming the algorithms that can, if this one cannot do all that is required."""
    lacking = required - algorithm_capabilities(algorithm)
    if not lacking:
        return
    able = [name for name in ALGORITHMS if required <= algorithm_capabilities(name)]
    hint = f"these can: {', '.join(able)}" if able else None
    raise CapabilityError(f"the algorithm `{algorithm}` cannot do: {', '.join(sorted(lacking))}", hint=hint)


def _factory(algorithm: str) -> Any:
    target = ALGORITHMS.get(algorithm)
    if target is None:
        hint = did_you_mean(algorithm, ALGORITHMS) or f"there are: {', '.join(ALGORITHMS)}"
        raise CapabilityError(f"there is no algorithm `{algorithm}`", hint=hint)
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
