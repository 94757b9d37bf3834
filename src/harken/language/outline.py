"""Outlines: expressions prepared for normalisation, with all that does not depend on their constants done once.

Negations are pushed to the predicates, domains are looked up, and each constant is a hole: its index among the
constants of the text. So texts that differ only in their constants share an outline (see normalise.Template).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, partial
from typing import NamedTuple

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
    Function,
    Holds,
    In,
    IsNull,
    IsTruth,
    Like,
    Not,
    Operand,
    Or,
    Predicate,
    RLike,
    XPathBoolean,
    like_pieces,
    offset_of,
)
from harken.language.deriving import Term, comparing, has_attributes, term
from harken.language.intervals import LINES, Intervals
from harken.language.normal_form import Constraint, Presence, Residual, ValueSet, line_of
from harken.language.predicates import compare, either, like_matcher, rlike_matcher
from harken.language.residuals import ContainsResidual, LikeResidual, RLikeResidual, XPathResidual
from harken.schema import CodedDomain, Domain, HierarchicalDomain, IntegerDomain, Kind, Schema, Value
from harken.schema.paths import Path
from harken.schema.scalar_functions import EQUAL, GREATER, LESS, NEITHER, network
from harken.schema.values import KINDS

# A conjunction under construction. Those made by predicates may be shared and are never changed.
Draft = tuple[dict[Path, Constraint], tuple[Residual, ...]]
ALWAYS: list[Draft] = [({}, ())]
NEVER: list[Draft] = []

Constants = Sequence[Value]
_ConstraintOf = Callable[[Constants], Constraint | None]
_DraftsOf = Callable[[Constants], list[Draft]]
_ValueOf = Callable[[Constants], Value | None]
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FALSE_OF_EQUALS = ("<>", "<", ">")
_TRUE_OF = {
    "=": (EQUAL,),
    "<>": (LESS, GREATER, NEITHER),
    "<": (LESS,),
    "<=": (LESS, EQUAL),
    ">": (GREATER,),
    ">=": (EQUAL, GREATER),
}
# Integers below this are common: their constraints are cached.
_SMALL = 256
_READ_AS: dict[type, str] = {datetime: "timestamp", date: "date"}
"""The functions that read strings as values of these types."""
# Looking up a member of an enumeration is slow.
_NUMBER, _STRING = Kind.NUMBER, Kind.STRING


class SingleConstraint(NamedTuple):
    """A predicate that is one constraint on one attribute; None for constants with which nothing meets it."""

    path: Path
    constraint: _ConstraintOf
    at: int


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Any other predicate, as drafts of its alternatives."""

    path: Path | None
    """The attribute to name if there is no alternative."""
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


Outline = SingleConstraint | Alternatives | AllOf | AnyOf
"""`at` is its offset in the text."""


def outline(expression: Expression, constants: Sequence[Constant], schema: Schema | None) -> Outline:
    """The outline of an expression that has these constants. Raises UnavailableError."""
    holes = {id(constant): index for index, constant in enumerate(constants)}
    return _Outliner(holes, schema).outline(expression, True)


class _Outliner:
    """Makes the outline of one expression."""

    def __init__(self, holes: Mapping[int, int], schema: Schema | None) -> None:
        self.holes = holes
        """The index of each constant, by the identity of its node."""
        self.schema = schema

    def outline(self, node: Expression, wanted: bool, lenient: bool = False) -> Outline:
        """The outline of the node being true or, unless `wanted`, false; if `lenient`, also of it being unknown."""
        if isinstance(node, Comparison):  # first, since most are
            return self._comparison(node, wanted, lenient, offset_of(node))
        if isinstance(node, Not):
            return self.outline(node.item, not wanted, lenient)
        if isinstance(node, IsTruth):  # never unknown; not true is false or unknown
            return self.outline(node.item, node.wanted is wanted, not wanted)
        if isinstance(node, (And, Or)):
            items = tuple([self.outline(item, wanted, lenient) for item in node.items])
            return (AllOf if isinstance(node, And) is wanted else AnyOf)(items, offset_of(node))
        return self._predicate(node, wanted, lenient)

    def _predicate(self, node: Predicate, wanted: bool, lenient: bool) -> Outline:
        at = offset_of(node)
        match node:
            case Comparison():
                return self._comparison(node, wanted, lenient, at)
            case IsNull(attribute=attribute):
                presence = Presence.ABSENT if wanted else Presence.PRESENT
                return SingleConstraint(attribute.path, lambda constants: presence, at)
            case Contains(attribute=attribute, value=value):
                return self._contains(attribute.path, value, wanted, lenient, at)
            case Call():
                raise UnavailableError(f"the operator `{node.name}` is not available")
            case Between(operand=operand, low=low, high=high):
                domain = self._domain(operand)
                if has_attributes(operand) and _are_alike(low, high) and not isinstance(domain, CodedDomain):
                    operand = self._beside(operand, low)
                    constraint = partial(_between, self._hole(low), self._hole(high), domain)
                    return self._constrained(operand, constraint, wanted, lenient, at)
                both = And((Comparison(operand, ">=", low), Comparison(operand, "<=", high)))
                return self.outline(both, wanted, lenient)
            case _ if not isinstance(node, XPathBoolean) and not has_attributes(node.operand):
                return _of_constants(self._truth(node), wanted, lenient, at)
            case In(operand=operand, values=values):
                alike = self._read_alike(values)
                if len(alike) > 1:
                    return self.outline(Or(tuple(In(operand, each) for each in alike)), wanted, lenient)
                operand = self._beside(operand, values[0])
                constraint = partial(_listed, [*map(self._hole, values)], self._domain(operand))
                return self._constrained(operand, constraint, wanted, lenient, at)
            case Like(operand=operand, pattern=pattern, escape=escape):
                drafts = partial(_like, self._hole(pattern), escape, self._domain(operand))
                return self._pattern(operand, drafts, wanted, lenient, at)
            case RLike(operand=operand, pattern=pattern):
                return self._pattern(operand, partial(_rlike, self._hole(pattern)), wanted, lenient, at)
            case XPathBoolean(operand=operand, xpath=xpath):
                return self._pattern(operand, partial(_xpath, self._hole(xpath)), wanted, lenient, at)
            case Holds(operand=Function(name="cidr_contains", arguments=(network, address))):
                written = term(address, self.holes).inside("address")
                return _on_term(written, None, partial(_in_network, self._hole(network)), wanted, lenient, at)
            case Holds(operand=operand):
                domain = self._domain(operand)
                return self._constrained(operand, partial(_is_true, domain), wanted, lenient, at)

    def _truth(self, node: In | Like | RLike | Holds) -> Callable[[Constants], bool | None]:
        """The truth of a predicate that has no attributes, by its constants."""
        value = self._value(node.operand)
        match node:
            case In(values=values):
                return _is_listed(value, [*map(self._hole, values)])
            case Like(pattern=pattern, escape=escape):
                return _is_like(value, self._hole(pattern), escape)
            case RLike(pattern=pattern):
                return _is_rlike(value, self._hole(pattern))
            case Holds():
                return lambda constants: truth if isinstance(truth := value(constants), bool) else None

    def _comparison(self, node: Comparison, wanted: bool, lenient: bool, at: int) -> Outline:
        left, right, operator = self._beside(node.left, node.right), self._beside(node.right, node.left), node.operator
        if isinstance(left, Attribute) and isinstance(right, Constant) and not lenient:  # fast path
            return SingleConstraint(left.path, _compared(operator, self._hole(right), self._domain(left), wanted), at)
        if has_attributes(right):
            if has_attributes(left):
                return self._compared_with_other(node, wanted, lenient, at)
            left, right, operator = right, left, _MIRRORED[operator]
        elif not has_attributes(left):
            first, second = self._value(left), self._value(right)
            return _of_constants(
                lambda constants: compare(operator, first(constants), second(constants)), wanted, lenient, at
            )
        domain = self._domain(left)
        if isinstance(right, Constant):
            constraint = partial(_compared, operator, self._hole(right), domain)
        else:
            constraint = partial(_compared_with_value, operator, self._value(right), domain)
        return self._constrained(left, constraint, wanted, lenient, at)

    def _beside(self, operand: Operand, other: Operand) -> Operand:
        """An operand beside another one: without a schema, a timestamp or a date beside it makes it a time reading."""
        read_as = _READ_AS.get(type(other.value)) if isinstance(other, Constant) else None
        if read_as is None or self.schema is not None or not has_attributes(operand):
            return operand
        return Function(read_as, (operand,))

    def _read_alike(self, values: Sequence[Constant]) -> list[tuple[Constant, ...]]:
        """The values in groups: an operand is read in one way beside all values of a group."""
        if self.schema is not None:
            return [tuple(values)]
        groups: dict[str | None, list[Constant]] = {}
        for value in values:
            groups.setdefault(_READ_AS.get(type(value.value)), []).append(value)
        return [tuple(group) for group in groups.values()]

    def _compared_with_other(self, node: Comparison, wanted: bool, lenient: bool, at: int) -> Outline:
        """Attribute against attribute: a constraint on the derived attribute of how they compare."""
        left, right, operator = node.left, node.right, node.operator
        if left == right and (operator in _FALSE_OF_EQUALS) is wanted and not lenient:
            path = left.path if isinstance(left, Attribute) else None
            return Alternatives(path, lambda constants: NEVER, at)
        domain = self._domain(left)
        order = domain if isinstance(domain, CodedDomain) and domain == self._domain(right) else None
        comparison, is_swapped = comparing(term(left, self.holes), term(right, self.holes), order)
        operator = _MIRRORED[operator] if is_swapped else operator
        return _on_term(comparison, None, partial(_ordered, operator, order), wanted, lenient, at)

    def _constrained(
        self, operand: Operand, constraint: Callable[[bool], _ConstraintOf], wanted: bool, lenient: bool, at: int
    ) -> Outline:
        if isinstance(operand, Attribute) and not lenient:
            return SingleConstraint(operand.path, constraint(wanted), at)
        return _on_term(term(operand, self.holes), self._domain(operand), constraint, wanted, lenient, at)

    def _pattern(
        self, operand: Operand, drafts: Callable[[Path, bool], _DraftsOf], wanted: bool, lenient: bool, at: int
    ) -> Outline:
        if isinstance(operand, Attribute) and not lenient:
            return Alternatives(operand.path, drafts(operand.path, wanted), at)
        subject = term(operand, self.holes)
        if subject.path is not None:
            decided = Alternatives(subject.path, drafts(subject.path, wanted), at)
        else:
            decided = Alternatives(None, lambda constants: drafts(subject.path_of(constants), wanted)(constants), at)
        if not lenient:
            return decided
        unknown = Alternatives(None, lambda constants: _lacking(subject, [_STRING], constants), at)
        return AnyOf((decided, unknown), at)

    def _contains(self, path: Path, value: Constant, wanted: bool, lenient: bool, at: int) -> Outline:
        domain = None if self.schema is None else self.schema.domain_of(path)
        reads = self.schema is None and type(value.value) in _READ_AS
        present = Alternatives(None, _contains(path, self._hole(value), domain, wanted, lenient, reads), at)
        if not lenient:
            return present
        return AnyOf((present, SingleConstraint(path, lambda constants: Presence.ABSENT, at)), at)

    def _hole(self, operand: Operand) -> int:
        return self.holes[id(operand)]

    def _value(self, operand: Operand) -> _ValueOf:
        """The value of an operand without attributes."""
        if isinstance(operand, Constant):
            hole = self._hole(operand)
            return lambda constants: constants[hole]
        return term(operand, self.holes).value

    def _domain(self, operand: Operand) -> Domain | None:
        is_declared = self.schema is not None and isinstance(operand, Attribute)
        return self.schema.domain_of(operand.path) if is_declared else None  # type: ignore[union-attr]


def _are_alike(low: Operand, high: Operand) -> bool:
    return isinstance(low, Constant) and isinstance(high, Constant) and low.kind is high.kind


# Constraints on terms


def _on_term(
    subject: Term,
    domain: Domain | None,
    constraint: Callable[[bool], _ConstraintOf],
    wanted: bool,
    lenient: bool,
    at: int,
) -> Outline:
    """The outline of a predicate on a term having the wanted truth. If lenient, it admits all values except those that
    give the other truth, and the lack of a value.
    """
    if not lenient:
        return _term_constraint(subject, constraint(wanted), at)
    excluded = constraint(not wanted)

    def drafts(constants: Constants) -> list[Draft]:
        opposite = excluded(constants)
        if not isinstance(opposite, ValueSet):
            return ALWAYS
        others = _constraint({kind: admitted.complement() for kind, admitted in opposite.parts}, domain)
        kinds = [kind for kind, _ in opposite.parts]
        return [*_draft(subject.path_of(constants), others), *_lacking(subject, kinds, constants)]

    return Alternatives(None, drafts, at)


def _term_constraint(subject: Term, constraint: _ConstraintOf, at: int) -> Outline:
    if subject.path is not None:
        return SingleConstraint(subject.path, constraint, at)
    return Alternatives(None, lambda constants: _draft(subject.path_of(constants), constraint(constants)), at)


def _lacking(subject: Term, kinds: Sequence[Kind], constants: Constants) -> list[Draft]:
    """The term has no value of these kinds, so that a predicate on it is unknown."""
    return _draft(subject.lacking(kinds).path_of(constants), _is_true(None, True)(constants))


# Predicates over constants alone


def _of_constants(truth: Callable[[Constants], bool | None], wanted: bool, lenient: bool, at: int) -> Alternatives:
    accepted = (wanted, None) if lenient else (wanted,)
    return Alternatives(None, lambda constants: ALWAYS if truth(constants) in accepted else NEVER, at)


def _is_listed(value: _ValueOf, listed: list[int]) -> Callable[[Constants], bool | None]:
    return lambda constants: either(compare("=", value(constants), constants[hole]) for hole in listed)


def _is_like(value: _ValueOf, pattern: int, escape: str) -> Callable[[Constants], bool | None]:
    def truth(constants: Constants) -> bool | None:
        text = value(constants)
        return like_matcher(str(constants[pattern]), escape)(text) if isinstance(text, str) else None

    return truth


def _is_rlike(value: _ValueOf, pattern: int) -> Callable[[Constants], bool | None]:
    def truth(constants: Constants) -> bool | None:
        text = value(constants)
        return rlike_matcher(str(constants[pattern]))(text) if isinstance(text, str) else None

    return truth


# Predicates over an attribute


def _compared(operator: str, hole: int, domain: Domain | None, wanted: bool) -> _ConstraintOf:
    if domain is not None and isinstance(domain, CodedDomain):  # isinstance() with an abstract class is slow
        return _compared_by_code(operator, hole, domain, wanted)
    wanted_operator = operator if wanted else _NEGATED[operator]
    admitted_by = intervals.COMPARISONS[wanted_operator]

    def without_domain(constants: Constants) -> Constraint | None:
        value = constants[hole]
        if type(value) is int and 0 <= value < _SMALL:
            return _compared_with_small(wanted_operator, value)
        kind = KINDS[type(value)]
        if kind is _NUMBER or (kind is _STRING and value):
            return ValueSet(((kind, admitted_by(value)),))  # already canonical
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


def _compared_with_value(operator: str, value: _ValueOf, domain: Domain | None, wanted: bool) -> _ConstraintOf:
    """As `_compared`, with a value computed from constants."""
    compared = _compared(operator, 0, domain, wanted)

    def constraint(constants: Constants) -> Constraint | None:
        computed = value(constants)
        return None if computed is None else compared((computed,))

    return constraint


def _ordered(operator: str, order: Domain | None, wanted: bool) -> _ConstraintOf:
    """How two values have to compare: outcomes of `compare` in schema/scalar_functions.py."""
    admitted = set(_TRUE_OF[operator])
    if not wanted:
        # Values that a domain's own order does not relate: < is false in a hierarchy, unknown in a partial order.
        is_known = isinstance(order, HierarchicalDomain) or operator in ("=", "<>")
        admitted = {LESS, EQUAL, GREATER, *([NEITHER] if is_known else [])} - admitted
    constraint = ValueSet(((_NUMBER, _runs(admitted)),))
    return lambda constants: constraint


def _runs(admitted: set[int]) -> Intervals:
    """A set of outcomes with the fewest cuts, given that there are no outcomes but the four."""
    (*_, last) = ordered = sorted(admitted)
    if len(ordered) == 1:
        return intervals.points(ordered)
    left_out = {LESS, EQUAL, GREATER, NEITHER} - admitted
    if len(left_out) == 1:
        return intervals.points(left_out).complement()
    if last - ordered[0] == len(ordered) - 1:
        return intervals.between(ordered[0], last)
    return intervals.between(min(left_out), max(left_out)).complement()


def _in_network(hole: int, wanted: bool) -> _ConstraintOf:
    def constraint(constants: Constants) -> Constraint | None:
        first, last = network(str(constants[hole]))
        admitted = intervals.between(first, last)
        return ValueSet(((_STRING, admitted if wanted else admitted.complement()),))

    return constraint


def _is_true(domain: Domain | None, wanted: bool) -> _ConstraintOf:
    constraint = _compared("=", 0, domain, wanted)((True,))
    return lambda constants: constraint


def _between(low: int, high: int, domain: Domain | None, wanted: bool) -> _ConstraintOf:
    def constraint(constants: Constants) -> Constraint | None:
        first, last = constants[low], constants[high]
        admitted = intervals.between(first, last)
        return _admitting(KINDS[type(first)], admitted if wanted else admitted.complement(), domain)

    return constraint


def _listed(holes: list[int], domain: Domain | None, wanted: bool) -> _ConstraintOf:
    """IN holds for any of the values; NOT IN only for what compares with all of them, so for values of one kind."""

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


def _contains(path: Path, hole: int, domain: Domain | None, wanted: bool, lenient: bool, reads: bool) -> _DraftsOf:
    def drafts(constants: Constants) -> list[Draft]:
        value = constants[hole]
        if isinstance(domain, CodedDomain):
            domain.code(str(value))  # raises if the value is outside the domain
        return [({}, (ContainsResidual(path, KINDS[type(value)], value, not wanted, lenient, reads),))]

    return drafts


def _like(hole: int, escape: str, domain: Domain | None, path: Path, wanted: bool) -> _DraftsOf:
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


def _rlike(hole: int, path: Path, wanted: bool) -> _DraftsOf:
    return lambda constants: [({}, (RLikeResidual(path, str(constants[hole]), not wanted),))]


def _xpath(hole: int, path: Path, wanted: bool) -> _DraftsOf:
    return lambda constants: [({}, (XPathResidual(path, str(constants[hole]), not wanted),))]


def _draft(path: Path, constraint: Constraint | None) -> list[Draft]:
    return NEVER if constraint is None else [({path: constraint}, ())]


@cache
def _compared_with_small(operator: str, value: int) -> ValueSet:
    """Cached: many subscriptions share one object."""
    return ValueSet(((_NUMBER, intervals.COMPARISONS[operator](value)),))


def _admitting(kind: Kind, admitted: Intervals, domain: Domain | None) -> Constraint | None:
    return _constraint({kind: line_of(kind, domain).canonical(admitted)}, domain)


def _constraint(sets: dict[Kind, Intervals], domain: Domain | None) -> Constraint | None:
    """The constraint to these values, or None if there are none."""
    sets = {kind: admitted for kind, admitted in sets.items() if not admitted.empty}
    if not sets:
        return None
    parts = tuple(sets.items()) if len(sets) == 1 else tuple(sorted(sets.items()))
    if domain is None:
        return ValueSet(parts)
    coded = domain if isinstance(domain, CodedDomain) else None
    return ValueSet(parts, coded, domain if isinstance(domain, IntegerDomain) else None)


def _true_codes(domain: CodedDomain, operator: str, value: str, wanted: bool) -> Intervals:
    """The codes for which the comparison is true or, unless `wanted`, false."""
    line = line_of(Kind.STRING, domain)
    if operator in ("=", "<>"):
        admitted = intervals.COMPARISONS[operator](domain.code(value))
        return line.canonical(admitted if wanted else admitted.complement())
    return intervals.codes(domain.runs(operator, value, wanted), line)
