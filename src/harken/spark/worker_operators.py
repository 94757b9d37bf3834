"""Operators to send to the workers: pickled by value, or by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from typing import Any

from harken.engine import Engine
from harken.errors import OperatorError
from harken.live.saved import saved_algorithms
from harken.matchers.algorithm_registry import takes_option
from harken.operators import ORDERS, Operating, Operator

_BACKGROUND = "background"
"""The option of algorithms that can merge their index in a background thread."""


@dataclass(frozen=True, slots=True)
class WorkerOperators:
    """The operators that subscriptions call, and the order in which their predicates are evaluated."""

    operators: tuple[Operator | str, ...] = ()
    order: str = ORDERS[0]
    token: str = ""
    """Equal for equal operators: a worker reuses an open engine only if its operators have the same token."""

    def engine(self, **options: Any) -> Engine:
        """A new engine with these operators."""
        return Engine(operators=self.operators, order=self.order, **options)

    def loaded(self, path: str | PathLike[str], **options: Any) -> Engine:
        """A saved engine with these operators, and without background merges."""
        if takes_option(saved_algorithms(path).flat, _BACKGROUND):
            options = {_BACKGROUND: False, **options}
        return Engine.load(path, operators=self.operators, order=self.order, **options)


NO_OPERATORS = WorkerOperators()


def worker_operators(
    operators: Iterable[Operator | str], order: str = ORDERS[0], subscriptions: Any = None
) -> WorkerOperators:
    """The operators to send to the workers: these or, if there are none, those of `subscriptions` if it is an engine.

    Raises OperatorError if one cannot be sent.
    """
    chosen = tuple([operators] if isinstance(operators, str | Operator) else operators)
    if not chosen and isinstance(subscriptions, Engine):
        inside = subscriptions.internals
        chosen, order = tuple(inside.operators.values()), inside.order
    if not chosen:
        return NO_OPERATORS
    Operating.of(chosen, order)  # raises errors here rather than in a worker
    from pyspark import cloudpickle

    try:
        content = cloudpickle.dumps((chosen, order))  # type: ignore[no-untyped-call]
    except Exception as problem:
        hint = 'name it as "module:name": then each worker imports it'
        raise OperatorError(f"the operators cannot be sent to the workers: {problem}", hint=hint) from problem
    return WorkerOperators(chosen, order, sha256(content).hexdigest()[:16])
