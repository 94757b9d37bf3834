"""Why an event did or did not match: the expression as a tree, with the truth and the value behind every part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harken.language.ast import (
    And,
    Attribute,
    Constant,
    Contains,
    Expression,
    IsTruth,
    Not,
    Or,
    arithmetic_depth,
    attributes,
    leaves,
    predicates,
)
from harken.language.explanation import MARKS, Clause, Explanation, Met
from harken.language.registry import FindEvent
from harken.language.sql.doubts import substring_doubt
from harken.language.sql.front_end import SqlFrontEnd
from harken.language.sql.printer import print_expression
from harken.limits import DEFAULT_LIMITS, Limits
from harken.reference.expressions import all_values, array_on, find_binding
from harken.schema import Schema
from harken.schema.derived import READ_AS
from harken.schema.paths import Path, format_path
from harken.schema.values import KINDS, Kind

__all__ = ["MARKS", "Clause", "Explanation", "Met", "explain", "explain_sql"]

_NO_CHOICE = "each holds for some element of {arrays}, but no one choice of elements meets them all"
_OTHER_CHOICE = "for another element than the part below"


def explain(
    expression: Expression, event: Mapping[str, Any], schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS
) -> Explanation:
    """Explain an expression on a canonical event, by the reference semantics. Raises LimitError."""
    bound = find_binding(expression, event, schema, None, limits.max_bindings)
    return Explanation(bound is not None, _Explainer(event, bound, schema, limits).part(expression))


def explain_part(
    part: Expression,
    event: Mapping[str, Any],
    bound: Mapping[str, Any] | None,
    schema: Schema | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Clause:
    """Explain a part of an expression under the binding of arrays that made the event match, if one did."""
    return _Explainer(event, bound, schema, limits).part(part)


def explain_sql(front_end: SqlFrontEnd, text: str, find_event: FindEvent) -> Explanation:
    """Explain a text of SQL on an event: the explainer of the language `sql`."""
    expression = front_end.parse(text)
    event = find_event(frozenset(path[0] for path in attributes(expression)))
    return explain(expression, event, front_end.schema, front_end.limits)


class _Explainer:
    """Explains the parts under the binding that made the event match or, without one, each under its own best."""

    def __init__(
        self, whole: Mapping[str, Any], bound: Mapping[str, Any] | None, schema: Schema | None, limits: Limits
    ) -> None:
        self.whole = whole
        self.bound = bound
        self.schema = schema
        self.limits = limits

    def part(self, node: Expression) -> Clause:
        match node:
            case And(items=items):
                return self._conjunction(node, tuple(map(self.part, items)))
            case Or(items=items):
                parts = tuple(map(self.part, items))
                truths = [part.truth for part in parts]
                return Clause("OR", True if True in truths else None if None in truths else False, (), None, parts)
            case Not(item=And() | Or() | Not() as item):
                below = self.part(item)
                truth = self._truth(node)
                agrees = truth is (None if below.truth is None else not below.truth)
                return Clause("NOT", truth, (), None if agrees else _OTHER_CHOICE, (below,))
            case IsTruth(item=And() | Or() | Not() as item, wanted=wanted):
                below = self.part(item)
                truth = self._truth(node)
                note = None if truth is (below.truth is wanted) else _OTHER_CHOICE
                return Clause(f"IS {str(wanted).upper()}", truth, (), note, (below,))
            case Not(item=IsTruth(item=And() | Or() | Not()) as item):
                return Clause("NOT", self._truth(node), (), None, (self.part(item),))
            case _:
                truth = self._truth(node)
                note = self._kinds_note(node) if truth is None else self._substring_note(node)
                return Clause(print_expression(node), truth, self._met(node), note)

    def _conjunction(self, node: And, parts: tuple[Clause, ...]) -> Clause:
        truths = [part.truth for part in parts]
        if False in truths or None in truths:
            return Clause("AND", False if False in truths else None, (), None, parts)
        if self._is_possible(node):
            return Clause("AND", True, (), None, parts)
        arrays = dict.fromkeys(array_on(self.whole, path) for path in attributes(node))
        names = ", ".join(format_path(array) for array in arrays if array is not None)
        return Clause("AND", False, (), _NO_CHOICE.format(arrays=names), parts)

    def _truth(self, node: Expression) -> bool | None:
        if self._is_possible(node):
            return True
        return False if self._is_possible(Not(node)) else None

    def _is_possible(self, node: Expression) -> bool:
        most = self.limits.max_bindings
        return find_binding(node, self.whole, self.schema, self.bound, most) is not None

    def _kinds_note(self, node: Expression) -> str | None:
        """A note if a predicate is unknown because the event's value and the text's constant differ in kind."""
        if any(arithmetic_depth(each) for each, _ in predicates(node)):
            return None
        operands = [leaf for each, _ in predicates(node) for leaf in leaves(each)]
        wanted = {leaf.kind for leaf in operands if isinstance(leaf, Constant)}
        paths = [leaf.path for leaf in operands if isinstance(leaf, Attribute)]
        kinds = {KINDS.get(type(value)) for path in paths for value in all_values(self.whole, path)}
        if len(wanted) != 1 or len(kinds) != 1 or wanted == kinds:
            return None
        (kind,), (other,) = kinds, wanted
        if self.schema is None and kind is Kind.STRING and other in READ_AS:
            return f"a string that is not a full ISO 8601 {other} does not compare with one"
        return f"{'an object' if kind is None else f'a {kind}'} does not compare with a {other}"

    def _substring_note(self, node: Expression) -> str | None:
        """A note on a CONTAINS that was probably meant to search in a string."""
        predicate = node.item if isinstance(node, Not) else node
        if not isinstance(predicate, Contains) or not isinstance(predicate.value.value, str):
            return None
        wanted = predicate.value.value
        strings = [each for each in all_values(self.whole, predicate.attribute.path) if isinstance(each, str)]
        if wanted in strings or not any(wanted in each for each in strings):
            return None
        return substring_doubt(predicate.attribute.name, wanted)

    def _met(self, node: Expression) -> tuple[Met, ...]:
        operands = (leaf for each, _ in predicates(node) for leaf in leaves(each))
        paths = dict.fromkeys(leaf.path for leaf in operands if isinstance(leaf, Attribute))
        return tuple(map(self._values, paths))

    def _values(self, path: Path) -> Met:
        values = all_values(self.whole, path)
        picked = [] if self.bound is None else all_values(self.bound, path)
        is_picked = len(values) > 1 and len(picked) == 1
        return Met(format_path(path), tuple(values), picked[0] if is_picked else None)
