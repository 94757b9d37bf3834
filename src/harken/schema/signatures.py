"""What an operator takes: the signature that the texts of subscriptions are checked against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harken.schema.values import Kind, Value


@dataclass(frozen=True, slots=True)
class OperatorParameter:
    """One argument of an operator."""

    name: str
    kind: Kind | None = None
    """What a constant or an attribute has to be; None is anything."""
    may_be_free: bool = False
    """Whether it may be a variable, which the operator then binds."""
    is_optional: bool = False
    check: Callable[[Value], object] | None = None
    """Raises HarkenError or ValueError for a constant that the operator could do nothing with."""


@dataclass(frozen=True, slots=True)
class OperatorSignature:
    """An operator as texts see it."""

    name: str
    parameters: tuple[OperatorParameter, ...]
    reads: tuple[str, ...] | None = None
    """The attributes that it is passed; None is the whole event."""

    @property
    def least(self) -> int:
        return sum(not each.is_optional for each in self.parameters)

    def __str__(self) -> str:
        """As a text would call it: `near(place, ?distance)`."""
        shown = [f"?{each.name}" if each.may_be_free else each.name for each in self.parameters]
        return f"{self.name}({', '.join(shown)})"


Signatures = Mapping[str, OperatorSignature]
"""The operators that texts may call, by name."""
NO_SIGNATURES: Signatures = {}
