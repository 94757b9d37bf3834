"""The functions of the language: parameters, and the kind of the result.

`startswith`, `endswith` and `contains` are not here: they are parsed as LIKE.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network

from harken.schema.values import Kind, Value

_ANY = frozenset(Kind)
_NUMBER = frozenset({Kind.NUMBER})
_STRING = frozenset({Kind.STRING})
_DAY = frozenset({Kind.TIMESTAMP, Kind.DATE})


@dataclass(frozen=True, slots=True)
class Parameter:
    """What an argument has to be."""

    name: str
    kinds: frozenset[Kind]
    """The kinds that it may have."""
    is_constant: bool = False
    """Whether it has to be a constant."""
    is_attribute: bool = False
    """Whether it has to be an attribute: the function reads the whole set of its values."""


@dataclass(frozen=True, slots=True)
class Signature:
    """How a function is called."""

    parameters: tuple[Parameter, ...]
    """Those beyond `least` may be left out; the last one may be repeated up to `most`."""
    least: int
    most: int | None
    """None: any number."""
    result: Kind | None
    """None: the kind of the arguments, which are all of one kind."""

    def parameter(self, place: int) -> Parameter:
        """The parameter of the argument at a place, from 0."""
        return self.parameters[min(place, len(self.parameters) - 1)]


def _signature(
    result: Kind | None, *parameters: Parameter, least: int | None = None, endless: bool = False
) -> Signature:
    most = None if endless else len(parameters)
    return Signature(parameters, len(parameters) if least is None else least, most, result)


_TEXT = Parameter("text", _STRING)
_X = Parameter("number", _NUMBER)
_WHEN = Parameter("timestamp", _DAY)

FUNCTIONS: dict[str, Signature] = {
    "lower": _signature(Kind.STRING, _TEXT),
    "upper": _signature(Kind.STRING, _TEXT),
    "trim": _signature(Kind.STRING, _TEXT),
    "length": _signature(Kind.NUMBER, _TEXT),
    "substring": _signature(
        Kind.STRING,
        _TEXT,
        Parameter("position", _NUMBER, is_constant=True),
        Parameter("length", _NUMBER, is_constant=True),
        least=2,
    ),
    "coalesce": _signature(None, Parameter("value", _ANY), endless=True),
    "abs": _signature(Kind.NUMBER, _X),
    "round": _signature(Kind.NUMBER, _X, Parameter("digits", _NUMBER, is_constant=True), least=1),
    "floor": _signature(Kind.NUMBER, _X),
    "ceil": _signature(Kind.NUMBER, _X),
    "size": _signature(Kind.NUMBER, Parameter("array", _ANY, is_attribute=True)),
    "year": _signature(Kind.NUMBER, _WHEN),
    "month": _signature(Kind.NUMBER, _WHEN),
    "day": _signature(Kind.NUMBER, _WHEN),
    "hour": _signature(Kind.NUMBER, Parameter("timestamp", frozenset({Kind.TIMESTAMP}))),
    "dayofweek": _signature(Kind.NUMBER, _WHEN),
    "cidr_contains": _signature(
        Kind.BOOLEAN, Parameter("network", _STRING, is_constant=True), Parameter("address", _STRING)
    ),
}
"""By name in lower case."""

ALIASES: dict[str, str] = {
    "substr": "substring",
    "ceiling": "ceil",
    "lcase": "lower",
    "ucase": "upper",
    "char_length": "length",
    "character_length": "length",
    "dayofmonth": "day",
}
"""Spark's synonyms, each with the name in `FUNCTIONS`, which the parser uses."""


def constant_fault(name: str, place: int, value: Value) -> tuple[str, str | None] | None:
    """What is wrong with a constant as the argument of a function at a place, with a hint; None if nothing is."""
    if name == "cidr_contains" and place == 0:
        return _network_fault(str(value))
    if name in ("substring", "round") and place > 0:
        parameter = FUNCTIONS[name].parameter(place).name
        if type(value) is not int:
            return f"the {parameter} that `{name}` takes is an integer", None
        if not -(2**31) <= value < 2**31:
            return f"the {parameter} that `{name}` takes has at most 32 bits", None
        if parameter == "length" and value < 0:
            return f"the {parameter} that `{name}` takes is not negative", None
    return None


def _network_fault(text: str) -> tuple[str, str | None] | None:
    try:
        ip_network(text)
    except ValueError:
        try:
            hint = f"write '{ip_network(text, strict=False)}'"
        except ValueError:
            hint = "write it as '10.0.0.0/8' or '2001:db8::/32'"
        return f"'{text:.60}' is not a network", hint
    return None
