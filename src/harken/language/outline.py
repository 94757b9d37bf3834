"""An expression made ready to be normalised: whatever does not depend on its constants is worked out here, once.

Negations are pushed to the predicates, domains are looked up, and each constant is a hole: its place among the
constants of the text. So texts that differ only in their constants share an outline (see normalise.Template).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from harken.errors import UnavailableError
from harken.language import intervals
from harken.language.ast import (
    And,
    Attribute,
    Between,
    Call,
    Comparison,
    Constant,
    Contains,
    Expression,
    Holds,
    In,
    IsNull,
    Like,
    Not,
    Operand,
    Or,
    Predicate,
    like_pieces,
    offset_of,
)
from harken.language.intervals import LINES, Intervals
from harken.language.normal_form import Constraint, Presence, Residual, ValueSet, line_of
from harken.language.predicates import compare, either, like_matcher
from harken.language.residuals import ComparisonResidual, ContainsResidual, LikeResidual
from harken.schema import CodedDomain, Domain, HierarchicalDomain, IntegerDomain, Kind, Schema, Value
from harken.schema.paths import Path
from harken.schema.values import KINDS

# A conjunction in the making. Nobody changes one that a predicate made: it may be shared.
Draft = tuple[dict[Path, Constraint], tuple[Residual, ...]]
ALWAYS: list[Draft] = [({}, ())]
NEVER: list[Draft] = []

Constants = Sequence[Value]
_ConstraintOf = Callable[[Constants], Constraint | None]
_DraftsOf = Callable[[Constants], list[Draft]]
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FALSE_OF_EQUALS = ("<>", "<", ">")
# Integers below this are what many subscriptions compare with.
_SMALL = 256
# At hand, since it takes long to look up a member of an enumeration.
_NUMBER, _STRING = Kind.NUMBER, Kind.STRING


@dataclass(frozen=True, slots=True)
class Asked:
    """A predicate that is one constraint on one attribute; with some constants it is None, and nothing meets it."""

    path: Path
    constraint: _ConstraintOf
    at: int


@dataclass(frozen=True, slots=True)
class Drafted:
    """Any other predicate, as the drafts of its alternatives. If there are none, that is due to the path."""

    path: Path | None
    drafts: _DraftsOf
    at: int


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every item has to hold."""

    items: tuple[Outline, ...]
    at: int


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of the items has to hold."""

    items: tuple[Outline, ...]
    at: int


Outline = Asked | Drafted | AllOf | AnyOf
"""`at` is the offset in the text that it was made of."""


def outline(expression: Expression, constants: Sequence[Constant], schema: Schema | None) -> Outline:
    """The outline of an expression that has these constants. Raises UnavailableError."""
    holes = {id(constant): place for place, constant in enumerate(constants)}
    return _Outliner(holes, schema).outline(expression, True)


class _Outliner:
    """Makes an outline."""

    def __init__(self, holes: Mapping[int, int], schema: Schema | None) -> None:
        self.holes = holes
        """The place of each constant, by the identity of its node."""
        self.schema = schema

    def outline(self, node: Expression, wanted: bool) -> Outline:
        """The outline of what makes the node true, or false if that is what is wanted."""
        if isinstance(node, Not):
            return self.outline(node.item, not wanted)
        if isinstance(node, And | Or):
            items = tuple([self.outline(item, wanted) for item in node.items])
            return (AllOf if isinstance(node, And) is wanted else AnyOf)(items, offset_of(node))
        return self._predicate(node, wanted)

    def _predicate(self, node: Predicate, wanted: bool) -> Outline:
        at = offset_of(node)
        match node:
            case Between(operand=Attribute(path=path), low=Constant() as low, high=Constant() as high) if (
                low.kind is high.kind and not isinstance(self._domain(path), CodedDomain)
            ):
                return Asked(path, _between(self._hole(low), self._hole(high), self._domain(path), wanted), at)
            case Between(operand=operand, low=low, high=high):
                return self.outline(And((Comparison(operand, ">=", low), Comparison(operand, "<=", high))), wanted)
            case In(operand=Attribute(path=path), values=values):
                return Asked(path, _listed([*map(self._hole, values)], self._domain(path), wanted), at)
            case In(operand=operand, values=values):
                return _settled(_is_listed(self._hole(operand), [*map(self._hole, values)]), wanted, at)
            case Like(operand=Attribute(path=path), pattern=pattern, escape=escape):
                return Drafted(path, _like(path, self._hole(pattern), escape, self._domain(path), wanted), at)
            case Like(operand=operand, pattern=pattern, escape=escape):
                return _settled(_is_like(self._hole(operand), self._hole(pattern), escape), wanted, at)
            case IsNull(attribute=attribute):
                presence = Presence.ABSENT if wanted else Presence.PRESENT
                return Asked(attribute.path, lambda constants: presence, at)
            case Contains(attribute=attribute, value=value):
                path = attribute.path
                return Drafted(None, _contains(path, self._hole(value), self._domain(path), wanted), at)
            case Holds(operand=Attribute(path=path)):
                constraint = _compared("=", 0, self._domain(path), wanted)((True,))
                return Asked(path, lambda constants: constraint, at)
            case Holds(operand=operand):
                hole = self._hole(operand)
                return _settled(lambda constants: constants[hole] is True, wanted, at)
            case Call():
                raise UnavailableError(f"the operator `{node.name}` is not available")
            case Comparison():
                return self._comparison(node, wanted, at)

    def _comparison(self, node: Comparison, wanted: bool, at: int) -> Outline:
        left, right, operator = node.left, node.right, node.operator
        if isinstance(left, Attribute) and isinstance(right, Attribute):
            if left == right and (operator in _FALSE_OF_EQUALS) is wanted:
                return Asked(left.path, lambda constants: None, at)
            residual = ComparisonResidual(left.path, operator, right.path, not wanted, self._domain(left.path))
            drafts: list[Draft] = [({}, (residual,))]
            return Drafted(None, lambda constants: drafts, at)
        if isinstance(right, Attribute):
            left, right, operator = right, left, _MIRRORED[operator]
        if isinstance(left, Attribute):
            return Asked(left.path, _compared(operator, self._hole(right), self._domain(left.path), wanted), at)
        mine, theirs = self._hole(left), self._hole(right)
        return _settled(lambda constants: compare(operator, constants[mine], constants[theirs]), wanted, at)

    def _hole(self, operand: Operand) -> int:
        if isinstance(operand, Constant):
            return self.holes[id(operand)]
        raise UnavailableError("variables are not available")

    def _domain(self, path: Path) -> Domain | None:
        return None if self.schema is None else self.schema.domain_of(path)


# Predicates over constants alone


def _settled(truth: Callable[[Constants], bool | None], wanted: bool, at: int) -> Drafted:
    return Drafted(None, lambda constants: ALWAYS if truth(constants) is wanted else NEVER, at)


def _is_listed(hole: int, listed: list[int]) -> Callable[[Constants], bool | None]:
    return lambda constants: either(compare("=", constants[hole], constants[each]) for each in listed)


def _is_like(hole: int, pattern: int, escape: str) -> Callable[[Constants], bool | None]:
    def truth(constants: Constants) -> bool | None:
        value = constants[hole]
        return like_matcher(str(constants[pattern]), escape)(value) if isinstance(value, str) else None

    return truth


# Predicates over an attribute


def _compared(operator: str, hole: int, domain: Domain | None, wanted: bool) -> _ConstraintOf:
    if isinstance(domain, CodedDomain):
        return _compared_by_code(operator, hole, domain, wanted)
    asked = operator if wanted else _NEGATED[operator]
    admitted_by = intervals.COMPARISONS[asked]

    def without_domain(constants: Constants) -> Constraint | None:
        value = constants[hole]
        if type(value) is int and 0 <= value < _SMALL:
            return _compared_with_small(asked, value)
        kind = KINDS[type(value)]
        if kind is _NUMBER or (kind is _STRING and value):
            return ValueSet(((kind, admitted_by(value)),))  # as it is canonical already
        return _admitting(kind, admitted_by(value), None)

    def in_domain(constants: Constants) -> Constraint | None:
        value = constants[hole]
        return _admitting(KINDS[type(value)], admitted_by(value), domain)

    return without_domain if domain is None else in_domain


def _compared_by_code(operator: str, hole: int, domain: CodedDomain, wanted: bool) -> _ConstraintOf:
    def constraint(constants: Constants) -> Constraint | None:
        value = constants[hole]
        return _admitting(KINDS[type(value)], _true_codes(domain, operator, str(value), wanted), domain)

    return constraint


def _between(low: int, high: int, domain: Domain | None, wanted: bool) -> _ConstraintOf:
    def constraint(constants: Constants) -> Constraint | None:
        first, last = constants[low], constants[high]
        admitted = intervals.between(first, last)
        return _admitting(KINDS[type(first)], admitted if wanted else admitted.complement(), domain)

    return constraint


def _listed(holes: list[int], domain: Domain | None, wanted: bool) -> _ConstraintOf:
    """IN is true for any of the values; NOT IN only for what compares with each of them, so for one kind only."""

    def constraint(constants: Constants) -> Constraint | None:
        by_kind: dict[Kind, list[Value]] = {}
        for hole in holes:
            value = constants[hole]
            by_kind.setdefault(KINDS[type(value)], []).append(value)
        if not wanted and len(by_kind) > 1:
            return None
        sets: dict[Kind, Intervals] = {}
        for kind, members in by_kind.items():
            coded = [domain.code(str(each)) for each in members] if isinstance(domain, CodedDomain) else members
            admitted = line_of(kind, domain).canonical(intervals.points(coded))
            sets[kind] = admitted if wanted else admitted.complement()
        return _constraint(sets, domain)

    return constraint


def _contains(path: Path, hole: int, domain: Domain | None, wanted: bool) -> _DraftsOf:
    def drafts(constants: Constants) -> list[Draft]:
        value = constants[hole]
        if isinstance(domain, CodedDomain):
            domain.code(str(value))  # raises if it is outside the domain
        return [({}, (ContainsResidual(path, KINDS[type(value)], value, not wanted),))]

    return drafts


def _like(path: Path, hole: int, escape: str, domain: Domain | None, wanted: bool) -> _DraftsOf:
    """A plain prefix is an interval of strings; any other pattern is a residual with the interval of its prefix."""
    is_coded = isinstance(domain, CodedDomain)
    equal = _compared("=", 0, domain, wanted)

    def drafts(constants: Constants) -> list[Draft]:
        pattern = str(constants[hole])
        pieces = like_pieces(pattern, escape)
        wildcards = [index for index, piece in enumerate(pieces) if not piece]
        prefix = "".join(piece or "" for piece in pieces[: wildcards[0] if wildcards else None])
        if not wildcards and not is_coded:
            return _draft(path, equal((prefix,)))
        admitted = LINES[_STRING].canonical(intervals.prefixed(prefix))
        if not is_coded and wildcards == [len(pieces) - 1] and pieces[-1] is None:
            return _draft(path, _constraint({_STRING: admitted if wanted else admitted.complement()}, domain))
        is_narrow = wanted and prefix and not is_coded
        narrowed: dict[Path, Constraint] = {path: ValueSet(((_STRING, admitted),))} if is_narrow else {}
        return [(narrowed, (LikeResidual(path, pattern, escape, not wanted),))]

    return drafts


def _draft(path: Path, constraint: Constraint | None) -> list[Draft]:
    return NEVER if constraint is None else [({path: constraint}, ())]


@cache
def _compared_with_small(operator: str, value: int) -> ValueSet:
    """One object for all that ask the same: many subscriptions share it."""
    return ValueSet(((_NUMBER, intervals.COMPARISONS[operator](value)),))


def _admitting(kind: Kind, admitted: Intervals, domain: Domain | None) -> Constraint | None:
    return _constraint({kind: line_of(kind, domain).canonical(admitted)}, domain)


def _constraint(sets: dict[Kind, Intervals], domain: Domain | None) -> Constraint | None:
    """Just these values, or None if there are none."""
    sets = {kind: admitted for kind, admitted in sets.items() if not admitted.empty}
    if not sets:
        return None
    parts = tuple(sets.items()) if len(sets) == 1 else tuple(sorted(sets.items()))
    coded = domain if isinstance(domain, CodedDomain) else None
    return ValueSet(parts, coded, domain if isinstance(domain, IntegerDomain) else None)


def _true_codes(domain: CodedDomain, operator: str, value: str, wanted: bool) -> Intervals:
    """The codes of which the comparison is true, or false if that is wanted. A hierarchy's are one interval."""
    line = line_of(Kind.STRING, domain)
    code = domain.code(value)
    if operator in ("=", "<>"):
        admitted = intervals.COMPARISONS[operator](code)
    elif isinstance(domain, HierarchicalDomain) and operator in ("<", "<="):
        first, last = domain.span(value)
        start = first if operator == "<=" else first + 1
        admitted = Intervals(False, ((start, 0), (last + 1, 0))) if start <= last else intervals.EMPTY
    else:
        found = [domain.compare(operator, other, value) for other in domain.values]
        return intervals.codes([each for each, truth in enumerate(found) if truth is wanted], line)
    return line.canonical(admitted if wanted else admitted.complement())
