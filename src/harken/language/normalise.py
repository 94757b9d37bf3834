"""AST → normal form: a disjunction of conjunctions of constraints, one per attribute, and residuals.

Negations are pushed to the predicates first: an expression is true, in three-valued logic, exactly if one of these
conjunctions has only true parts. An unknown predicate counts as false, since no negation is left above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harken.errors import ContradictionError, LimitError
from harken.language.ast import Constant, Expression
from harken.language.ast import constants as constants_of
from harken.language.normal_form import (
    Conjunction,
    Constraint,
    NormalForm,
    Presence,
    Residual,
    ValueSet,
    intersection,
    intersection_of,
    lacking,
    union_of,
)
from harken.language.outline import ALWAYS, NEVER, AllOf, AnyOf, Constants, Draft, Outline, SingleConstraint, outline
from harken.language.trees import FALSE, Constrained, Every, Some, Tree, simplified
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import Schema, Value, format_path
from harken.schema.derived import place_of
from harken.schema.paths import Path

# Work that a normalisation may do per conjunction that it may keep: constraints copied and cuts swept.
_WORK_PER_CONJUNCTION = 1_024


def normalise(expression: Expression, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> NormalForm:
    """The normal form. Raises ContradictionError if no event can match, LimitError if the form is too large."""
    constants = constants_of(expression)
    return Template(expression, schema, constants).fill([constant.value for constant in constants], limits)


class Template:
    """An expression with holes for its constants. With all of them filled, it gives a normal form."""

    __slots__ = ("_has_schema", "_outline", "has_residuals", "holes")

    def __init__(
        self, expression: Expression, schema: Schema | None = None, constants: Sequence[Constant] | None = None
    ) -> None:
        if constants is None:
            constants = constants_of(expression)
        self.holes = len(constants)
        self._outline = outline(expression, constants, schema)
        self._has_schema = schema is not None
        self.has_residuals = _has_residuals(self._outline)
        """Whether some predicate may be more than a constraint on one attribute."""

    @property
    def is_constraint(self) -> bool:
        """Whether it is a single constraint on one attribute."""
        return isinstance(self._outline, SingleConstraint)

    def constraint(self, constants: Sequence[Value]) -> tuple[Path, Constraint | None]:
        """The path and the constraint, with these constants; None if nothing meets the constraint."""
        assert isinstance(self._outline, SingleConstraint)
        return self._outline.path, self._outline.constraint(constants)

    def fill(self, constants: Sequence[Value], limits: Limits = DEFAULT_LIMITS) -> NormalForm:
        """The normal form with these constants, in the order of the text; each is of the kind of the one it replaces.

        Raises ValueError if there are too few or too many, and the errors of `normalise`.
        """
        if len(constants) != self.holes:
            raise ValueError(f"a template with {self.holes} holes was given {len(constants)} constants")
        builder = _Builder(limits, constants)
        drafts = [draft for draft in builder.drafts(self._outline) if builder.is_possible(*draft)]
        if not drafts:
            emptied = None if builder.emptied is None else place_of(builder.emptied)
            raise ContradictionError("no event can ever match this", path=emptied, hint=builder.why_empty())
        if self._has_schema and _covers_all(drafts):
            drafts = ALWAYS
        # Paths are unique, so sorting never compares constraints.
        conjunctions = [Conjunction(tuple(sorted(constraints.items())), rest) for constraints, rest in drafts]
        return NormalForm(tuple(conjunctions if len(conjunctions) == 1 else dict.fromkeys(conjunctions)))

    def tree(self, constants: Sequence[Value]) -> Tree:
        """The tree with these constants, in which nothing is multiplied out. Raises ContradictionError."""
        return simplified(_tree(self._outline, constants))


def _has_residuals(node: Outline) -> bool:
    if isinstance(node, AllOf | AnyOf):
        return any(map(_has_residuals, node.items))
    return not isinstance(node, SingleConstraint)


def _tree(node: Outline, constants: Constants) -> Tree:
    if isinstance(node, AllOf):
        return Every(tuple([_tree(item, constants) for item in node.items]))
    if isinstance(node, AnyOf):
        return Some(tuple([_tree(item, constants) for item in node.items]))
    if isinstance(node, SingleConstraint):
        constraint = node.constraint(constants)
        return FALSE if constraint is None else Constrained(node.path, constraint)
    return Some(tuple([_tree_of_draft(*draft) for draft in node.drafts(constants)]))


def _tree_of_draft(constraints: dict[Path, Constraint], residuals: tuple[Residual, ...]) -> Tree:
    # The pattern implies the interval of its prefix.
    implied = {path for each in residuals if each.of_sets is False and len(each.paths) == 1 for path in each.paths}
    items: list[Tree] = [Constrained(path, each) for path, each in constraints.items() if path not in implied]
    return Every((*items, *residuals))


def conjoined(parts: Iterable[tuple[Template, Sequence[Value]]]) -> NormalForm | None:
    """The normal form of the conjunction of templates that are constraints, with their constants.

    None if nothing meets one of them, or several on one attribute.
    """
    constraints: dict[Path, Constraint] = {}
    for template, constants in parts:
        path, constraint = template.constraint(constants)
        existing = constraints.get(path)
        if existing is not None and constraint is not None:
            constraint = intersection(existing, constraint)
        if constraint is None:
            return None
        constraints[path] = constraint
    return NormalForm((Conjunction(tuple(sorted(constraints.items()))),))


class _Builder:
    """One normalisation. Remembers which attribute left a conjunction without values."""

    def __init__(self, limits: Limits, constants: Sequence[Value]) -> None:
        self.limits = limits
        self.constants = constants
        self.emptied: Path | None = None
        self.work = 0

    def drafts(self, node: Outline) -> list[Draft]:
        """The conjunctions under which the node holds."""
        if isinstance(node, SingleConstraint):
            constraint = node.constraint(self.constants)
            if constraint is None:
                self.emptied = node.path
                return NEVER
            return [({node.path: constraint}, ())]
        if isinstance(node, AllOf):
            return self._all(node.items)
        if isinstance(node, AnyOf):
            return self._any(node.items)
        drafts = node.drafts(self.constants)
        if not drafts and node.path is not None:
            self.emptied = node.path
        return drafts

    def is_possible(self, constraints: dict[Path, Constraint], residuals: tuple[Residual, ...]) -> bool:
        """Whether no derived attribute or residual needs an attribute that cannot have a value."""
        paths = [path for path in constraints if not path[0]]  # derived ones
        for residual in residuals:
            paths += residual.paths
        for path in paths:
            need = lacking(path, constraints)
            if need is not None:
                self.emptied = need
                return False
        return True

    def why_empty(self) -> str:
        if self.emptied is None:
            return "it is false, or unknown, whatever the event"
        return f"its conditions on `{format_path(self.emptied)}` leave no value that meets them all"

    # Conjunctions and disjunctions

    def _all(self, items: Iterable[Outline]) -> list[Draft]:
        """The conjunction of the items: those with one alternative first, because they narrow the others."""
        constants = self.constants
        constraints: dict[Path, Constraint] = {}
        repeated: dict[Path, list[Constraint]] = {}
        residuals: list[Residual] = []
        forks: list[list[Draft]] = []
        for item in items:
            if type(item) is SingleConstraint:  # fast path, without a list of one draft
                path = item.path
                constraint = item.constraint(constants)
                if constraint is None:
                    self.emptied = path
                    return NEVER
                if constraints.setdefault(path, constraint) is not constraint:
                    repeated.setdefault(path, []).append(constraint)
                continue
            alternatives = self.drafts(item)
            if not alternatives:
                return NEVER
            if len(alternatives) > 1:
                forks.append(alternatives)
                continue
            added, more = alternatives[0]
            for path, constraint in added.items():
                if constraints.setdefault(path, constraint) is not constraint:
                    repeated.setdefault(path, []).append(constraint)
            residuals.extend(more)
        for path, several in repeated.items():
            if not self._narrow(constraints, path, self._joined(several, intersection_of)):
                return NEVER
        drafts: list[Draft] = [(constraints, tuple(dict.fromkeys(residuals)))]
        for alternatives in forks:
            drafts = self._product(drafts, alternatives)
        return drafts

    def _product(self, drafts: list[Draft], alternatives: list[Draft]) -> list[Draft]:
        kept: list[Draft] = []
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
        existing = constraints.get(path)
        if existing is not None and constraint is not None:
            self._spend(_size(existing) + _size(constraint))
            constraint = intersection(existing, constraint)
        if constraint is None:
            self.emptied = path
            return False
        constraints[path] = constraint
        return True

    def _any(self, items: Iterable[Outline]) -> list[Draft]:
        """The alternatives of all items. Those that constrain the same single attribute are united."""
        single: dict[Path, list[Constraint]] = {}
        absent: dict[Path, None] = {}
        drafts: list[Draft] = []
        for item in items:
            for draft in self.drafts(item):
                constraints, residuals = draft
                if residuals or len(constraints) > 1:
                    drafts.append(draft)
                elif not constraints:
                    return ALWAYS
                else:
                    ((path, constraint),) = constraints.items()
                    if constraint is Presence.ABSENT:
                        absent[path] = None
                    else:
                        single.setdefault(path, []).append(constraint)
            drafts = self._limited(drafts)
        united = {path: self._joined(several, union_of) for path, several in single.items()}
        if any(united.get(path) is Presence.PRESENT for path in absent):
            return ALWAYS
        drafts.extend(({path: constraint}, ()) for path, constraint in united.items() if constraint is not None)
        drafts.extend(({path: Presence.ABSENT}, ()) for path in absent)
        return self._limited(drafts)

    def _joined(self, several: list[Constraint], join: _Join) -> Constraint | None:
        """The constraints joined into one, at once: one after the other would take quadratic time."""
        if len(several) == 1:
            return several[0]
        self._spend(sum(map(_size, several)))
        return join(several)

    def _limited(self, drafts: list[Draft]) -> list[Draft]:
        most = self.limits.max_conjunctions
        if len(drafts) > most:
            self._spend(32 * len(drafts))
            drafts = list({(frozenset(each.items()), rest): (each, rest) for each, rest in drafts}.values())
        if len(drafts) > most:
            raise _too_large(f"the normal form has more than {most:,} conjunctions")
        return drafts

    def _spend(self, work: int) -> None:
        self.work += work
        if self.work > _WORK_PER_CONJUNCTION * self.limits.max_conjunctions:
            raise _too_large("the normal form takes too much work")


def _too_large(message: str) -> LimitError:
    """The error for a form that is too large. Plans fall back on the tree."""
    return LimitError(message, limit="max_conjunctions")


_Join = Callable[[Sequence[Constraint]], Constraint | None]


def _size(constraint: Constraint) -> int:
    """The cuts that a sweep over the constraint passes."""
    return 1 if isinstance(constraint, Presence) else sum(len(admitted.cuts) for _, admitted in constraint.parts)


def _covers_all(drafts: list[Draft]) -> bool:
    """Whether an attribute is admitted both without a value and, by one constraint, with every value of its domain.

    Only conjunctions of that one constraint count: a full constraint picks an element that others may share.
    """
    alone = [each for each, rest in drafts if len(each) == 1 and not rest]
    absent = {path for each in alone for path, constraint in each.items() if constraint is Presence.ABSENT}
    return any(
        path in absent and isinstance(constraint, ValueSet) and any(admitted.full for _, admitted in constraint.parts)
        for each in alone
        for path, constraint in each.items()
    )
