"""The cover of an XPath expression: an indexable expression that is true wherever the expression is.

Conditions that the index cannot decide are dropped, or weakened to what they need: the nodes without which they are
false. An axis that locations do not have is weakened to a location that reaches at least the same nodes, or ends there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import isfinite
from typing import NamedTuple

from harken.language.xpath.ast import (
    FALSE,
    And,
    AxisPath,
    AxisStep,
    Comparison,
    DocumentRoot,
    Exists,
    Expression,
    FilteredNodes,
    Location,
    NodeKind,
    NodeUnion,
    Not,
    Or,
    Step,
    Value,
    ValueComparison,
)
from harken.language.xpath.expression_building import (
    ANYWHERE,
    MIRRORED,
    constant,
    parts_of,
    predicates_of,
    stepped,
)

_ROOT_ALONE = Exists(Location(()))


def cover(expression: Expression) -> Expression:
    """What is indexed of an expression that the index cannot decide. It may be true of every document."""
    return _cover(expression, is_top=True) or _ROOT_ALONE


def is_indexable(value: Value) -> bool:
    """Whether the index decides an expression, or follows a location, exactly."""
    match value:
        case And(items=items) | Or(items=items):
            return all(map(is_indexable, items))
        case Not(item=item):
            return is_indexable(item)
        case Exists(path=path) | Comparison(path=path):
            return is_indexable(path)
        case Location():
            return all(map(is_indexable, predicates_of(value)))
    return False


class _Reach(NamedTuple):
    """A location that covers nodes, and what else is necessary for there to be any."""

    location: Location
    is_wide: bool
    """Whether it reaches all of the nodes. If not, they are only known to be missing if it reaches none."""
    conditions: tuple[Expression, ...] = ()


def _cover(expression: Expression, *, is_top: bool = False) -> Expression | None:
    """A necessary condition in the same context, None for none."""
    match expression:
        case And(items=items):
            return _all([_cover(item, is_top=is_top) for item in items])
        case Or(items=items):
            return _any([_cover(item, is_top=is_top) for item in items if item != FALSE])
        case Not(item=Or(items=items)):
            return _all([Not(item) for item in items if is_indexable(item)])
        case Not(item=item):
            return expression if is_indexable(item) else None
        case Exists(path=path):
            return Exists(_weakened(path))
        case Comparison(path=path, operator=operator, value=value):
            return Comparison(_weakened(path), operator, value)
    compared = dict(_compared(expression, is_top=is_top))
    return _all([*compared.values(), *_needed(expression, is_top=is_top, known=compared)])


def _weakened(path: Location) -> Location:
    """The location with the covers of its predicates."""
    return Location(tuple(_weakened_step(step) for step in path.steps))


def _weakened_step(step: Step) -> Step:
    if not step.predicates:
        return step
    covers = (_cover(each) for each in step.predicates)
    return Step(step.is_descendant, step.kind, step.name, tuple(each for each in covers if each is not None))


def _compared(expression: Expression, *, is_top: bool) -> Iterator[tuple[Value, Expression]]:
    """Nodes that are compared with a constant, and the same comparison of a wider location."""
    if not isinstance(expression, ValueComparison):
        return
    left, operator, right = expression.left, expression.operator, expression.right
    for nodes, sign, other in ((left, operator, right), (right, MIRRORED[operator], left)):
        value = constant(other)
        if isinstance(nodes, AxisPath | FilteredNodes | NodeUnion) and isinstance(value, str | float):
            reaches = [_reach(each, is_top=is_top) for each in _united(nodes)]
            is_finite = not isinstance(value, float) or isfinite(value)
            if is_finite and all(each is not None and each.is_wide for each in reaches):
                wide = [Comparison(each.location, sign, value) for each in reaches if each is not None]
                yield nodes, wide[0] if len(wide) == 1 else Or(tuple(wide))


def _needed(expression: Expression, *, is_top: bool, known: Container[Value]) -> Iterator[Expression]:
    """The existence of each set of nodes without which the expression is false, but for those that are known."""
    for nodes in _sets_of(expression):
        if nodes in known or nodes == _ROOT_ALONE.path or constant(expression, absent=nodes) is not False:
            continue
        reaches = [_reach(each, is_top=is_top) for each in _united(nodes)]
        found = _any([None if each is None else _exists(each) for each in reaches])
        if found is not None:
            yield found


def _exists(reach: _Reach) -> Expression | None:
    """That there is a node within reach. The context node always is."""
    return _all([*reach.conditions, Exists(reach.location) if reach.location.steps else None])


def _sets_of(value: Value) -> Iterator[Value]:
    """The outermost sets of nodes in a value."""
    for part in parts_of(value):
        if isinstance(part, Location | AxisPath | FilteredNodes | NodeUnion):
            yield part
        else:
            yield from _sets_of(part)


def _united(nodes: Value) -> Iterator[Value]:
    if isinstance(nodes, NodeUnion):
        for part in nodes.parts:
            yield from _united(part)
    else:
        yield nodes


def _reach(nodes: Value, *, is_top: bool) -> _Reach | None:
    """A location that covers nodes; None if there is none."""
    match nodes:
        case Location():
            return _Reach(_weakened(nodes), is_wide=True)
        case DocumentRoot() if is_top:
            return _Reach(Location(()), is_wide=True)
        case FilteredNodes(nodes=inner, predicates=predicates):
            reach = _reach(inner, is_top=is_top)
            return reach if reach is None or not reach.is_wide else _filtered(reach, predicates)
        case AxisPath(start=start, steps=steps):
            reach = _reach(start, is_top=is_top)
            return reach if reach is None or not reach.is_wide else _along(reach, steps)
    return None


def _along(reach: _Reach, steps: tuple[AxisStep, ...]) -> _Reach:
    """The reach of steps, as far as locations can follow them."""
    is_far = False
    for place, step in enumerate(steps):
        if step == ANYWHERE:
            is_far = True
            continue
        behind = steps[place + 1 :]
        followed = _sideways(reach, step) if not is_far else None
        followed = followed or _downwards(reach, step, is_far=is_far, has_below=bool(behind) and _leads_down(behind[0]))
        if followed is None:
            return reach._replace(is_wide=False)
        reach, is_far = followed, False
    return reach._replace(is_wide=False) if is_far else reach


def _filtered(reach: _Reach, predicates: tuple[Expression, ...]) -> _Reach:
    """The reach with the covers of predicates on its last step."""
    steps = reach.location.steps
    kept = [_cover(each) for each in predicates]
    added = tuple(each for each in kept if each is not None)
    if not steps or not added:
        return reach
    last = steps[-1]
    last = Step(last.is_descendant, last.kind, last.name, (*last.predicates, *added))
    return reach._replace(location=Location((*steps[:-1], last)))


def _sideways(reach: _Reach, step: AxisStep) -> _Reach | None:
    """The reach of a step to a parent or to siblings from the end of a child step, which becomes a predicate."""
    steps = reach.location.steps
    is_sibling = step.axis in ("following-sibling", "preceding-sibling")
    if not (is_sibling or step.axis == "parent") or not steps:
        return None
    if steps[-1].is_descendant or steps[-1].kind is NodeKind.ATTRIBUTE:
        return None
    needed = Exists(Location(steps[-1:]))
    if len(steps) > 1:
        above = _filtered(_Reach(Location(steps[:-1]), True, reach.conditions), (needed,))
    else:
        above = _Reach(Location(()), True, (*reach.conditions, needed))
    if not is_sibling:
        return _filtered(above, step.predicates)
    below = _downwards(above, AxisStep("child", step.kind, step.name, step.predicates), is_far=False, has_below=False)
    return below or above._replace(is_wide=False)


def _downwards(reach: _Reach, step: AxisStep, *, is_far: bool, has_below: bool) -> _Reach | None:
    """The reach of a step that locations have, or of a wider one."""
    kind = NodeKind.ELEMENT if step.kind is None and has_below else step.kind
    if kind is None or step.axis not in ("child", "descendant", "attribute"):
        return None
    name = None if (step.name or "").endswith("}*") else step.name
    start = stepped(reach.location, ANYWHERE) if is_far else reach.location
    below = stepped(start, AxisStep(step.axis, kind, name))
    if not isinstance(below, Location):
        return None
    return _filtered(_Reach(below, True, reach.conditions), step.predicates)


def _leads_down(step: AxisStep) -> bool:
    """Whether a step starts at elements only, unless it starts at the root."""
    return step.axis in ("child", "attribute", "descendant")


def _all(covers: list[Expression | None]) -> Expression | None:
    kept = list(dict.fromkeys(each for each in covers if each is not None))
    return And(tuple(kept)) if len(kept) > 1 else kept[0] if kept else None


def _any(covers: list[Expression | None]) -> Expression | None:
    if not covers or None in covers:
        return None
    kept = list(dict.fromkeys(each for each in covers if each is not None))
    return Or(tuple(kept)) if len(kept) > 1 else kept[0]
