"""The operators of an engine: each an `Operator`, "module:name", or the name of an entry point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from harken.announced import Announced, imported, target_of
from harken.errors import OperatorError
from harken.operators.operator import Operator
from harken.schema.signatures import Signatures

ANNOUNCED: Announced[str] = Announced("harken.operators", {}, target_of)
"""Operators that packages announce, each as "module:name"."""


class OperatorSet(Mapping[str, Operator]):
    """Operators by name."""

    __slots__ = ("_operators", "signatures")

    def __init__(self, operators: Iterable[Operator] = ()) -> None:
        self._operators: dict[str, Operator] = {}
        for each in operators:
            if self._operators.setdefault(each.name, each) is not each:
                raise OperatorError(f"two operators are called `{each.name}`")
        self.signatures: Signatures = {name: each.signature for name, each in self._operators.items()}

    def __getitem__(self, name: str) -> Operator:
        return self._operators[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._operators)

    def __len__(self) -> int:
        return len(self._operators)

    def reads(self) -> frozenset[str] | None:
        """The attributes that operators are passed; None if an operator is passed the whole event."""
        names: set[str] = set()
        for each in self._operators.values():
            if each.signature.reads is None:
                return None
            names.update(each.signature.reads)
        return frozenset(names)


def operators_of(given: Iterable[Operator | str]) -> OperatorSet:
    """Operators by name, from operators, "module:name" and names of entry points. Raises OperatorError."""
    if isinstance(given, OperatorSet):
        return given
    if isinstance(given, str | Operator):
        given = [given]
    return OperatorSet([operator for each in given for operator in _loaded(each)])


def _loaded(given: Operator | str) -> list[Operator]:
    if isinstance(given, Operator):
        return [given]
    if not isinstance(given, str):
        hint = "decorate it: @harken.operator"
        raise OperatorError(f"{given!r:.60} is no operator", hint=hint if callable(given) else None)
    if ":" not in given:
        if given not in ANNOUNCED:
            hint = ANNOUNCED.hint(given) or 'write "module:name", or install the package that has it'
            raise OperatorError(f"no installed package has an operator `{given}`", hint=hint)
        target = ANNOUNCED[given]
    else:
        target = given
    try:
        value = imported(target)
    except (ImportError, AttributeError) as problem:
        raise OperatorError(f"the operator `{given}` cannot be loaded: {problem}") from problem
    if isinstance(value, OperatorSet):
        return list(value.values())
    operators = list(value) if isinstance(value, list | tuple) else [value]
    for each in operators:
        if not isinstance(each, Operator):
            raise OperatorError(f"`{given}` is no operator, but a {type(each).__name__}", hint="@harken.operator")
    return operators
