"""Capabilities: what subscriptions require of a matcher, by name."""

from __future__ import annotations

from enum import StrEnum

from harken.language.intervals import Intervals, Line
from harken.language.normal_form import Conjunction, Constraint, NormalForm, Presence, line_of
from harken.language.trees import Constrained, Tree, has_alternatives, leaves_of
from harken.schema.derived import is_comparison, is_derived, reading


class Capability(StrEnum):
    """What a subscription may require of a matcher. A matcher that lacks one rejects the subscription by name."""

    EQUALITY = "equality"
    RANGE = "range"
    VALUE_SET = "several intervals"
    DISJUNCTION = "disjunction"
    PRESENCE = "is null"
    PATTERN = "like"
    XPATH = "xpath"
    CONTAINS = "contains"
    ATTRIBUTE_COMPARISON = "attribute with attribute"
    FUNCTION = "functions"
    DOMAIN_ORDER = "hierarchies and partial orders"


def required_capabilities(form: NormalForm) -> frozenset[Capability]:
    """The capabilities that a subscription of this normal form requires."""
    required: set[Capability] = set()
    if len(form.conjunctions) > 1:
        required.add(Capability.DISJUNCTION)
    for conjunction in form.conjunctions:
        required |= _required_by(conjunction)
    return frozenset(required)


def capabilities_of_tree(tree: Tree) -> frozenset[Capability]:
    """The capabilities that a subscription of this tree requires."""
    required: set[Capability] = set()
    for leaf in leaves_of(tree):
        if isinstance(leaf, Constrained):
            required |= _required_by(Conjunction(((leaf.path, leaf.constraint),)))
        else:
            required |= _required_by(Conjunction((), (leaf,)))
    if has_alternatives(tree):
        required.add(Capability.DISJUNCTION)
    return frozenset(required)


def _required_by(conjunction: Conjunction) -> set[Capability]:
    required = {residual.capability for residual in conjunction.residuals}
    for path, constraint in conjunction.constraints:
        if is_comparison(path):
            required.add(Capability.ATTRIBUTE_COMPARISON)
        else:
            required |= _required_by_constraint(constraint)
    derived = (path for path in conjunction.asked() if is_derived(path))
    if not all(is_comparison(path) or reading(path) is not None for path in derived):
        required.add(Capability.FUNCTION)
    return required


def _required_by_constraint(constraint: Constraint) -> set[Capability]:
    if isinstance(constraint, Presence):
        return {Capability.PRESENCE}
    domain = constraint.domain or constraint.integers
    required = {_required_by_set(admitted, line_of(kind, domain)) for kind, admitted in constraint.parts}
    if len(constraint.parts) > 1:
        required.add(Capability.VALUE_SET)
    if constraint.domain is not None and required != {Capability.EQUALITY}:
        required.add(Capability.DOMAIN_ORDER)
    return required


def _required_by_set(admitted: Intervals, line: Line) -> Capability:
    if line.is_point(admitted):
        return Capability.EQUALITY
    pieces = (len(admitted.cuts) + admitted.inside + 1) // 2
    return Capability.VALUE_SET if pieces > 1 else Capability.RANGE
