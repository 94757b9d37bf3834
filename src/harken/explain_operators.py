"""Why an event did or did not match a subscription that calls operators: every call is made, and its outcome shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harken.errors import HarkenError
from harken.events.raw import RawEvent
from harken.explain import explain
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
    leaves,
    predicates,
)
from harken.language.explanation import Clause, Explanation
from harken.language.sql.printer import print_expression
from harken.limits import Limits
from harken.operators.calling import Caller, Row
from harken.operators.operator import FREE
from harken.operators_reference import Found, calls, substitution
from harken.schema import Schema
from harken.schema.values import show

_SHOWN = 8
_NONE_FOR_ALL = "each holds for some binding, none for all of them"
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
    found: dict[Call, Found] = {}
    notes: dict[Call, str | None] = {}
    for call in calls(expression):
        found[call], notes[call] = _called(call, raw, callers[call.name])
    bound = substitution(expression, event, found, schema)
    tree = _Teller(event, found, notes, bound, schema, limits).part(expression)
    note = None if not bound else "with " + ", ".join(f"?{name} = {show(value)}" for name, value in bound.items())
    if note is not None:
        tree = Clause(
            tree.text, tree.truth, tree.met, note if tree.note is None else f"{tree.note}; {note}", tree.parts
        )
    return Explanation(bound is not None, tree)


def _called(call: Call, raw: RawEvent, caller: Caller) -> tuple[Found, str | None]:
    """What a call finds, and what to say of it."""
    arguments: list[Any] = []
    for each in call.arguments:
        if isinstance(each, Attribute):
            arguments.append(raw.at(each.path))
            if arguments[-1] is None:
                return None, f"{each.name} is missing"
        else:
            arguments.append(each.value if isinstance(each, Constant) else FREE)
    (answer,) = caller([Row(raw.seen(caller.operator.signature.reads), tuple(arguments))])
    if isinstance(answer, HarkenError):
        return None, answer.message
    if isinstance(answer, bool):
        return answer, None
    return answer, _bindings([each.name for each in call.arguments if isinstance(each, Variable)], answer)


def _bindings(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Bindings in words."""
    variables = ", ".join(f"?{name}" for name in names)
    if not rows:
        return f"it finds no {variables}"
    shown = ", ".join(
        "(" * (len(names) > 1) + ", ".join(map(show, row)) + ")" * (len(names) > 1) for row in rows[:_SHOWN]
    )
    more = f", and {len(rows) - _SHOWN:,} more" if len(rows) > _SHOWN else ""
    return f"{variables} is {shown}{more}" if len(rows) == 1 else f"{variables} is one of {shown}{more}"


class _Teller:
    """Tells of the parts under the substitution that made the event match; if none did, of each under its own best."""

    def __init__(
        self,
        event: Mapping[str, Any],
        found: Mapping[Call, Found],
        notes: _Notes,
        bound: Mapping[str, Any] | None,
        schema: Schema | None,
        limits: Limits,
    ) -> None:
        self.event = event
        self.found = found
        self.notes = notes
        self.bound = bound
        self.schema = schema
        self.limits = limits

    def part(self, node: Expression) -> Clause:
        if isinstance(node, And):
            parts = tuple(map(self.part, node.items))
            truths = [each.truth for each in parts]
            if False in truths or None in truths:
                return Clause("AND", False if False in truths else None, (), None, parts)
            is_met = self._is_possible(node)
            return Clause("AND", is_met, (), None if is_met else _NONE_FOR_ALL, parts)
        if isinstance(node, Or):
            return Clause("OR", self._truth(node), (), None, tuple(map(self.part, node.items)))
        if isinstance(node, Not) and not isinstance(node.item, Call):
            return Clause("NOT", self._truth(node), (), None, (self.part(node.item),))
        if isinstance(node, IsTruth):
            return Clause(f"IS {str(node.wanted).upper()}", self._truth(node), (), None, (self.part(node.item),))
        call = node.item if isinstance(node, Not) else node
        if isinstance(call, Call):
            rows = self.found[call]
            truth = None if rows is None else bool(rows) is not isinstance(node, Not)
            return Clause(print_expression(node), truth, (), self.notes[call])
        names = dict.fromkeys(
            leaf.name for each, _ in predicates(node) for leaf in leaves(each) if isinstance(leaf, Variable)
        )
        if not names:
            return explain(node, self.event, self.schema, self.limits).tree
        return Clause(print_expression(node), self._truth(node), (), self._values(tuple(names)))

    def _truth(self, node: Expression) -> bool | None:
        """The truth of a part by itself: true if some binding makes it true, false if some makes it false."""
        if self._is_possible(node):
            return True
        return False if self._is_possible(Not(node)) else None

    def _is_possible(self, node: Expression) -> bool:
        """Whether a part can be true: with the calls that bind its variables, wherever those stand."""
        own = {leaf.name for each, _ in predicates(node) for leaf in leaves(each) if isinstance(leaf, Variable)}
        inside = set(calls(node))
        binding = [
            call
            for call in self.found
            if call not in inside and any(isinstance(each, Variable) and each.name in own for each in call.arguments)
        ]
        whole = And((node, *binding)) if binding and not isinstance(node, And) else node
        if isinstance(node, And) and binding:
            whole = And((*node.items, *binding))
        return substitution(whole, self.event, self.found, self.schema) is not None

    def _values(self, names: tuple[str, ...]) -> str:
        """The values that variables have, or may have."""
        if self.bound is not None:
            known = [f"?{name} = {show(self.bound[name])}" for name in names if name in self.bound]
            return ", ".join(known) if known else "no operator bound it"
        told = []
        for name in names:
            values: dict[str, None] = {}
            for call, rows in self.found.items():
                variables = [each.name for each in call.arguments if isinstance(each, Variable)]
                if name in variables and isinstance(rows, Sequence):
                    values.update(dict.fromkeys(show(row[variables.index(name)]) for row in rows))
            shown = ", ".join(list(values)[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")
            told.append(f"?{name} is {'one of ' * (len(values) > 1)}{shown}" if values else f"nothing bound ?{name}")
        return ", ".join(told)
