"""The algorithms by name: built in, or announced by installed packages. Modules are imported when needed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from harken.announced import Announced, imported, target_of
from harken.errors import CapabilityError, UnavailableError, did_you_mean
from harken.language.capabilities import Capability
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Matcher, Trait
from harken.matchers.roles import Loads, UsesDatabase

if TYPE_CHECKING:
    from harken.versions.array_file import ArrayFile


ALGORITHMS: Announced[str] = Announced(
    "harken.algorithms",
    {
        "columnar": "harken.matchers.columnar:Columnar",
        "naive": "harken.matchers.naive:Naive",
        "relational_anchored": "harken.relational.anchored:RelationalAnchored",
    },
    target_of,
    laboratory="counting_bits counting_bytes counting_lists equality_preferred gough hanson matching_tree neon "
    "predicate_grouping quarantine rein scan sequential_search",
)
"""By name, the "module:name" of a factory: `factory(limits=…, **options)` makes a matcher. A class that plays the role
`Loads` can be saved and loaded."""
DEFAULT_ALGORITHM = "columnar"


OTHER_KINDS = {
    "programs": "harken.matchers.programs:ProgramMatcher",
    "documents": "harken.matchers.documents:XPathMatcher",
}
"""Matchers of the other kinds of index, by the kind that a plan names. They are the same for every algorithm."""


def create_matcher(algorithm: str, limits: Limits = DEFAULT_LIMITS, **options: Any) -> Matcher:
    """A new matcher. Raises CapabilityError for an unknown algorithm or option, or an invalid value of an option; also
    if its database is a file that has subscriptions."""
    reject_unknown_options(algorithm, options)
    matcher: Matcher = _factory(algorithm)(limits=limits, **options)
    if isinstance(matcher, UsesDatabase):
        matcher.reject_used()
    return matcher


def load_matcher(
    algorithm: str, files: Mapping[str, ArrayFile], limits: Limits, options: Mapping[str, Any]
) -> Matcher | None:
    """The matcher saved as these files; None if there is none, or if its layout is too old to be read."""
    reject_unknown_options(algorithm, options)
    factory = _factory(algorithm)
    if not issubclass(factory, Loads):
        return None
    matcher: Matcher | None = factory.load(files, limits, **options)
    return matcher


def algorithm_options(algorithm: str) -> tuple[str, ...]:
    """The names of the options that an algorithm takes."""
    return options_of(_factory(algorithm))


def options_of(factory: Any) -> tuple[str, ...]:
    """The names of the options of a factory of matchers."""
    taken = signature(factory).parameters.values()
    return tuple(option.name for option in taken if option.name != "limits" and option.kind is not option.VAR_KEYWORD)


def takes_option(algorithm: str, option: str) -> bool:
    """Whether an algorithm has this option. An unknown algorithm has none."""
    return algorithm in ALGORITHMS and option in algorithm_options(algorithm)


def create_other(kind: str, limits: Limits) -> Matcher:
    """A new matcher for plans of another kind than flat. Raises UnavailableError if the kind is unknown."""
    if kind not in OTHER_KINDS:
        raise UnavailableError(f"there is no index for subscriptions of the kind {kind!r}")
    matcher: Matcher = imported(OTHER_KINDS[kind])(limits)
    return matcher


def load_others(files: Mapping[str, ArrayFile], limits: Limits) -> dict[str, Any]:
    """The matchers of other kinds than flat saved as these files, by kind. They play the role `Renumbers`."""
    loaded = {kind: imported(other).load(files, limits) for kind, other in OTHER_KINDS.items()}
    return {kind: matcher for kind, matcher in loaded.items() if matcher is not None}


def algorithm_capabilities(algorithm: str) -> frozenset[Capability]:
    """What subscriptions may require of an algorithm."""
    capabilities: frozenset[Capability] = _factory(algorithm).capabilities
    return capabilities


def algorithm_traits(algorithm: str) -> frozenset[Trait]:
    """How an algorithm handles changes."""
    traits: frozenset[Trait] = _factory(algorithm).traits
    return traits


def algorithm_summary(algorithm: str) -> str:
    """The first line of the docstring of the algorithm's module."""
    _factory(algorithm)
    module = import_module(ALGORITHMS[algorithm].partition(":")[0])
    return (module.__doc__ or "").strip().partition("\n")[0]


def reject_incapable(algorithm: str, required: frozenset[Capability]) -> None:
    """Raise CapabilityError if an algorithm lacks a required capability. The hint names algorithms that have all."""
    _reject(algorithm, required, {name: algorithm_capabilities(name) for name in ALGORITHMS})


def reject_unless_removing(algorithm: str) -> None:
    """Raise CapabilityError if the algorithm cannot remove subscriptions."""
    required = frozenset({Trait.UNSUBSCRIBE})
    if not required <= algorithm_traits(algorithm):
        _reject(algorithm, required, {name: algorithm_traits(name) for name in ALGORITHMS})


def reject_unknown_options(algorithm: str, options: Mapping[str, Any]) -> None:
    """Raise CapabilityError for an option that the algorithm does not take."""
    takes = algorithm_options(algorithm)
    for name in options:
        if name not in takes:
            listed = f"it takes: {', '.join(takes)}" if takes else "it takes none"
            message = f"the algorithm `{algorithm}` does not take the option `{name}`"
            raise CapabilityError(message, hint=did_you_mean(name, takes) or listed)


def _reject(algorithm: str, required: frozenset[Any], able: Mapping[str, frozenset[Any]]) -> None:
    lacking = required - able[algorithm]
    if lacking:
        others = [name for name, abilities in able.items() if required <= abilities]
        hint = f"algorithms that can: {', '.join(others)}" if others else None
        raise CapabilityError(f"the algorithm `{algorithm}` cannot do: {', '.join(sorted(lacking))}", hint=hint)


def _factory(algorithm: str) -> Any:
    if algorithm not in ALGORITHMS:
        hint = ALGORITHMS.hint(algorithm) or f"there are: {', '.join(ALGORITHMS)}"
        raise CapabilityError(f"there is no algorithm `{algorithm}`", hint=hint)
    return imported(ALGORITHMS[algorithm])
