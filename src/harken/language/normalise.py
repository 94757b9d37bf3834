"""AST → normal form: a disjunction of conjunctions, each one constraint per attribute and what no constraint can say.

Negations are pushed to the predicates first: an expression is true, in three-valued logic, just when one of these
conjunctions has only true parts. A predicate that is unknown is as good as false here, because nothing is left that
could turn it round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from harken.errors import ContradictionError, LimitError, UnavailableError
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
    leaves,
    like_pieces,
    offset_of,
)
from harken.language.intervals import LINES, Intervals
from harken.language.normal_form import (
    Conjunction,
    Constraint,
    NormalForm,
    Presence,
    Residual,
    Values,
    intersection,
    line_of,
    union,
)
from harken.language.predicates import evaluate
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import CodedDomain, Domain, HierarchicalDomain, IntegerDomain, Kind, Schema, Value, format_path
from harken.schema.paths import Path
from harken.schema.values import KINDS


def normalise(
    expression: Expression,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
    constants: Sequence[Value] = (),
) -> NormalForm:
    """The normal form. Raises ContradictionError if no event can match, LimitError if the form is too large.

    The expression may be the template of a shape (see shapes.py); then the constants of the text go with it.
    """
    builder = _Builder(schema, limits, constants)
    drafts = [draft for draft in builder.drafts(expression, True) if builder.is_possible(*draft)]
    if not drafts:
        raise ContradictionError("no event can ever match this", path=builder.emptied, hint=builder.why_empty())
    if schema is not None and _covers_all(drafts):
        drafts = _ALWAYS
    # Paths are unique, so sorting never comes to compare constraints.
    conjunctions = [Conjunction(tuple(sorted(constraints.items())), rest) for constraints, rest in drafts]
    return NormalForm(tuple(conjunctions if len(conjunctions) == 1 else dict.fromkeys(conjunctions)))


# A conjunction in the making.
_Draft = tuple[dict[Path, Constraint], tuple[Residual, ...]]
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_FALSE_OF_EQUALS = ("<>", "<", ">")
_ALWAYS: list[_Draft] = [({}, ())]
_NEVER: list[_Draft] = []
# How much a normalisation may do for every conjunction that it may keep: constraints copied and cuts swept.
_WORK_PER_CONJUNCTION = 1_024
# Integers below this are what many subscriptions compare with.
_SMALL = 256


class _Builder:
    """One normalisation: it knows the schema and the limits, and remembers what emptied a conjunction."""

    def __init__(self, schema: Schema | None, limits: Limits, constants: Sequence[Value]) -> None:
        self.schema = schema
        self.limits = limits
        self.constants = constants
        self.emptied: Path | None = None
        self.growing: Expression | None = None
        """The part whose alternatives are being added or, if there are factors, multiplied with others."""
        self.factors: tuple[int, int] | None = None
        self.work = 0

    def drafts(self, node: Expression, wanted: bool) -> list[_Draft]:
        """The conjunctions under which the node is true, or false if that is what is wanted."""
        if isinstance(node, Not):
            return self.drafts(node.item, not wanted)
        if isinstance(node, And | Or):
            return (self._all if isinstance(node, And) is wanted else self._any)(node.items, wanted)
        return self._predicate(node, wanted)

    def is_possible(self, constraints: dict[Path, Constraint], residuals: tuple[Residual, ...]) -> bool:
        """Whether no residual predicate is about an attribute that is to have no value: it would be unknown."""
        for residual in residuals:
            for leaf in leaves(residual.predicate):
                if isinstance(leaf, Attribute) and constraints.get(leaf.path) is Presence.ABSENT:
                    self.emptied = leaf.path
                    return False
        return True

    def why_empty(self) -> str:
        if self.emptied is None:
            return "it is false, or unknown, whatever the event"
        return f"its conditions on `{format_path(self.emptied)}` leave no value that meets them all"

    # Conjunctions and disjunctions

    def _all(self, items: Iterable[Expression], wanted: bool) -> list[_Draft]:
        """Every item at once: those with one alternative first, because each of them narrows all that follows."""
        constraints: dict[Path, Constraint] = {}
        repeated: dict[Path, list[Constraint]] = {}
        residuals: list[Residual] = []
        forks: list[tuple[Expression, list[_Draft]]] = []
        for item in items:
            if type(item) is Comparison and type(item.left) is Attribute and isinstance(item.right, Constant):
                # What most conjunctions consist of, without the detour through a list of one draft.
                path = item.left.path
                constraint = self._compared(path, item.operator, item.right.given(self.constants), wanted)
                if constraint is None:
                    self.emptied = path
                    return _NEVER
                if constraints.setdefault(path, constraint) is not constraint:
                    repeated.setdefault(path, []).append(constraint)
                continue
            alternatives = self.drafts(item, wanted)
            if not alternatives:
                return _NEVER
            if len(alternatives) > 1:
                forks.append((item, alternatives))
                continue
            added, more = alternatives[0]
            for path, constraint in added.items():
                if constraints.setdefault(path, constraint) is not constraint:
                    repeated.setdefault(path, []).append(constraint)
            residuals.extend(more)
        for path, several in repeated.items():
            if not self._narrow(constraints, path, self._reduced(several, intersection)):
                return _NEVER
        drafts: list[_Draft] = [(constraints, tuple(dict.fromkeys(residuals)))]
        for item, alternatives in forks:
            self.growing, self.factors = item, (len(drafts), len(alternatives))
            drafts = self._product(drafts, alternatives)
        return drafts

    def _product(self, drafts: list[_Draft], alternatives: list[_Draft]) -> list[_Draft]:
        kept: list[_Draft] = []
        for constraints, residuals in drafts:
            for added, more in alternatives:
                self._spend(len(constraints) + 4 * (len(residuals) + len(more)) + 1)
                joined = constraints.copy()
                if all(self._narrow(joined, path, constraint) for path, constraint in added.items()):
                    kept.append((joined, tuple(dict.fromkeys(residuals + more)) if more else residuals))
            kept = self._limited(kept)
        return kept

    def _narrow(self, constraints: dict[Path, Constraint], path: Path, constraint: Constraint | None) -> bool:
        """Add a constraint to those of a conjunction; False if nothing can meet them all."""
        known = constraints.get(path)
        if known is not None and constraint is not None:
            self._spend(_size(known) + _size(constraint))
            constraint = intersection(known, constraint)
        if constraint is None:
            self.emptied = path
            return False
        constraints[path] = constraint
        return True

    def _any(self, items: Iterable[Expression], wanted: bool) -> list[_Draft]:
        """All the alternatives, those that admit values of the same single attribute united into one."""
        single: dict[Path, list[Constraint]] = {}
        absent: dict[Path, None] = {}
        drafts: list[_Draft] = []
        for item in items:
            for draft in self.drafts(item, wanted):
                constraints, residuals = draft
                if residuals or len(constraints) > 1:
                    drafts.append(draft)
                elif not constraints:
                    return _ALWAYS
                else:
                    ((path, constraint),) = constraints.items()
                    if constraint is Presence.ABSENT:
                        absent[path] = None
                    else:
                        single.setdefault(path, []).append(constraint)
            self.growing, self.factors = item, None
            drafts = self._limited(drafts)
        united = {path: self._reduced(several, union) for path, several in single.items()}
        if any(united.get(path) is Presence.PRESENT for path in absent):
            return _ALWAYS
        drafts.extend(({path: constraint}, ()) for path, constraint in united.items() if constraint is not None)
        drafts.extend(({path: Presence.ABSENT}, ()) for path in absent)
        return self._limited(drafts)

    def _reduced(self, several: list[Constraint], join: _Join) -> Constraint | None:
        """All the constraints in one, joined in pairs, so that ten thousand take ten thousand times a few steps."""
        while len(several) > 1:
            joined = several[len(several) & ~1 :]
            for left, right in zip(several[::2], several[1::2], strict=False):
                self._spend(_size(left) + _size(right))
                both = join(left, right)
                if both is None:
                    return None
                joined.append(both)
            several = joined
        return several[0]

    def _limited(self, drafts: list[_Draft]) -> list[_Draft]:
        most = self.limits.max_conjunctions
        if len(drafts) > most:
            self._spend(32 * len(drafts))
            drafts = list({(frozenset(each.items()), rest): (each, rest) for each, rest in drafts}.values())
        if len(drafts) > most:
            raise self._too_large(f"the normal form has more than {most:,} conjunctions")
        return drafts

    def _spend(self, work: int) -> None:
        self.work += work
        if self.work > _WORK_PER_CONJUNCTION * self.limits.max_conjunctions:
            raise self._too_large("the normal form takes too much work")

    def _too_large(self, message: str) -> LimitError:
        hint = "split it into several subscriptions, or use IN for alternatives of one attribute"
        if self.factors is not None:
            hint = "AND multiplies alternatives, here {:,} by {:,}: ".format(*self.factors) + hint
        offset = None if self.growing is None else offset_of(self.growing)
        return LimitError(message, limit="max_conjunctions", offset=offset, hint=hint)

    # Predicates

    def _predicate(self, node: Predicate, wanted: bool) -> list[_Draft]:
        match node:
            case Between(operand=Attribute(path=path), low=Constant() as low, high=Constant() as high) if (
                low.kind is high.kind and not isinstance(self._domain(path), CodedDomain)
            ):
                admitted = intervals.between(low.given(self.constants), high.given(self.constants))
                admitted = admitted if wanted else admitted.complement()
                return self._draft(path, _admitting(low.kind, admitted, self._domain(path)))
            case Between(operand=operand, low=low, high=high):
                bounds = And((Comparison(operand, ">=", low), Comparison(operand, "<=", high)))
                return self.drafts(bounds, wanted)
            case In(operand=Attribute(path=path), values=values):
                return self._draft(path, self._listed(path, [each.given(self.constants) for each in values], wanted))
            case Like(operand=Attribute(path=path)):
                return self._like(path, node, wanted)
            case In() | Like():
                return _ALWAYS if evaluate(node, _constant_value) is wanted else _NEVER
            case IsNull(attribute=attribute):
                return [({attribute.path: Presence.ABSENT if wanted else Presence.PRESENT}, ())]
            case Contains(attribute=attribute, value=value):
                return self._contains(attribute, value.given(self.constants), wanted)
            case Holds(operand=operand):
                if isinstance(operand, Constant):
                    return _ALWAYS if operand.value is wanted else _NEVER
                return self._draft(operand.path, self._compared(operand.path, "=", True, wanted))
            case Call():
                raise UnavailableError(f"the operator `{node.name}` is not available")
            case Comparison():
                return self._comparison(node, wanted)

    def _comparison(self, node: Comparison, wanted: bool) -> list[_Draft]:
        left, right, operator = node.left, node.right, node.operator
        if isinstance(left, Attribute) and isinstance(right, Attribute):
            if left == right and (operator in _FALSE_OF_EQUALS) is wanted:
                self.emptied = left.path
                return _NEVER
            return [({}, (Residual(node, not wanted, self._domain(left.path)),))]
        if isinstance(left, Constant):
            left, right, operator = right, left, _MIRRORED[operator]
        if isinstance(left, Attribute) and isinstance(right, Constant):
            return self._draft(left.path, self._compared(left.path, operator, right.given(self.constants), wanted))
        return _ALWAYS if evaluate(node, _constant_value) is wanted else _NEVER

    def _compared(self, path: Path, operator: str, value: Value, wanted: bool) -> Constraint | None:
        """The constraint that a comparison with a constant is, or None if nothing can meet it."""
        kind = KINDS[type(value)]
        if self.schema is None:
            domain = None
        else:
            domain = self.schema.domain_of(path)
            if isinstance(domain, CodedDomain):
                return _admitting(kind, _true_codes(domain, operator, str(value), wanted), domain)
        asked = operator if wanted else _NEGATED[operator]
        if domain is None and type(value) is int and 0 <= value < _SMALL:
            return _compared_with_small(asked, value)
        admitted = intervals.COMPARISONS[asked](value)
        if domain is None and (kind is Kind.NUMBER or (kind is Kind.STRING and value)):
            return Values(((kind, admitted),))  # as it is canonical already
        return _admitting(kind, admitted, domain)

    def _listed(self, path: Path, values: list[Value], wanted: bool) -> Constraint | None:
        """IN is true for any of the values; NOT IN only for what compares with each of them, so for one kind only."""
        domain = self._domain(path)
        by_kind: dict[Kind, list[Value]] = {}
        for value in values:
            by_kind.setdefault(KINDS[type(value)], []).append(value)
        if not wanted and len(by_kind) > 1:
            return None
        sets: dict[Kind, Intervals] = {}
        for kind, members in by_kind.items():
            coded = [domain.code(str(each)) for each in members] if isinstance(domain, CodedDomain) else members
            admitted = line_of(kind, domain).canonical(intervals.points(coded))
            sets[kind] = admitted if wanted else admitted.complement()
        return _constraint(sets, domain)

    def _contains(self, attribute: Attribute, value: Value, wanted: bool) -> list[_Draft]:
        domain = self._domain(attribute.path)
        if isinstance(domain, CodedDomain):
            domain.code(str(value))  # raises if it is outside the domain
        return [({}, (Residual(Contains(attribute, Constant(value)), not wanted),))]

    def _like(self, path: Path, template: Like, wanted: bool) -> list[_Draft]:
        """A plain prefix is an interval of strings; any other pattern is a residual with the interval of its prefix."""
        pattern = str(template.pattern.given(self.constants))
        pieces = like_pieces(pattern, template.escape)
        wildcards = [index for index, piece in enumerate(pieces) if not piece]
        prefix = "".join(piece or "" for piece in pieces[: wildcards[0] if wildcards else None])
        domain = self._domain(path)
        is_coded = isinstance(domain, CodedDomain)
        if not wildcards and not is_coded:
            return self._draft(path, self._compared(path, "=", prefix, wanted))
        admitted = LINES[Kind.STRING].canonical(intervals.prefixed(prefix))
        if not is_coded and wildcards == [len(pieces) - 1] and pieces[-1] is None:
            sets = {Kind.STRING: admitted if wanted else admitted.complement()}
            return self._draft(path, _constraint(sets, domain))
        residual = (Residual(Like(template.operand, Constant(pattern), template.escape), not wanted),)
        is_narrow = wanted and prefix and not is_coded
        return [({path: Values(((Kind.STRING, admitted),))} if is_narrow else {}, residual)]

    # Constraints

    def _domain(self, path: Path) -> Domain | None:
        return None if self.schema is None else self.schema.domain_of(path)

    def _draft(self, path: Path, constraint: Constraint | None) -> list[_Draft]:
        if constraint is None:
            self.emptied = path
            return _NEVER
        return [({path: constraint}, ())]


@cache
def _compared_with_small(operator: str, value: int) -> Values:
    """The same object for all that ask the same: so many subscriptions share it, and it is near at hand."""
    return Values(((Kind.NUMBER, intervals.COMPARISONS[operator](value)),))


def _admitting(kind: Kind, admitted: Intervals, domain: Domain | None) -> Constraint | None:
    return _constraint({kind: line_of(kind, domain).canonical(admitted)}, domain)


def _constraint(sets: dict[Kind, Intervals], domain: Domain | None) -> Constraint | None:
    """Just these values, or None if there are none."""
    sets = {kind: admitted for kind, admitted in sets.items() if not admitted.empty}
    if not sets:
        return None
    parts = tuple(sets.items()) if len(sets) == 1 else tuple(sorted(sets.items()))
    coded = domain if isinstance(domain, CodedDomain) else None
    return Values(parts, coded, domain if isinstance(domain, IntegerDomain) else None)


_Join = Callable[[Constraint, Constraint], Constraint | None]


def _size(constraint: Constraint) -> int:
    """The cuts that a sweep over the constraint passes."""
    return 1 if isinstance(constraint, Presence) else sum(len(admitted.cuts) for _, admitted in constraint.parts)


def _covers_all(drafts: list[_Draft]) -> bool:
    """Whether one attribute is admitted both without a value and, by one constraint, with any that its domain has.

    Only where nothing else is asked: a full constraint still picks an element, and other constraints may share it.
    """
    alone = [each for each, rest in drafts if len(each) == 1 and not rest]
    absent = {path for each in alone for path, constraint in each.items() if constraint is Presence.ABSENT}
    return any(
        path in absent and isinstance(constraint, Values) and any(admitted.full for _, admitted in constraint.parts)
        for each in alone
        for path, constraint in each.items()
    )


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


def _constant_value(operand: Operand) -> Value | None:
    if isinstance(operand, Constant):
        return operand.value
    raise UnavailableError("variables are not available")
