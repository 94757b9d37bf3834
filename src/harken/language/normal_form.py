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
    """The domain, if it has integers only: then there is nothing between two of them."""

    def admits(self, value: object) -> bool:
        kind = KINDS.get(type(value))
        for wanted, admitted in self.parts:
            if wanted is kind:
                return (value if self.domain is None else self.domain.code(str(value))) in admitted
        return False


Constraint = ValueSet | Presence


Implied = Sequence[tuple[Path, Constraint]]


class Residual(Protocol):
    """A predicate that no constraint on one attribute expresses. It is immutable, and compared by content."""

    @property
    def capability(self) -> Capability:
        """What a matcher has to be capable of to take it."""

    @property
    def of_sets(self) -> bool:
        """Whether it looks at all values of its attributes at once. Else at one of each, as a binding picks them."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The attributes that it looks at. It does not hold unless each has a value."""

    def implied(self) -> Implied:
        """Constraints that some value of an attribute meets if it holds: what an index may go by."""

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether it is true of the values at its paths: one each (None if missing) or, if `of_sets`, a list each."""


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All of its constraints, one an attribute, and all of its residual predicates."""

    constraints: tuple[tuple[Path, Constraint], ...]
    residuals: tuple[Residual, ...] = ()

    def paths(self) -> list[Path]:
        """The attributes that it asks for a value of."""
        absent = {path for path, constraint in self.constraints if constraint is Presence.ABSENT}
        return [need for path in self.asked() if path not in absent for need in needs_of(path)]

    def every_path(self) -> list[Path]:
        """The attributes that it looks at."""
        return [source for path in self.asked() for source in sources_of(path)]

    def asked(self) -> list[Path]:
        """The paths of its constraints and residual predicates, derived ones among them."""
        found = [path for path, _ in self.constraints]
        if not self.residuals:
            return found
        return [*found, *(path for residual in self.residuals for path in residual.paths)]


@dataclass(frozen=True, slots=True)
class NormalForm:
    """A disjunction of different conjunctions."""

    conjunctions: tuple[Conjunction, ...]

    def names(self) -> set[str]:
        """The attributes that it looks at, each by the name that its path begins with."""
        found: set[str] = set()
        for conjunction in self.conjunctions:
            for path in conjunction.asked():
                if path[0]:  # as most are: no derived one
                    found.add(path[0])
                else:
                    found.update(source[0] for source in sources_of(path))
        return found

    @property
    def always(self) -> bool:
        """Whether every event matches."""
        first = self.conjunctions[0]  # one that asks nothing leaves no place for others
        return not first.constraints and not first.residuals


def intersection(left: Constraint, right: Constraint) -> Constraint | None:
    """The constraint that admits what both admit, or None if nothing can."""
    if isinstance(left, Presence) or isinstance(right, Presence):
        if left is right:
            return left
        if Presence.ABSENT in (left, right):
            return None
        return right if isinstance(left, Presence) else left  # a value that is admitted is present
    theirs = dict(right.parts)
    both = [(kind, mine.intersection(theirs[kind])) for kind, mine in left.parts if kind in theirs]
    parts = tuple((kind, admitted) for kind, admitted in both if not admitted.empty)
    return ValueSet(parts, left.domain, left.integers) if parts else None


def intersection_of(several: Sequence[Constraint]) -> Constraint | None:
    """The constraint that admits what all of them admit, or None if nothing can. There is one at least."""
    if len(several) == 1:
        return several[0]
    if len(several) == 2:
        return intersection(*several)
    sets = [each for each in several if not isinstance(each, Presence)]
    if not sets or Presence.ABSENT in several:
        return several[0] if all(each is several[0] for each in several) else None
    by_kind = _by_kind(sets)
    all_of = [(kind, common(parts)) for kind, parts in by_kind.items() if len(parts) == len(sets)]
    parts = tuple((kind, admitted) for kind, admitted in all_of if not admitted.empty)
    return ValueSet(parts, sets[0].domain, sets[0].integers) if parts else None


def union_of(several: Sequence[Constraint]) -> Constraint:
    """The constraint that admits what one of them admits. None may be ABSENT, to which no other can be joined."""
    if len(several) == 1:
        return several[0]
    sets = [each for each in several if not isinstance(each, Presence)]
    if len(sets) < len(several):
        return Presence.PRESENT
    by_kind = _by_kind(sets)
    parts = tuple((kind, united(by_kind[kind])) for kind in sorted(by_kind))
    return ValueSet(parts, sets[0].domain, sets[0].integers)


def _by_kind(sets: Iterable[ValueSet]) -> dict[Kind, list[Intervals]]:
    found: dict[Kind, list[Intervals]] = {}
    for each in sets:
        for kind, admitted in each.parts:
            found.setdefault(kind, []).append(admitted)
    return found


def excludes(left: Constraint, right: Constraint) -> bool:
    """Whether nothing meets both: whether there is no `intersection`. It takes as many steps as the shorter one has."""
    if isinstance(left, Presence) or isinstance(right, Presence):
        return left is not right and Presence.ABSENT in (left, right)
    theirs = dict(right.parts)
    return not any(kind in theirs and mine.overlaps(theirs[kind]) for kind, mine in left.parts)


def implies(left: Constraint, right: Constraint) -> bool:
    """Whether all that meets the left one meets the right one: whether their `intersection` is the left one."""
    if isinstance(left, Presence) or isinstance(right, Presence):
        return left is right or (right is Presence.PRESENT and left is not Presence.ABSENT)
    theirs = dict(right.parts)
    return all(kind in theirs and not mine.overlaps(theirs[kind].complement()) for kind, mine in left.parts)


def lacking(path: Path, known: Mapping[Path, Constraint]) -> Path | None:
    """The attribute that can have no value from which there is one at a path, given these constraints; None: all can.

    What is read as a timestamp or a date needs a value of that kind or a string, and no value is read as both.
    """
    absent = next((need for need in needs_of(path) if known.get(need) is Presence.ABSENT), None)
    read = reading(path)
    if absent is not None or read is None:
        return absent
    beside, kind = known.get(read.path), read.read_as
    is_other = isinstance(beside, ValueSet) and not any(each in (Kind.STRING, kind) for each, _ in beside.parts)
    is_both = any(reading_of(read.path, each) in known for each in READ_AS if each is not kind)
    return read.path if is_other or is_both else None


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
