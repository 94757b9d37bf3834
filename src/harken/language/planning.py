"""Which kind of index takes a subscription: rows, or programs where rows would be too many or inexact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from harken.errors import LimitError
from harken.language.compiled import FlatPlan, Plan, ProgramPlan
from harken.language.normalise import Template
from harken.language.residuals import LikeResidual, RLikeResidual, XPathResidual
from harken.language.trees import Tree, leaves_of
from harken.limits import Limits
from harken.schema import Value

_MANY = 64
"""Number of conjunctions above which a program is faster than rows."""


def plan_of(template: Template, constants: Sequence[Value], limits: Limits) -> Plan:
    """The plan of a text. Raises ContradictionError, and LimitError if even its tree is too large."""
    if template.has_residuals:
        tree = template.tree(constants)
        if _has_patterns(tree):
            return ProgramPlan(tree, lambda: template.fill(constants, limits), _reads_documents(tree))
    try:
        return FlatPlan(template.fill(constants, _few(limits)))
    except LimitError as error:
        if error.limit != "max_conjunctions":
            raise
        tree = template.tree(constants)
        return ProgramPlan(tree, lambda: template.fill(constants, limits), _reads_documents(tree))


@cache
def _few(limits: Limits) -> Limits:
    return replace(limits, max_conjunctions=min(_MANY, limits.max_conjunctions))


def _reads_documents(tree: Tree) -> bool:
    return any(isinstance(leaf, XPathResidual) for leaf in leaves_of(tree))


def _has_patterns(tree: Tree) -> bool:
    return any(isinstance(leaf, LikeResidual | RLikeResidual | XPathResidual) for leaf in leaves_of(tree))
