"""Operands as texts of derived attributes, with holes for the constants of the subscription."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harken.errors import UnavailableError
from harken.language.ast import Arithmetic, Attribute, Constant, Function, Operand, Variable, leaves
from harken.schema import Domain, EnumeratedDomain, HierarchicalDomain, Kind, Value
from harken.schema.derived import constant_of_text, derived_path, of_attribute, of_constant, of_order
from harken.schema.paths import Path

Constants = Sequence[Value]


class Term:
    """An operand, not a constant, as the text of a derived attribute."""

    __slots__ = ("parts", "path")

    def __init__(self, parts: Sequence[str | int]) -> None:
        self.parts = joined(parts)
        """Pieces of text and, between them, indices of constants."""
        is_fixed = all(isinstance(each, str) for each in self.parts)
        self.path: Path | None = derived_path(str(self.parts[0])) if is_fixed else None
        """The path, if it does not depend on constants."""

    def text(self, constants: Constants) -> str:
        return "".join([each if isinstance(each, str) else of_constant(constants[each]) for each in self.parts])

    def path_of(self, constants: Constants) -> Path:
        return self.path or derived_path(self.text(constants))

    def value(self, constants: Constants) -> Value | None:
        """The value of a term without attributes."""
        value: Value | None = constant_of_text(self.text(constants))
        return value

    @property
    def shape(self) -> str:
        """The text without constants."""
        return "".join([each for each in self.parts if isinstance(each, str)])

    def inside(self, function: str) -> Term:
        """The term of a function of this one."""
        return Term([f'["{function}",', *self.parts, "]"])

    def lacking(self, kinds: Sequence[Kind]) -> Term:
        """The term of whether this one has no value of these kinds."""
        return Term(['["lacks",', *self.parts, *(f',"{kind}"' for kind in kinds), "]"])


def term(operand: Operand, holes: Mapping[int, int]) -> Term:
    """The term of an operand; `holes` has the indices of constants, by the identity of their nodes."""
    return Term(_parts(operand, holes))


def has_attributes(operand: Operand) -> bool:
    """Whether the value of an operand depends on the event. Raises UnavailableError for a variable."""
    if isinstance(operand, Attribute | Constant):
        return isinstance(operand, Attribute)
    operands = list(leaves(operand))
    if any(isinstance(leaf, Variable) for leaf in operands):
        raise UnavailableError("variables are not available")
    return any(isinstance(leaf, Attribute) for leaf in operands)


def comparing(left: Term, right: Term, domain: Domain | None) -> tuple[Term, bool]:
    """The term of how two terms compare, and whether they were swapped: `a < b` and `b > a` share one attribute."""
    is_swapped = left.shape > right.shape
    first, second = (right, left) if is_swapped else (left, right)
    order = "" if domain is None else "," + _order(domain)
    return Term(['["compare",', *first.parts, ",", *second.parts, order, "]"]), is_swapped


def _order(domain: Domain) -> str:
    if isinstance(domain, HierarchicalDomain):
        return of_order(domain.values, [(value, parent) for value, parent in domain.parents if parent is not None])
    assert isinstance(domain, EnumeratedDomain), f"{domain!r} has no order of its own"
    return of_order(domain.values, domain.order)


def joined(parts: Sequence[str | int]) -> list[str | int]:
    """The parts with adjacent pieces of text joined."""
    merged: list[str | int] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, str) and isinstance(last, str):
            merged[-1] = last + part
        else:
            merged.append(part)
    return merged


def _parts(operand: Operand, holes: Mapping[int, int]) -> list[str | int]:
    match operand:
        case Attribute(path=path):
            return [of_attribute(path)]
        case Constant():
            return [holes[id(operand)]]
        case Arithmetic(left=left, operator=operator, right=right):
            return _call(operator, (left, right), holes)
        case Function(name=name, arguments=arguments):
            return _call(name, arguments, holes)
        case Variable():
            raise UnavailableError("variables are not available")


def _call(name: str, arguments: Sequence[Operand], holes: Mapping[int, int]) -> list[str | int]:
    parts: list[str | int] = [f'["{name}"']
    for argument in arguments:
        parts += [",", *_parts(argument, holes)]
    return [*parts, "]"]
