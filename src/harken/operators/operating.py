"""The operators of an engine, the order in which it evaluates them, and their callers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harken.errors import CapabilityError, did_you_mean
from harken.limits import DEFAULT_LIMITS, Limits
from harken.operators.calling import Caller
from harken.operators.operator import Operator
from harken.operators.sets import OperatorSet, operators_of

ORDERS = ("adaptive", "suborder", "sequential", "naive")
"""Orders in which predicates are evaluated, the default first."""


@dataclass(frozen=True, slots=True)
class Operating:
    """Operators by name, the order of evaluation, and a caller for each operator."""

    operators: OperatorSet = field(default_factory=OperatorSet)
    order: str = ORDERS[0]
    callers: dict[str, Caller] = field(default_factory=dict)
    limits: Limits = DEFAULT_LIMITS

    @classmethod
    def of(cls, given: Iterable[Operator | str], order: str, limits: Limits = DEFAULT_LIMITS) -> Operating:
        """Make callers for operators. Raises OperatorError, and CapabilityError if there is no such order."""
        if order not in ORDERS:
            hint = did_you_mean(order, ORDERS) or f"there are {', '.join(ORDERS)}"
            raise CapabilityError(f"there is no order `{order}`", hint=hint)
        operators = operators_of(given)
        return cls(operators, order, {name: Caller(each, limits) for name, each in operators.items()}, limits)

    def within(self, limits: Limits) -> Operating:
        """The same operators and order with other limits. Equal limits return self, with its counts."""
        return self if limits == self.limits else Operating.of(self.operators, self.order, limits)

    def stats(self) -> dict[str, Any]:
        """The counts and the cost of each operator."""
        return {name: {**each.stats(), "cost": round(each.cost, 6)} for name, each in self.callers.items()}


NOTHING_TO_OPERATE = Operating()
