"""Why an event did or did not match a subscription that calls operators: every call is made, and its outcome shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harken.errors import HarkenError
from harken.events.raw import RawEvent
from harken.explain.expressions import explain_part
from harken.language.ast import (
    And,
    Attribute,
    Call,
    Constant,
    Expression,
    IsTruth,
    Not,
    Or,
    Variable,
    conjunction,
    disjunction,
    leaves,
    predicates,
)
from harken.language.explanation import Clause, Explanation
from harken.language.sql.printer import print_expression
from harken.limits import Limits
from harken.operators.calling import Caller, Evaluation
from harken.operators.operator import FREE
from harken.reference.operators import CallResult, CallResults, calls, elements, substitution, substitutions, under
from harken.schema import Schema
from harken.schema.values import show

_SHOWN = 8
_NONE_FOR_ALL = "each holds for some binding, none for all of them"
_NONE_AGAINST_ALL = "each is false for some binding, none for all of them"
_Notes = Mapping[Call, str | None]


def explain_calling(
    expression: Expression,
    event: Mapping[str, Any],
    raw: RawEvent,
    callers: Mapping[str, Caller],
    schema: Schema | None,
    limits: Limits,
) -> Explanation:
    """Explain an expression on a canonical event, which came as `raw`. All its operators are called."""
    results: dict[Call, CallResult] = {}
    notes: dict[Call, str | None] = {}
    for call in calls(expression):
        results[call], notes[call] = _called(call, raw, callers[call.name])
    bound = substitution(expression, event, results, schema)
    tree = _Explainer(expression, event, results, notes, bound, schema, limits).part(expression)
    note = None if not bound else "with " + ", ".join(f"?{name} = {show(value)}" for name, value in bound.items())
    if note is not None:
        tree = Clause(
            tree.text, tree.truth, tree.met, note if tree.note is None else f"{tree.note}; {note}", tree.parts
        )
    return Explanation(bound is not None, tree)


def _called(call: Call, raw: RawEvent, caller: Caller) -> tuple[CallResult, str | None]:
    """The result of a call, and a note on it."""
    arguments: list[Any] = []
    for argument in call.arguments:
        if isinstance(argument, Attribute):
            arguments.append(raw.at(argument.path))
            if arguments[-1] is None:
                return None, f"{argument.name} is missing"
        else:
            arguments.append(argument.value if isinstance(argument, Constant) else FREE)
    (answer,) = caller([Evaluation(raw.seen(caller.operator.signature.reads), tuple(arguments))])
    if isinstance(answer, HarkenError):
        return None, answer.message
    if isinstance(answer, bool):
        return answer, None
    return answer, _bindings([argument.name for argument in call.arguments if isinstance(argument, Variable)], answer)


def _bindings(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Bindings in words."""
    variables = ", ".join(f"?{name}" for name in names)
    if not rows:
        return f"no binding for {variables}"
    shown = ", ".join(
        "(" * (len(names) > 1) + ", ".join(map(show, row)) + ")" * (len(names) > 1) for row in rows[:_SHOWN]
    )
    more = f", and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
    return f"{variables} is {shown}{more}" if len(rows) == 1 else f"{variables} is one of {shown}{more}"


class _Explainer:
    """Explains the parts under the substitution that made the event match. Without one, and for variables that it
    leaves unbound, a part has the truth that favours a match: under NOT, that is false.
    """

    def __init__(
        self,
        expression: Expression,
        event: Mapping[str, Any],
        results: CallResults,
        notes: _Notes,
        bound: Mapping[str, Any] | None,
        schema: Schema | None,
        limits: Limits,
    ) -> None:
        self.event = event
        self.results = results
        self.notes = notes
        self.bound = bound or {}
        self.schema = schema
        self.limits = limits
        self.picked: Mapping[str, Any] | None = None
        """The event with the elements that made it match, if it did."""
        if bound is not None:
            self.picked = elements(under(expression, bound, results), event, schema, None, limits.max_bindings)

    def part(self, node: Expression, is_positive: bool = True, beside: tuple[Expression, ...] = ()) -> Clause:
        """Explain a part, under an even number of NOT if `is_positive`, and `beside` calls that bind variables."""
        match node:
            case And(items=items) | Or(items=items):
                return self._joined(node, items, is_positive, beside)
            case Not(item=Call() as call):
                truth = self._truth(call, not is_positive)
                return Clause(print_expression(node), None if truth is None else not truth, (), self.notes[call])
            case Call():
                return Clause(print_expression(node), self._truth(node, is_positive), (), self.notes[node])
            case Not(item=item):
                below = self.part(item, not is_positive, beside)
                return Clause("NOT", None if below.truth is None else not below.truth, (), None, (below,))
            case IsTruth(item=item, wanted=wanted):
                below = self.part(item, is_positive is wanted, beside)
                return Clause(f"IS {str(wanted).upper()}", below.truth is wanted, (), None, (below,))
        truth = self._truth(node, is_positive, beside)
        names = _variables(node)
        if names:
            return Clause(print_expression(node), truth, (), ", ".join(self._value(name, beside) for name in names))
        return replace(explain_part(node, self.event, self.picked, self.schema, self.limits), truth=truth)

    def _joined(
        self, node: And | Or, items: tuple[Expression, ...], is_positive: bool, beside: tuple[Expression, ...]
    ) -> Clause:
        """AND or OR. If the whole needs all of its parts, one substitution has to give the truth of each."""
        is_and = isinstance(node, And)
        needs_all = is_and is is_positive
        binders = [_binding(item, is_positive) for item in items] if needs_all else []
        parts = []
        for place, item in enumerate(items):
            others = tuple(each for at, each in enumerate(binders) if at != place and each is not None)
            parts.append(self.part(item, is_positive, beside + others))
        truths = {part.truth for part in parts}
        truth = not is_and if (not is_and) in truths else None if None in truths else is_and
        note = None
        if needs_all and truth is is_and and self._truth(node, is_positive, beside) is not truth:
            truth, note = not truth, _NONE_FOR_ALL if is_and else _NONE_AGAINST_ALL
        return Clause("AND" if is_and else "OR", truth, (), note, tuple(parts))

    def _truth(self, node: Expression, wanted: bool, beside: Sequence[Expression] = ()) -> bool | None:
        """The wanted truth if some substitution gives it; else unknown if one gives that; else the other truth."""
        names = _variables(node).keys()
        binders = [each for each in beside if names & _variables(each).keys() - self.bound.keys()]
        candidates = substitutions(node, self.results, self.bound, is_positive=wanted)
        if binders:
            bound_here = {name for call in calls(node) for name in _variables(call)}
            candidates = self._bound_beside(node, names - bound_here, binders, wanted)
        truths = set()
        for bound in candidates:
            truths.add(self._plain_truth(under(node, bound, self.results, wanted), wanted))
            if wanted in truths:
                return wanted
        return None if None in truths else not wanted

    def _bound_beside(
        self, node: Expression, names: set[str], binders: Sequence[Expression], wanted: bool
    ) -> Iterator[dict[str, Any]]:
        """Substitutions under which the calls beside a part hold; if there is none, all that bind these names."""
        joined = conjunction(list(binders))
        others: list[dict[str, Any]] = []
        has_any = False
        for each in substitutions(joined, self.results, self.bound):
            if self._plain_truth(under(joined, each, self.results), True):
                has_any = True
                yield from substitutions(node, self.results, each, is_positive=wanted)
            elif names <= each.keys():
                others.append(each)
        for each in () if has_any else others or [dict(self.bound)]:
            yield from substitutions(node, self.results, each, is_positive=wanted)

    def _plain_truth(self, plain: Expression, wanted: bool) -> bool | None:
        """The truth of a part without calls and variables: the wanted one, if some binding of arrays gives it."""
        for truth in (wanted, not wanted):
            tried = plain if truth else Not(plain)
            if elements(tried, self.event, self.schema, self.picked, self.limits.max_bindings) is not None:
                return truth
        return None

    def _value(self, name: str, beside: Sequence[Expression]) -> str:
        """The value that a variable has, or those that it may have."""
        if name in self.bound:
            return f"?{name} = {show(self.bound[name])}"
        values: dict[str, None] = {}
        for call in (call for each in beside for call in calls(each)):
            variables, rows = [each.name for each in call.arguments if isinstance(each, Variable)], self.results[call]
            if name in variables and isinstance(rows, Sequence):
                values.update(dict.fromkeys(show(row[variables.index(name)]) for row in rows))
        shown = ", ".join(list(values)[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")
        return f"?{name} is {'one of ' * (len(values) > 1)}{shown}" if values else f"nothing bound ?{name}"


def _variables(node: Expression) -> dict[str, None]:
    """The names of the variables in a part, in order."""
    operands = (leaf for each, _ in predicates(node) for leaf in leaves(each))
    return dict.fromkeys(leaf.name for leaf in operands if isinstance(leaf, Variable))


def _binding(node: Expression, is_positive: bool) -> Expression | None:
    """The calls of a part that bind variables, joined as in the part; None if there are none."""
    match node:
        case Call():
            return node if is_positive else None
        case Not(item=item):
            return _binding(item, not is_positive)
        case IsTruth(item=item, wanted=wanted):
            return _binding(item, is_positive is wanted)
        case And(items=items) | Or(items=items):
            binders = [each for each in (_binding(item, is_positive) for item in items) if each is not None]
            joined = conjunction if isinstance(node, And) is is_positive else disjunction
            return joined(binders) if binders else None
    return None
