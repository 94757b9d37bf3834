"""The names, linear paths and constants of XPath subscriptions, each once.

A vocabulary only grows, because other threads match by it: entries are written behind the used part of an array, and a
full array is replaced by a longer one. Merging an index drops unused entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from harken.kernels.documents import (
    ANY,
    FIRST_KEY,
    TEXT,
    Vocabulary,
    enter_values,
    intern_values,
)

_Item = TypeVar("_Item", bound=np.generic)
_LEAST = 16
_AT_ONCE = 4_096
ROOT = 0
"""The linear path of the root node, and its key."""

Name = tuple[int, bytes]
"""The kind of a node, and its expanded name; the name of a text is empty."""


class _Growing(Generic[_Item]):
    """An array that grows at its end."""

    __slots__ = ("array", "count")

    def __init__(self, array: NDArray[_Item]) -> None:
        self.array, self.count = array, len(array)

    def reserve(self, more: int) -> bool:
        """Reserve room for more items. Returns whether that replaced the array."""
        needed = self.count + more
        if needed <= len(self.array) and self.array.flags.writeable:
            return False
        size = max(_LEAST, needed, 3 * len(self.array) // 2)
        array = np.zeros((size, *self.array.shape[1:]), self.array.dtype)
        array[: self.count] = self.array[: self.count]
        self.array = array
        return True

    def used(self) -> NDArray[_Item]:
        return self.array[: self.count]


class GrowingVocabulary:
    """Names, keys, linear paths and values, with the numbers by which programs name them."""

    def __init__(self, arrays: Vocabulary | None = None, names: Sequence[Name] = (), keys: Sequence[Name] = ()) -> None:
        """`arrays` are those of a saved vocabulary. They may be read-only, and are copied before they grow."""
        self.names: dict[Name, int] = {name: place for place, name in enumerate(names, 1)}
        self._named = [b"", *(name for _, name in names)]
        self.keys: dict[Name, int] = {key: place for place, key in enumerate(keys, FIRST_KEY)}
        """The keys: the kind and name at the end of a path. A text has the name of its element."""
        initial = arrays or _empty()
        self._columns = {name: _Growing(array) for name, array in initial._asdict().items()}
        self._paths: dict[tuple[int, bool, int, int], int] | None = None
        self._arrays = initial
        self.changes = 0
        """Number of changes of names, keys and their uses, by which a BoundTags sees that it is outdated."""

    @property
    def arrays(self) -> Vocabulary:
        """The whole arrays, including their unused parts."""
        return self._arrays

    @property
    def values(self) -> int:
        """Number of values."""
        return self._columns["values"].count

    @property
    def paths(self) -> int:
        """Number of linear paths, including the root."""
        return self._columns["path_parent"].count

    @property
    def key_count(self) -> int:
        return self._columns["key_asked"].count

    def used(self) -> Vocabulary:
        """The used parts of the arrays."""
        return Vocabulary(**{name: column.used() for name, column in self._columns.items()})

    def memory(self) -> int:
        """Bytes of the arrays."""
        return sum(column.array.nbytes for column in self._columns.values())

    def name(self, kind: int, name: bytes) -> int:
        """The number of a name."""
        number = self.names.get((kind, name))
        if number is None:
            number = self.names[kind, name] = len(self._named)
            self._named.append(name)
            self.changes += 1
        return number

    def step(self, parent: int, descends: bool, kind: int, name: bytes | None) -> int:
        """The linear path `parent` extended by one step. A name of None matches any name."""
        number = ANY if name is None else self.name(kind, name)
        paths = self._path_numbers()
        path = paths.get((parent, descends, kind, number))
        if path is None:
            key = self._key(parent, descends, kind, name)
            path = paths[parent, descends, kind, number] = self.paths
            self._append(path_parent=parent, path_descends=descends, path_kind=kind, path_name=number, path_key=key)
        return path

    def add_numbers(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Append the numbers of comparisons other than equality. Returns their places."""
        column = self._columns["numbers"]
        self._reserve(len(values), "numbers")
        first = column.count
        column.count += len(values)
        column.array[first : column.count] = values
        return np.arange(first, column.count)

    def use(self, path: int, uses: int, longest: int = 0) -> None:
        """Record how the nodes at the end of a path are looked up, and the length of the longest constant."""
        key = self._arrays.path_key[path]
        if not self._columns["key_asked"].array.flags.writeable:
            self._copy("key_asked", "key_longest")
        if uses & ~self._arrays.key_asked[key]:
            self._arrays.key_asked[key] |= uses
            self.changes += 1
        self._arrays.key_longest[key] = max(self._arrays.key_longest[key], longest)

    def intern(self, contents: Sequence[bytes], keys: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers of values, each given with its key."""
        text = np.frombuffer(bytearray(b"".join(contents)), np.uint8)
        at = np.zeros(len(contents) + 1, np.int64)
        np.cumsum([len(content) for content in contents], out=at[1:])
        return self.intern_all(text, at, keys)

    def intern_all(self, text: NDArray[np.uint8], at: NDArray[np.int64], keys: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers of concatenated values; value i is text[at[i] : at[i + 1]]."""
        interned = np.empty(len(keys), np.int32)
        for first in range(0, len(keys), _AT_ONCE):  # in parts: many values exist already, and need no room
            last = min(first + _AT_ONCE, len(keys))
            self._reserve(last - first, "values")
            self._reserve(int(at[last] - at[first]), "texts")
            self._reserve_slots(last - first)
            values, texts = self._columns["values"], self._columns["texts"]
            part = text, at[first : last + 1], keys[first:last], interned[first:last]
            values.count, texts.count = intern_values(self._arrays, values.count, texts.count, *part)
        return interned

    def _key(self, parent: int, descends: bool, kind: int, name: bytes | None) -> int:
        if kind == TEXT:
            # The key of a text without a named parent is that of any text.
            element = int(self._arrays.path_name[parent]) if parent != ROOT and not descends else ANY
            if element == ANY:
                return kind
            name = self._named[element]
        elif name is None:
            return kind
        key = self.keys.get((kind, name))
        if key is None:
            key = self.keys[kind, name] = len(self.keys) + FIRST_KEY
            self.changes += 1
            self._append(key_asked=0, key_longest=0)
        return key

    def _path_numbers(self) -> dict[tuple[int, bool, int, int], int]:
        if self._paths is None:  # made lazily: there are many, and matching needs none
            used = self.used()
            columns = (used.path_parent, used.path_descends.astype(np.bool_), used.path_kind, used.path_name)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            self._paths = {row: place for place, row in enumerate(rows) if place}
        return self._paths

    def _append(self, **values: float) -> None:
        self._reserve(1, *values)
        for name, value in values.items():
            column = self._columns[name]
            column.array[column.count] = value
            column.count += 1

    def _reserve(self, more: int, *names: str) -> None:
        moved = [self._columns[name].reserve(more) for name in names]
        if any(moved):
            self._changed()

    def _copy(self, *names: str) -> None:
        for name in names:
            self._columns[name].array = self._columns[name].array.copy()
        self._changed()

    def _reserve_slots(self, more: int) -> None:
        slots = self._columns["slots"]
        if 2 * (self.values + more) > len(slots.array) or not slots.array.flags.writeable:
            size = 1 << (4 * (self.values + more)).bit_length() - 1
            before, slots.array = slots.array, np.zeros(size, np.int64)
            slots.count = size
            enter_values(slots.array, before)
            self._changed()

    def _changed(self) -> None:
        self._arrays = Vocabulary(**{name: column.array for name, column in self._columns.items()})


def numeric_value(number: float) -> bytes:
    """A number as bytes, for looking it up."""
    return pack("=d", number + 0.0)  # turns -0.0 into 0.0


def _empty() -> Vocabulary:
    return Vocabulary(
        path_parent=np.zeros(1, np.int32),
        path_descends=np.zeros(1, np.uint8),
        path_kind=np.zeros(1, np.uint8),
        path_name=np.zeros(1, np.int32),
        path_key=np.zeros(1, np.int32),
        key_asked=np.zeros(FIRST_KEY, np.uint8),
        key_longest=np.zeros(FIRST_KEY, np.int32),
        slots=np.zeros(_LEAST, np.int64),
        values=np.zeros((0, 2), np.int64),
        texts=np.zeros(0, np.uint8),
        numbers=np.zeros(0, np.float64),
    )
