"""What has a name in Harken: what it brings, and what installed packages announce by entry points."""

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
    """Values by name: our own first, then those that packages announce in a group of entry points.

    Packages are looked for when a name is asked for that is not our own, or all names are.
    """

    def __init__(self, group: str, own: Mapping[str, T], read: Callable[[EntryPoint], T], laboratory: str = "") -> None:
        """`laboratory` has the names, separated by spaces, that the laboratory brings where it is installed."""
        self._group, self._read = group, read
        self.laboratory = tuple(laboratory.split())
        self._known = dict(own)
        self._found: dict[str, EntryPoint] | None = None

    def __getitem__(self, name: str) -> T:
        return self._known[name] if name in self._known else self._read(self._others()[name])

    def __setitem__(self, name: str, value: T) -> None:
        self._known[name] = value

    def __delitem__(self, name: str) -> None:
        was_found = self._others().pop(name, None)
        if self._known.pop(name, None) is None and was_found is None:
            raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._others()

    def __iter__(self) -> Iterator[str]:
        others = self._others()
        return iter([*self._known, *(name for name in others if name not in self._known)])

    def __len__(self) -> int:
        return len(self._known.keys() | self._others().keys())

    def hint(self, name: str) -> str | None:
        """What to do about a name that is not known: install what has it, or write one that is near."""
        if name in self.laboratory:
            return f"it is in the laboratory: pip install {LABORATORY}"
        return did_you_mean(name, self)

    def package(self, name: str) -> str | None:
        """The distribution that announces a name; None if it is our own, or not known."""
        found = self._others().get(name)
        return found.dist.name if found is not None and found.dist is not None else None

    def _others(self) -> dict[str, EntryPoint]:
        if self._found is None:
            from importlib.metadata import entry_points  # it takes as long as all the rest of Harken's import

            self._found = {each.name: each for each in sorted(entry_points(group=self._group))}
        return self._found


def target_of(entry: EntryPoint) -> str:
    """Where an entry point leads, as "module:name"."""
    return entry.value


def imported(target: str) -> Any:
    """What a "module:name" names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
