"""Signatures of operators, against which the texts of subscriptions are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harken.schema.values import Kind, Value


@dataclass(frozen=True, slots=True)
class OperatorParameter:
    """One argument of an operator."""

    name: str
    kind: Kind | None = None
    """Required kind of a constant or an attribute; None: any kind."""
    may_be_free: bool = False
    """Whether it may be a variable, which the operator then binds."""
    is_optional: bool = False
    check: Callable[[Value], object] | None = None
    """Raises HarkenError or ValueError for a constant that the operator cannot use."""


@dataclass(frozen=True, slots=True)
class OperatorSignature:
    """How texts call an operator."""

    name: str
    parameters: tuple[OperatorParameter, ...]
    reads: tuple[str, ...] | None = None
    """The attributes passed to the operator; None: the whole event."""

    @property
    def least(self) -> int:
        return sum(not parameter.is_optional for parameter in self.parameters)

    def __str__(self) -> str:
        """As a text calls it: `near(place, ?distance)`."""
        shown = [f"?{parameter.name}" if parameter.may_be_free else parameter.name for parameter in self.parameters]
        return f"{self.name}({', '.join(shown)})"


Signatures = Mapping[str, OperatorSignature]
"""The operators that texts may call, by name."""
NO_SIGNATURES: Signatures = {}
