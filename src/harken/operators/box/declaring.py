"""How operators in the box are declared: they take columns with a value for each event, and events fail one by one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from harken.errors import OperatorError, did_you_mean, in_backticks
from harken.operators.operator import FREE, Operator, operator
from harken.schema.signatures import OperatorParameter

NEVER = sys.maxsize
"""For `most_failures`: operators that call no service are never paused, because their failures come from events."""


def declared(
    name: str, function: Callable[..., list[Any]], *parameters: OperatorParameter, **policies: Any
) -> Operator:
    """An operator that takes lists. Its parameters are stated: a signature of lists has no kinds of values."""
    bare = operator(name=name, reads=(), batched="lists", **policies)(_no_parameters)
    return replace(bare, function=function, signature=replace(bare.signature, parameters=parameters))


def rows_of(events: Sequence[Any], *columns: Any) -> Iterable[tuple[Any, ...]]:
    """The arguments of each event. An argument that is a variable is FREE in each."""
    return zip(*[[FREE] * len(events) if column is FREE else column for column in columns], strict=True)


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns for one event, or `failing` if it raises OperatorError."""
    try:
        return function(*arguments)
    except OperatorError as error:
        return failing(error)


def failing(error: OperatorError) -> Iterator[Any]:
    """An answer that raises when it is read, so that one event fails and the rest of the batch does not."""
    raise error
    yield


def unknown(what: str, name: Any, known: Iterable[str]) -> OperatorError:
    """The error for an unknown name. Its message has the similar names, because errors of events show no hints."""
    if not isinstance(name, str):
        return OperatorError(f"a {what} is named by a string, not by {name!r:.40}")
    names = list(known)
    near = did_you_mean(name, names) or did_you_mean(name, names, case_sensitive=False)
    return OperatorError(f"there is no {what} {in_backticks(f'{name:.60}')}{f': {near}' if near else ''}")


def _no_parameters(events: Any) -> list[Any]:
    raise NotImplementedError
