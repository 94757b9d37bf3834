"""How operators in the box are declared: they take columns, one value a row, and a row that fails does so alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from harken.errors import OperatorError, did_you_mean, in_backticks
from harken.operators.operator import FREE, Operator, operator
from harken.schema.signatures import OperatorParameter

NEVER = sys.maxsize
"""Failures in a row after which an operator without a service behind it is left alone: its failures are an event's."""


def declared(
    name: str, function: Callable[..., list[Any]], *parameters: OperatorParameter, **policies: Any
) -> Operator:
    """An operator of columns. Its parameters are stated, because a text gives it values where it takes lists."""
    bare = operator(name=name, reads=(), batched="lists", **policies)(_no_parameters)
    return replace(bare, function=function, signature=replace(bare.signature, parameters=parameters))


def rows_of(events: Sequence[Any], *columns: Any) -> Iterable[tuple[Any, ...]]:
    """Columns as rows. A column that is a variable is FREE in each."""
    return zip(*[[FREE] * len(events) if column is FREE else column for column in columns], strict=True)


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer for one row; one that fails when it is read, where the function raises OperatorError."""
    try:
        return function(*arguments)
    except OperatorError as error:
        return failing(error)


def failing(error: OperatorError) -> Iterator[Any]:
    """An answer that raises when it is read: its row fails, and the rest of the batch goes on."""
    raise error
    yield


def unknown(what: str, name: Any, known: Iterable[str]) -> OperatorError:
    """There is no such thing; near misses are in the message, which is all that an event's errors show."""
    if not isinstance(name, str):
        return OperatorError(f"a {what} is named by a string, not by {name!r:.40}")
    names = list(known)
    near = did_you_mean(name, names) or did_you_mean(name, names, case_sensitive=False)
    return OperatorError(f"there is no {what} {in_backticks(f'{name:.60}')}{f': {near}' if near else ''}")


def _no_parameters(events: Any) -> list[Any]:
    raise NotImplementedError
