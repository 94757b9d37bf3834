"""A property that is computed once and cached, without a lock.

`functools.cached_property` of Python 3.11 has one lock for all instances of a class: threads wait for each other, and a
child of `fork()` waits forever if another thread held the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 -- named like `property`
    """A method without arguments as an attribute, computed on the first read.

    Threads that read it concurrently may each compute it; all get the value that was ready first.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.func = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self.func(instance))
        return value
