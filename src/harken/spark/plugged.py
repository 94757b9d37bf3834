"""Operators on their way to the workers: as they are, pickled by value, or by name."""

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
"""The option of algorithms that may merge their index in a thread."""


@dataclass(frozen=True, slots=True)
class Plugged:
    """The operators that subscriptions call, and the order in which they are asked."""

    operators: tuple[Operator | str, ...] = ()
    order: str = ORDERS[0]
    token: str = ""
    """Equal for equal operators: an engine that a worker opened before serves only those."""

    def engine(self, **options: Any) -> Engine:
        """A new engine with them."""
        return Engine(operators=self.operators, order=self.order, **options)

    def loaded(self, path: str | PathLike[str], **options: Any) -> Engine:
        """A saved engine, with them. It merges in no thread of its own."""
        if takes_option(saved_algorithms(path).flat, _BACKGROUND):
            options = {_BACKGROUND: False, **options}
        return Engine.load(path, operators=self.operators, order=self.order, **options)


NO_OPERATORS = Plugged()


def plugged(operators: Iterable[Operator | str], order: str = ORDERS[0], subscriptions: Any = None) -> Plugged:
    """What goes to the workers: these operators or, if there are none, those of an engine that is given.

    Raises OperatorError if one cannot be sent.
    """
    given = tuple([operators] if isinstance(operators, str | Operator) else operators)
    if not given and isinstance(subscriptions, Engine):
        given, order = tuple(subscriptions.operators.values()), subscriptions.order
    if not given:
        return NO_OPERATORS
    Operating.of(given, order)  # what is wrong with them shows here, not in a worker
    from pyspark import cloudpickle

    try:
        content = cloudpickle.dumps((given, order))  # type: ignore[no-untyped-call]
    except Exception as problem:
        hint = 'name it as "module:name": then each worker imports it'
        raise OperatorError(f"the operators cannot be sent to the workers: {problem}", hint=hint) from problem
    return Plugged(given, order, sha256(content).hexdigest()[:16])
