"""How `help()` and editors see the methods of clients, which are made from flows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

M = TypeVar("M", bound=Callable[..., Any])


def presented(flow: Callable[..., Any], result: str) -> Callable[[M], M]:
    """Give a method the name, the docstring and the arguments of its flow.

    `result` is what the method returns, with {} for what the flow returns.
    """

    def present(method: M) -> M:
        signature = inspect.signature(flow)
        first, *rest = signature.parameters.values()
        itself = first.replace(name="self", annotation=inspect.Parameter.empty)
        returned = str(signature.return_annotation).partition("[")[2].removesuffix("]")
        shown: Any = wraps(flow)(method)
        shown.__signature__ = signature.replace(parameters=[itself, *rest], return_annotation=result.format(returned))
        return method

    return present
