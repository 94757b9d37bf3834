"""The decorator that makes an operator of a function, and what an operator states about itself."""

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
    """What arrives at an argument that is a variable in the text: the operator is to bind it."""

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
_TAKEN = frozenset(("contains", "startswith", "endswith", "rlike", "regexp", "regexp_like", "xpath_boolean"))
"""Names of the language that are no functions of it."""
Batched = Literal[False, "arrow", "lists"]


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """A function that decides predicates, and what is known of it. `harken.operator` makes one."""

    function: Callable[..., Any]
    signature: OperatorSignature
    cost: float | None = None
    """What one evaluation takes, in milliseconds; None: it is measured."""
    selectivity: float = 0.5
    """How likely a predicate of it holds, as long as nothing is learnt."""
    is_deterministic: bool = True
    """Whether what it reads and its arguments always give the same answer: equal ones of a batch are then one call."""
    batched: Batched = False
    """Whether it takes many events at once: columns of Arrow, or lists."""
    is_thread_safe: bool = False
    is_async: bool = False
    timeout: float | None = None
    """Seconds after which a call has failed."""
    retries: int = 0
    """How often a call that failed is made again, each time after twice as long."""
    most_failures: int = 5
    """Failures in a row after which it is not called any more, for `pause` seconds."""
    pause: float = 30.0

    @property
    def name(self) -> str:
        return self.signature.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself: an operator can be tested like any other function."""
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

    Its first argument is the event, a mapping; with `reads` it has only these attributes, as they came. The others are
    those of the predicate; one whose default is `harken.FREE` may be a variable. It returns truth or, where variables
    are to be bound, all their bindings: values, or tuples where several are. `cost` is in milliseconds, and measured
    if it is not given. `checks` has, by the name of an argument, what raises ValueError for a constant that makes no
    sense: who subscribes with it is told.

    A `batched` operator is called with many events at once: a table and columns of Arrow, or lists, and answers in
    kind. A coroutine function is awaited; with `thread_safe` calls of one batch go to several threads. A call that
    raises, or takes longer than `timeout` seconds, is made again up to `retries` times; then its predicate is unknown
    for that event. After `most_failures` in a row the operator is left alone for `pause` seconds.
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
        raise OperatorError(f"{name!r} is no name of an operator", hint="give it one: @harken.operator(name='near')")
    hint = "give it another one: @harken.operator(name=…)"
    if name.lower() in FUNCTIONS or name.lower() in _TAKEN:
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
    """What the predicates of a function take: its parameters behind the event."""
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):  # annotations that only a type checker can follow
        hints = {}
    given = list(inspect.signature(function).parameters.values())
    if not given:
        hint = f"def {name}(event, …): the event is the first argument"
        raise OperatorError(f"the operator `{name}` takes no event", hint=hint)
    found = []
    for each in given[1:]:
        if each.kind not in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            raise OperatorError(f"the operator `{name}` has the argument `{each}`: only plain ones can be called for")
        is_free = each.default is FREE
        is_optional = each.default is not each.empty and not is_free
        kind, check = _KINDS.get(hints.get(each.name)), checks.get(each.name)
        found.append(OperatorParameter(each.name, kind, is_free, is_optional, check))
    for unknown in set(checks) - {each.name for each in found}:
        raise OperatorError(f"the operator `{name}` has no argument `{unknown}` to check")
    return tuple(found)
