"""The algorithms by name: where each is, the options it takes, the roles it plays. Modules are imported when needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from harken.errors import CapabilityError, UnavailableError, did_you_mean
from harken.language.capabilities import Capability
from harken.limits import DEFAULT_LIMITS, Limits
from harken.matchers.base import Matcher, Trait
from harken.matchers.roles import (
    AddsInBulk,
    CountsPredicates,
    Divides,
    MatchesCodes,
    MatchesInParts,
    MatchesOne,
    Persists,
    Plans,
    TellsColumns,
)

if TYPE_CHECKING:
    from harken.versions.array_file import ArrayFile


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What is known of an algorithm before its module is imported."""

    factory: str
    """"module:name" of what makes a matcher: `factory(limits=…, **options)`."""
    options: tuple[str, ...] = ()
    roles: tuple[type, ...] = ()
    loader: str | None = None
    """"module:name" of what loads a matcher that `Persists`: `loader(files, limits, **options)`. It returns None where
    the files are of an earlier version that is not read any more."""


def _of_paper(target: str, *options: str, also: tuple[type, ...] = ()) -> Algorithm:
    return Algorithm(f"harken.matchers.papers.{target}", options, roles=(AddsInBulk, MatchesCodes, *also))


ALGORITHMS: dict[str, Algorithm] = {
    "columnar": Algorithm(
        "harken.matchers.columnar:Columnar",
        options=("layouts", "recent_rows", "background", "small_rows", "settings"),
        roles=(AddsInBulk, Plans, TellsColumns, Persists, Divides, MatchesInParts, MatchesCodes, MatchesOne),
        loader="harken.matchers.columnar.saving:load_matcher",
    ),
    "naive": Algorithm("harken.matchers.naive:Naive"),
    "scan": _of_paper("scan:Scan"),
    "rein": _of_paper("rein:Rein"),
    "counting_lists": _of_paper("counting_lists:CountingLists", "index", also=(CountsPredicates,)),
    "counting_bits": _of_paper("counting_bits:CountingBits", "index", also=(CountsPredicates,)),
    "counting_bytes": _of_paper("counting_bytes:CountingBytes", "index", also=(CountsPredicates,)),
    "equality_preferred": _of_paper("equality_preferred:EqualityPreferred"),
    "quarantine": _of_paper("quarantine:Quarantine"),
    "hanson": _of_paper("hanson:Hanson", "choose"),
    "gough": _of_paper("gough:Gough", "share"),
    "neon": _of_paper("neon:Neon"),
    "matching_tree": _of_paper("matching_tree:MatchingTree", "order", "collapse", "successors", "factor"),
    "sequential_search": Algorithm("harken.relational.sequential_search:SequentialSearch", ("database",)),
    "predicate_grouping": Algorithm("harken.relational.predicate_grouping:PredicateGrouping", ("database",)),
    "relational_anchored": Algorithm("harken.relational.anchored:RelationalAnchored", ("database",)),
}
DEFAULT_ALGORITHM = "columnar"


@dataclass(frozen=True, slots=True)
class OtherKind:
    """The index of plans that are not flat."""

    factory: str
    """"module:name" of what makes a matcher: `factory(limits)`."""
    loader: str
    """"module:name" of what loads one that was saved: `loader(files, limits)`, or None if none was."""


OTHER_KINDS: dict[str, OtherKind] = {
    "programs": OtherKind(
        "harken.matchers.programs:ProgramMatcher", loader="harken.matchers.programs.saving:load_programs"
    ),
    "documents": OtherKind(
        "harken.matchers.documents:XPathMatcher", loader="harken.matchers.documents.saving:load_documents"
    ),
}
"""By the kind that plans name. Whatever the algorithm is, what it leaves to such an index is found by that."""


def create_matcher(algorithm: str, limits: Limits = DEFAULT_LIMITS, **options: Any) -> Matcher:
    """A new matcher. Raises CapabilityError if there is no such algorithm, option, or value of an option."""
    refuse_unknown_options(algorithm, options)
    matcher: Matcher = _imported(_known(algorithm).factory)(limits=limits, **options)
    return matcher


def load_matcher(
    algorithm: str, files: Mapping[str, ArrayFile], limits: Limits, options: Mapping[str, Any]
) -> Matcher | None:
    """The matcher that was saved as these files; None if there is none, or one that is not read any more."""
    known = _known(algorithm)
    refuse_unknown_options(algorithm, options)
    if known.loader is None:
        return None
    found: Matcher | None = _imported(known.loader)(files, limits, **options)
    return found


def takes_option(algorithm: str, option: str) -> bool:
    """Whether an algorithm has an option of this name. One that is not known has none."""
    return algorithm in ALGORITHMS and option in ALGORITHMS[algorithm].options


def create_other(kind: str, limits: Limits) -> Matcher:
    """A new matcher for plans of a kind that is not flat. Raises UnavailableError if there is none."""
    if kind not in OTHER_KINDS:
        raise UnavailableError(f"there is no index for subscriptions of the kind {kind!r}")
    matcher: Matcher = _imported(OTHER_KINDS[kind].factory)(limits)
    return matcher


def load_others(files: Mapping[str, ArrayFile], limits: Limits) -> dict[str, Any]:
    """The matchers that are not flat and were saved as these files, by kind. They play `Renumbers`."""
    found = {kind: _imported(other.loader)(files, limits) for kind, other in OTHER_KINDS.items()}
    return {kind: matcher for kind, matcher in found.items() if matcher is not None}


def algorithm_capabilities(algorithm: str) -> frozenset[Capability]:
    """What subscriptions may ask of an algorithm."""
    capabilities: frozenset[Capability] = _imported(_known(algorithm).factory).capabilities
    return capabilities


def algorithm_traits(algorithm: str) -> frozenset[Trait]:
    """How an algorithm takes changes."""
    traits: frozenset[Trait] = _imported(_known(algorithm).factory).traits
    return traits


def plays(algorithm: str, role: type) -> bool:
    """Whether the matchers of an algorithm play a role."""
    return role in _known(algorithm).roles


def algorithm_summary(algorithm: str) -> str:
    """The first line of what the algorithm's module says of itself."""
    module = import_module(_known(algorithm).factory.partition(":")[0])
    return (module.__doc__ or "").strip().partition("\n")[0]


def refuse_incapable(algorithm: str, required: frozenset[Capability]) -> None:
    """Raise CapabilityError, naming the algorithms that can, if this one cannot do all that is required."""
    _refuse(algorithm, required, {name: algorithm_capabilities(name) for name in ALGORITHMS})


def refuse_unless_removing(algorithm: str) -> None:
    """Raise CapabilityError if subscriptions cannot leave this algorithm."""
    required = frozenset({Trait.UNSUBSCRIBE})
    if not required <= algorithm_traits(algorithm):
        _refuse(algorithm, required, {name: algorithm_traits(name) for name in ALGORITHMS})


def refuse_unknown_options(algorithm: str, options: Mapping[str, Any]) -> None:
    """Raise CapabilityError if the algorithm does not take these options."""
    takes = _known(algorithm).options
    for name in options:
        if name not in takes:
            listed = f"it takes: {', '.join(takes)}" if takes else "it takes none"
            message = f"the algorithm `{algorithm}` does not take the option `{name}`"
            raise CapabilityError(message, hint=did_you_mean(name, takes) or listed)


def _refuse(algorithm: str, required: frozenset[Any], able: Mapping[str, frozenset[Any]]) -> None:
    lacking = required - able[algorithm]
    if lacking:
        others = [name for name, found in able.items() if required <= found]
        hint = f"these can: {', '.join(others)}" if others else None
        raise CapabilityError(f"the algorithm `{algorithm}` cannot do: {', '.join(sorted(lacking))}", hint=hint)


def _known(algorithm: str) -> Algorithm:
    found = ALGORITHMS.get(algorithm)
    if found is None:
        hint = did_you_mean(algorithm, ALGORITHMS) or f"there are: {', '.join(ALGORITHMS)}"
        raise CapabilityError(f"there is no algorithm `{algorithm}`", hint=hint)
    return found


def _imported(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
