"""The decorator that makes an operator of a function, and the properties that an operator states."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, get_type_hints, overload

from harken.errors import OperatorError, ParseError
from harken.language.ast import Call
from harken.language.functions import FUNCTIONS
from harken.language.sql.parser import parse
from harken.schema.signatures import OperatorParameter, OperatorSignature
from harken.schema.values import Kind


class Free:
    """Passed for an argument that is a variable in the text, which the operator binds."""

    _only: Free | None = None

    def __new__(cls) -> Free:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "harken.FREE"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "FREE"  # the same object in every process


FREE: Any = Free()

_KINDS: dict[Any, Kind] = {
    str: Kind.STRING,
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    bool: Kind.BOOLEAN,
    datetime: Kind.TIMESTAMP,
    date: Kind.DATE,
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(("contains", "startswith", "endswith", "rlike", "regexp", "regexp_like", "xpath_boolean"))
"""Names of predicates of the language, which `FUNCTIONS` does not have."""
Batched = Literal[False, "arrow", "lists"]


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """A function that decides predicates, with its properties. `harken.operator` makes one."""

    function: Callable[..., Any]
    signature: OperatorSignature
    cost: float | None = None
    """Milliseconds of one evaluation; None: measured."""
    selectivity: float = 0.5
    """The share of events for which a predicate holds, until it is measured."""
    is_deterministic: bool = True
    """Whether equal events and arguments give equal answers: equal ones of a batch are then evaluated once."""
    batched: Batched = False
    """Whether a call takes many events: as columns of Arrow, or as lists."""
    is_thread_safe: bool = False
    is_async: bool = False
    timeout: float | None = None
    """Seconds after which a call has failed."""
    retries: int = 0
    """How often a call that failed is made again, each time after twice the wait."""
    most_failures: int = 5
    """Failures in a row after which the operator is not called for `pause` seconds."""
    pause: float = 30.0

    @property
    def name(self) -> str:
        return self.signature.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, so that an operator can be tested like any other function."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Operator {self.signature}>"


@overload
def operator(function: Callable[..., Any], /) -> Operator: ...
@overload
def operator(
    *,
    name: str | None = None,
    cost: float | None = None,
    selectivity: float = 0.5,
    reads: tuple[str, ...] | None = None,
    deterministic: bool = True,
    batched: bool | Literal["arrow", "lists"] = False,
    thread_safe: bool = False,
    timeout: float | None = None,
    retries: int = 0,
    most_failures: int = 5,
    pause: float = 30.0,
    checks: Mapping[str, Callable[[Any], object]] | None = None,
) -> Callable[[Callable[..., Any]], Operator]: ...
def operator(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    cost: float | None = None,
    selectivity: float = 0.5,
    reads: tuple[str, ...] | None = None,
    deterministic: bool = True,
    batched: bool | Literal["arrow", "lists"] = False,
    thread_safe: bool = False,
    timeout: float | None = None,
    retries: int = 0,
    most_failures: int = 5,
    pause: float = 30.0,
    checks: Mapping[str, Callable[[Any], object]] | None = None,
) -> Operator | Callable[[Callable[..., Any]], Operator]:
    """Make an operator of a function: `near(event, place: str, distance=harken.FREE)`.

    The first argument of the function is the event, a mapping; with `reads` it has only these attributes, unchanged.
    Further arguments are those of the predicate; one whose default is `harken.FREE` may be a variable. The function
    returns whether the predicate holds or, if arguments are variables, all their bindings: values, or tuples for
    several variables. `cost` is in milliseconds, and measured if it is None. `checks` has functions by the name of an
    argument: if one raises ValueError for a constant, the subscription is rejected with its message.

    A `batched` operator takes many events in one call and returns as many answers: `True` or "arrow" for a table and
    columns of Arrow, "lists" for lists. A coroutine function is awaited; with `thread_safe` calls of one batch run in
    several threads. A call that raises, or takes longer than `timeout` seconds, is made again up to `retries` times;
    then the predicate is unknown for that event. After `most_failures` failures in a row the operator is not called for
    `pause` seconds.
    """

    def made(decorated: Callable[..., Any]) -> Operator:
        own = str(name or getattr(decorated, "__name__", ""))
        _check_name(own)
        for what, value, least in (
            ("cost", cost, 0.0),
            ("timeout", timeout, 0.0),
            ("retries", retries, -1),
            ("most_failures", most_failures, 0),
        ):
            if value is not None and not value > least:
                raise OperatorError(f"the {what} of the operator `{own}` cannot be {value}")
        if not 0.0 <= selectivity <= 1.0:
            raise OperatorError(f"the selectivity of the operator `{own}` is between 0 and 1, not {selectivity}")
        return Operator(
            decorated,
            OperatorSignature(own, _parameters(decorated, own, checks or {}), None if reads is None else tuple(reads)),
            cost,
            selectivity,
            deterministic,
            "arrow" if batched is True else batched,
            thread_safe,
            inspect.iscoroutinefunction(decorated),
            timeout,
            retries,
            most_failures,
            pause,
        )

    return made if function is None else made(function)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise OperatorError(f"{name!r} is no name of an operator", hint="name it: @harken.operator(name='near')")
    hint = "choose another name: @harken.operator(name=…)"
    if name.lower() in FUNCTIONS or name.lower() in _RESERVED:
        raise OperatorError(f"`{name}` is a function of the language already", hint=hint)
    try:
        is_called = parse(f"{name}()") == Call(name, ())
    except ParseError:
        is_called = False
    if not is_called:
        raise OperatorError(f"`{name}` is a word of the language", hint=hint)


def _parameters(
    function: Callable[..., Any], name: str, checks: Mapping[str, Callable[[Any], object]]
) -> tuple[OperatorParameter, ...]:
    """The parameters of a function after the event."""
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):  # annotations that only a type checker can resolve
        hints = {}
    declared = list(inspect.signature(function).parameters.values())
    if not declared:
        hint = f"def {name}(event, …): the event is the first argument"
        raise OperatorError(f"the operator `{name}` takes no event", hint=hint)
    parameters = []
    for each in declared[1:]:
        if each.kind not in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            raise OperatorError(f"the operator `{name}` has the argument `{each}`: arguments must be positional")
        is_free = each.default is FREE
        is_optional = each.default is not each.empty and not is_free
        kind, check = _KINDS.get(hints.get(each.name)), checks.get(each.name)
        parameters.append(OperatorParameter(each.name, kind, is_free, is_optional, check))
    for unknown in set(checks) - {each.name for each in parameters}:
        raise OperatorError(f"the operator `{name}` has no argument `{unknown}` to check")
    return tuple(parameters)
