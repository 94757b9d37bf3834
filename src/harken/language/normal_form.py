"""The normal form: what normalisation makes of an expression, and what matchers take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from harken.language.intervals import LINES, Intervals, Line, common, integers, united
from harken.schema import CodedDomain, Domain, IntegerDomain, Kind
from harken.schema.derived import READ_AS, needs_of, reading, reading_of, sources_of
from harken.schema.paths import Path
from harken.schema.values import INT64_MAX, INT64_MIN, KINDS

if TYPE_CHECKING:
    from harken.language.capabilities import Capability


class Presence(Enum):
    """A constraint that asks only whether the attribute has any value in the event."""

    ABSENT = "is null"
    PRESENT = "is not null"


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A constraint: the value has to be in one of these sets, by its kind. With a coded domain the sets hold codes."""

    parts: tuple[tuple[Kind, Intervals], ...]
    domain: CodedDomain | None = field(default=None, compare=False, repr=False)
    integers: IntegerDomain | None = field(default=None, compare=False, repr=False)
    """The domain, if it has integers only: nothing lies between two neighbours."""

    def admits(self, value: object) -> bool:
        kind = KINDS.get(type(value))
        for wanted, admitted in self.parts:
            if wanted is kind:
                return (value if self.domain is None else self.domain.code(str(value))) in admitted
        return False


Constraint = ValueSet | Presence


Implied = Sequence[tuple[Path, Constraint]]


class Residual(Protocol):
    """A predicate that no constraint on one attribute expresses. Immutable, and compared by content."""

    @property
    def capability(self) -> Capability:
        """What it requires of a matcher."""

    @property
    def of_sets(self) -> bool:
        """Whether it reads all values of its attributes; else one of each, as a binding picks them."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The attributes that it reads. It does not hold unless each has a value."""

    def implied(self) -> Implied:
        """Constraints that some value of an attribute meets whenever it holds: an index may use them."""

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether it is true of the values at its paths: one each (None if missing) or, if `of_sets`, a list each."""


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Constraints, at most one per attribute, and residuals, all of which have to hold."""

    constraints: tuple[tuple[Path, Constraint], ...]
    residuals: tuple[Residual, ...] = ()

    def paths(self) -> list[Path]:
        """The attributes that have to have a value."""
        absent = {path for path, constraint in self.constraints if constraint is Presence.ABSENT}
        return [need for path in self.asked() if path not in absent for need in needs_of(path)]

    def asked(self) -> list[Path]:
        """The paths of constraints and residuals, also of derived attributes."""
        paths = [path for path, _ in self.constraints]
        if not self.residuals:
            return paths
        return [*paths, *(path for residual in self.residuals for path in residual.paths)]


@dataclass(frozen=True, slots=True)
class NormalForm:
    """A disjunction of distinct conjunctions."""

    conjunctions: tuple[Conjunction, ...]

    def names(self) -> set[str]:
        """The attributes that it reads, each by the first key of its path."""
        names: set[str] = set()
        for conjunction in self.conjunctions:
            for path in conjunction.asked():
                if path[0]:  # not a derived one
                    names.add(path[0])
                else:
                    names.update(source[0] for source in sources_of(path))
        return names

    @property
    def always(self) -> bool:
        """Whether every event matches."""
        first = self.conjunctions[0]  # a conjunction without conditions is the only one
        return not first.constraints and not first.residuals


def intersection(left: Constraint, right: Constraint) -> Constraint | None:
    """The constraint that admits what both admit, or None if nothing can."""
    if isinstance(left, Presence) or isinstance(right, Presence):
        if left is right:
            return left
        if Presence.ABSENT in (left, right):
            return None
        return right if isinstance(left, Presence) else left  # a value that is admitted is present
    right_sets = dict(right.parts)
    both = [(kind, admitted.intersection(right_sets[kind])) for kind, admitted in left.parts if kind in right_sets]
    parts = tuple((kind, admitted) for kind, admitted in both if not admitted.empty)
    return ValueSet(parts, left.domain, left.integers) if parts else None


def intersection_of(constraints: Sequence[Constraint]) -> Constraint | None:
    """The constraint that admits what all of them admit, or None if nothing can. `constraints` is not empty."""
    if len(constraints) == 1:
        return constraints[0]
    if len(constraints) == 2:
        return intersection(*constraints)
    sets = [each for each in constraints if not isinstance(each, Presence)]
    if not sets or Presence.ABSENT in constraints:
        return constraints[0] if all(each is constraints[0] for each in constraints) else None
    by_kind = _by_kind(sets)
    all_of = [(kind, common(parts)) for kind, parts in by_kind.items() if len(parts) == len(sets)]
    parts = tuple((kind, admitted) for kind, admitted in all_of if not admitted.empty)
    return ValueSet(parts, sets[0].domain, sets[0].integers) if parts else None


def union_of(constraints: Sequence[Constraint]) -> Constraint:
    """The constraint that admits what any of them admits. ABSENT must not be among them: it joins with no other."""
    if len(constraints) == 1:
        return constraints[0]
    sets = [each for each in constraints if not isinstance(each, Presence)]
    if len(sets) < len(constraints):
        return Presence.PRESENT
    by_kind = _by_kind(sets)
    parts = tuple((kind, united(by_kind[kind])) for kind in sorted(by_kind))
    return ValueSet(parts, sets[0].domain, sets[0].integers)


def _by_kind(sets: Iterable[ValueSet]) -> dict[Kind, list[Intervals]]:
    by_kind: dict[Kind, list[Intervals]] = {}
    for value_set in sets:
        for kind, admitted in value_set.parts:
            by_kind.setdefault(kind, []).append(admitted)
    return by_kind


def excludes(left: Constraint, right: Constraint) -> bool:
    """Whether nothing meets both: there is no `intersection`. Takes a step for each cut of the shorter one."""
    if isinstance(left, Presence) or isinstance(right, Presence):
        return left is not right and Presence.ABSENT in (left, right)
    right_sets = dict(right.parts)
    return not any(kind in right_sets and values.overlaps(right_sets[kind]) for kind, values in left.parts)


def implies(left: Constraint, right: Constraint) -> bool:
    """Whether all that meets the left one meets the right one: their `intersection` is the left one."""
    if isinstance(left, Presence) or isinstance(right, Presence):
        return left is right or (right is Presence.PRESENT and left is not Presence.ABSENT)
    right_sets = dict(right.parts)
    return all(
        kind in right_sets and not admitted.overlaps(right_sets[kind].complement()) for kind, admitted in left.parts
    )


def lacking(path: Path, constraints: Mapping[Path, Constraint]) -> Path | None:
    """An attribute that the value at a path needs, and that cannot have one under these constraints; else None.

    A time reading needs a string or a value of its kind, and no value is read as both kinds.
    """
    absent = next((need for need in needs_of(path) if constraints.get(need) is Presence.ABSENT), None)
    time_reading = reading(path)
    if absent is not None or time_reading is None:
        return absent
    attribute, kind = time_reading.path, time_reading.read_as
    raw = constraints.get(attribute)
    is_other = isinstance(raw, ValueSet) and not any(each in (Kind.STRING, kind) for each, _ in raw.parts)
    is_both = any(reading_of(attribute, each) in constraints for each in READ_AS if each is not kind)
    return attribute if is_other or is_both else None


def line_of(kind: Kind, domain: Domain | None) -> Line:
    """The line of values of a kind, narrowed to the domain where there is one."""
    if domain is None:
        return LINES[kind]
    if isinstance(domain, IntegerDomain):
        low = INT64_MIN if domain.low is None else domain.low
        return integers(low, INT64_MAX if domain.high is None else domain.high)
    if isinstance(domain, CodedDomain):
        return integers(0, len(domain.values) - 1)
    return LINES[kind]
