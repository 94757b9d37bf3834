"""Registries of names: Harken's own, and those that installed packages announce by entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harken.errors import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

LABORATORY = "harken-lab"
"""The distribution with the papers' algorithms, workloads and benchmarks."""


class Announced(MutableMapping[str, T], Generic[T]):
    """Values by name: Harken's own first, then those that packages announce in a group of entry points.

    Entry points are read when a name is looked up that is not Harken's own, or when all names are listed.
    """

    def __init__(self, group: str, own: Mapping[str, T], read: Callable[[EntryPoint], T], laboratory: str = "") -> None:
        """`laboratory`: the names that the laboratory announces if it is installed, separated by spaces."""
        self._group, self._read = group, read
        self.laboratory = tuple(laboratory.split())
        self._values = dict(own)
        self._entries: dict[str, EntryPoint] | None = None

    def __getitem__(self, name: str) -> T:
        return self._values[name] if name in self._values else self._read(self._announced()[name])

    def __setitem__(self, name: str, value: T) -> None:
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        entry = self._announced().pop(name, None)
        if self._values.pop(name, None) is None and entry is None:
            raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._announced()

    def __iter__(self) -> Iterator[str]:
        others = self._announced()
        return iter([*self._values, *(name for name in others if name not in self._values)])

    def __len__(self) -> int:
        return len(self._values.keys() | self._announced().keys())

    def hint(self, name: str) -> str | None:
        """A hint for an unknown name: the package to install, or similar names."""
        if name in self.laboratory:
            return f"it is in the laboratory: pip install {LABORATORY}"
        return did_you_mean(name, self)

    def package(self, name: str) -> str | None:
        """The distribution that announces a name; None if the name is Harken's own or unknown."""
        entry = self._announced().get(name)
        return entry.dist.name if entry is not None and entry.dist is not None else None

    def _announced(self) -> dict[str, EntryPoint]:
        if self._entries is None:
            from importlib.metadata import entry_points  # takes as long as the rest of Harken's import

            self._entries = {each.name: each for each in sorted(entry_points(group=self._group))}
        return self._entries


def target_of(entry: EntryPoint) -> str:
    """The target of an entry point, as "module:name"."""
    return entry.value


def imported(target: str) -> Any:
    """The object that a "module:name" names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
