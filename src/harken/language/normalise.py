"""AST → normal form: a disjunction of conjunctions, each one constraint per attribute and what no constraint can say.

Negations are pushed to the predicates first: an expression is true, in three-valued logic, just when one of these
conjunctions has only true parts. A predicate that is unknown is as good as false here, because nothing is left that
could turn it round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harken.errors import ContradictionError, LimitError
from harken.language.ast import Expression
from harken.language.ast import constants as constants_of
from harken.language.normal_form import (
    Conjunction,
    Constraint,
    NormalForm,
    Presence,
    Residual,
    ValueSet,
    intersection,
    union,
)
from harken.language.outline import ALWAYS, NEVER, AllOf, AnyOf, Asked, Draft, Outline, outline
from harken.limits import DEFAULT_LIMITS, Limits
from harken.schema import Schema, Value, format_path
from harken.schema.paths import Path

# How much a normalisation may do for every conjunction that it may keep: constraints copied and cuts swept.
_WORK_PER_CONJUNCTION = 1_024


def normalise(expression: Expression, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> NormalForm:
    """The normal form. Raises ContradictionError if no event can match, LimitError if the form is too large."""
    return Template(expression, schema).fill([each.value for each in constants_of(expression)], limits)


class Template:
    """An expression with holes for its constants. No normal form comes of it unless all of them are filled."""

    __slots__ = ("_has_schema", "_outline", "holes")

    def __init__(self, expression: Expression, schema: Schema | None = None) -> None:
        constants = constants_of(expression)
        self.holes = len(constants)
        self._outline = outline(expression, constants, schema)
        self._has_schema = schema is not None

    def fill(self, constants: Sequence[Value], limits: Limits = DEFAULT_LIMITS) -> NormalForm:
        """The normal form with these constants, in the order of the text; each is of the kind of the one it is for.

        Raises ValueError if there are too few or too many, and the errors of `normalise`.
        """
        if len(constants) != self.holes:
            raise ValueError(f"a template with {self.holes} holes was given {len(constants)} constants")
        builder = _Builder(limits, constants)
        drafts = [draft for draft in builder.drafts(self._outline) if builder.is_possible(*draft)]
        if not drafts:
            raise ContradictionError("no event can ever match this", path=builder.emptied, hint=builder.why_empty())
        if self._has_schema and _covers_all(drafts):
            drafts = ALWAYS
        # Paths are unique, so sorting never comes to compare constraints.
        conjunctions = [Conjunction(tuple(sorted(constraints.items())), rest) for constraints, rest in drafts]
        return NormalForm(tuple(conjunctions if len(conjunctions) == 1 else dict.fromkeys(conjunctions)))


class _Builder:
    """One normalisation: it knows the constants and the limits, and remembers what emptied a conjunction."""

    def __init__(self, limits: Limits, constants: Sequence[Value]) -> None:
        self.limits = limits
        self.constants = constants
        self.emptied: Path | None = None
        self.growing: Outline | None = None
        """The part whose alternatives are being added or, if there are factors, multiplied with others."""
        self.factors: tuple[int, int] | None = None
        self.work = 0

    def drafts(self, node: Outline) -> list[Draft]:
        """The conjunctions under which the node holds."""
        if isinstance(node, Asked):
            constraint = node.constraint(self.constants)
            if constraint is None:
                self.emptied = node.path
                return NEVER
            return [({node.path: constraint}, ())]
        if isinstance(node, AllOf):
            return self._all(node.items)
        if isinstance(node, AnyOf):
            return self._any(node.items)
        found = node.drafts(self.constants)
        if not found and node.path is not None:
            self.emptied = node.path
        return found

    def is_possible(self, constraints: dict[Path, Constraint], residuals: tuple[Residual, ...]) -> bool:
        """Whether no residual predicate is about an attribute that is to have no value: it would be unknown."""
        for residual in residuals:
            for path in residual.paths:
                if constraints.get(path) is Presence.ABSENT:
                    self.emptied = path
                    return False
        return True

    def why_empty(self) -> str:
        if self.emptied is None:
            return "it is false, or unknown, whatever the event"
        return f"its conditions on `{format_path(self.emptied)}` leave no value that meets them all"

    # Conjunctions and disjunctions

    def _all(self, items: Iterable[Outline]) -> list[Draft]:
        """Every item at once: those with one alternative first, because each of them narrows all that follows."""
        constants = self.constants
        constraints: dict[Path, Constraint] = {}
        repeated: dict[Path, list[Constraint]] = {}
        residuals: list[Residual] = []
        forks: list[tuple[Outline, list[Draft]]] = []
        for item in items:
            if type(item) is Asked:  # as most are: without the detour through a list of one draft
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
                forks.append((item, alternatives))
                continue
            added, more = alternatives[0]
            for path, constraint in added.items():
                if constraints.setdefault(path, constraint) is not constraint:
                    repeated.setdefault(path, []).append(constraint)
            residuals.extend(more)
        for path, several in repeated.items():
            if not self._narrow(constraints, path, self._reduced(several, intersection)):
                return NEVER
        drafts: list[Draft] = [(constraints, tuple(dict.fromkeys(residuals)))]
        for item, alternatives in forks:
            self.growing, self.factors = item, (len(drafts), len(alternatives))
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
        known = constraints.get(path)
        if known is not None and constraint is not None:
            self._spend(_size(known) + _size(constraint))
            constraint = intersection(known, constraint)
        if constraint is None:
            self.emptied = path
            return False
        constraints[path] = constraint
        return True

    def _any(self, items: Iterable[Outline]) -> list[Draft]:
        """All the alternatives, those that admit values of the same single attribute united into one."""
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
            self.growing, self.factors = item, None
            drafts = self._limited(drafts)
        united = {path: self._reduced(several, union) for path, several in single.items()}
        if any(united.get(path) is Presence.PRESENT for path in absent):
            return ALWAYS
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

    def _limited(self, drafts: list[Draft]) -> list[Draft]:
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
        offset = None if self.growing is None else self.growing.at
        return LimitError(message, limit="max_conjunctions", offset=offset, hint=hint)


_Join = Callable[[Constraint, Constraint], Constraint | None]


def _size(constraint: Constraint) -> int:
    """The cuts that a sweep over the constraint passes."""
    return 1 if isinstance(constraint, Presence) else sum(len(admitted.cuts) for _, admitted in constraint.parts)


def _covers_all(drafts: list[Draft]) -> bool:
    """Whether one attribute is admitted both without a value and, by one constraint, with any that its domain has.

    Only where nothing else is asked: a full constraint still picks an element, and other constraints may share it.
    """
    alone = [each for each, rest in drafts if len(each) == 1 and not rest]
    absent = {path for each in alone for path, constraint in each.items() if constraint is Presence.ABSENT}
    return any(
        path in absent and isinstance(constraint, ValueSet) and any(admitted.full for _, admitted in constraint.parts)
        for each in alone
        for path, constraint in each.items()
    )
