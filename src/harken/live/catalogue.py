"""The live set of subscriptions, by id and by number, apart from the index.

Most of a large set lies in Arrow columns, which may be in a memory-mapped file: a row a number. What came later lies in
dictionaries in front of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harken.concurrency.caching import cached_property
from harken.concurrency.forking import PART, fork_lock
from harken.live.subscriptions import NO_FIELDS, Subscription

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


_AT_ONCE = 65_536
_SHARE_ASKED = 4
"""Once a field was asked for a quarter of all subscriptions, it is made a column."""


class CatalogueColumns:
    """Subscriptions with the numbers from `first` on, as Arrow columns: id, where, language and fields (as JSON)."""

    def __init__(self, first: int, table: pa.Table, field_counts: Mapping[str, int] | None = None) -> None:
        self.first = first
        self.table = table
        self._field_counts = field_counts
        self._places: dict[str, int] | None = None
        self._by_field: dict[str, pa.Array] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Subscription]:
        for start in range(0, len(self), _AT_ONCE):
            columns = [column.to_pylist() for column in self.table.slice(start, _AT_ONCE).columns]
            for number, row in enumerate(zip(*columns, strict=True), self.first + start):
                if row[0] is not None:
                    yield _subscription(number, *row)

    def at(self, number: int) -> Subscription | None:
        place = number - self.first
        if not 0 <= place < len(self):
            return None
        row = [column[place].as_py() for column in self.table.columns]
        return None if row[0] is None else _subscription(number, *row)

    def find(self, id: str) -> int | None:
        """The number of an id. The first time, all ids are looked through."""
        if self._places is None:
            self._places = {each: place for place, each in enumerate(self.ids()) if each is not None}
        place = self._places.get(id)
        return None if place is None else self.first + place

    def field(self, name: str) -> pa.Array:
        """A field of all of them, as strings by number. Made when it is first asked for, it is kept: most are few."""
        import pyarrow

        if name not in self._by_field:
            texts = self.table.column("fields").to_pylist()
            values = [None if text is None else _told(json.loads(text).get(name)) for text in texts]
            self._by_field[name] = pyarrow.array(values, pyarrow.string()).dictionary_encode()
        return self._by_field[name]

    def field_counts(self) -> Mapping[str, int]:
        """How many of them have each field. Unless that was saved with them, all fields are read the first time."""
        if self._field_counts is None:
            texts = self.table.column("fields").drop_null().to_pylist()
            self._field_counts = Counter(name for text in texts for name in json.loads(text))
        return self._field_counts

    @cached_property
    def arrow_ids(self) -> pa.Array:
        """The ids as they lie in the columns."""
        chunks = self.table.column(0)
        return chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()

    def ids(self) -> list[str | None]:
        found: list[str | None] = self.table.column(0).to_pylist()
        return found


class Catalogue:
    """All subscriptions. One thread at a time changes it, others may look things up meanwhile."""

    def __init__(
        self,
        columns: Sequence[CatalogueColumns] = (),
        gone: set[int] | None = None,
        asked: frozenset[str] | None = frozenset(),
    ) -> None:
        self.asked = asked
        """The attributes that subscriptions look at, by the names that their paths begin with. It may have names that
        only subscriptions looked at which are gone. None: not known, so that it may be any."""
        self._columns = list(columns)
        self._gone = gone or set()
        """Numbers that the columns hold and that are no more."""
        self._by_id: dict[str, Subscription] = {}
        self._by_number: dict[int, Subscription] = {}
        self._count: int = sum(len(each) - each.table.column(0).null_count for each in columns) - len(self._gone)
        self.changes = 0
        """How often it has changed: who keeps what was found in it knows by this whether it still holds."""
        self._fields_asked = 0
        self._naming = fork_lock(PART)
        self._ids_by_number: list[str | None] | None = None
        self._arrow_by_number: Any = None

    def __len__(self) -> int:
        return self._count

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and (id in self._by_id or self._in_columns(id) is not None)

    def __iter__(self) -> Iterator[Subscription]:
        for columns in list(self._columns):
            yield from (each for each in columns if each.number not in self._gone)
        yield from list(self._by_id.values())

    def ids(self) -> Iterator[str]:
        return (each.id for each in self)

    def get(self, id: str) -> Subscription | None:
        found = self._by_id.get(id)
        if found is not None:
            return found
        number = self._in_columns(id)
        return None if number is None else self._at(number)

    def of(self, number: int) -> Subscription:
        """The subscription that has a number, or had it last."""
        found = self._by_number.get(number) or self._at(number)
        assert found is not None, f"nobody has had the number {number}"
        return found

    def field_counts(self) -> dict[str, int]:
        """How many subscriptions have each of the fields that travel with them, by the name of the field."""
        counts = Counter[str]()
        for columns in self._columns:
            counts.update(columns.field_counts())
        if counts:
            gone = (self._at(number) for number in list(self._gone))
            for each in filter(None, gone):
                counts.subtract(each.fields.keys())
        counts.update(name for each in list(self._by_id.values()) for name in each.fields)
        return dict(+counts)

    def announce(self, subscriptions: Sequence[Subscription]) -> None:
        """Tell who has which number, before the matcher can find it."""
        with self._naming:
            self._by_number.update((each.number, each) for each in subscriptions)
            if self._ids_by_number is not None:
                for each in subscriptions:
                    if each.number >= len(self._ids_by_number):
                        self._ids_by_number.extend([None] * (each.number + 1 - len(self._ids_by_number)))
                    self._ids_by_number[each.number] = each.id
            self._arrow_by_number = None

    def add(self, subscriptions: Sequence[Subscription]) -> None:
        """Take subscriptions that were announced, whose ids are free or belong to those that are removed next."""
        self._by_id.update((each.id, each) for each in subscriptions)
        self._count += len(subscriptions)
        self.changes += 1

    def add_columns(self, first: int, table: pa.Table) -> None:
        """Take subscriptions with the numbers from `first` on, whose ids are free."""
        with self._naming:
            self._columns.append(CatalogueColumns(first, table))
            self._count += table.num_rows
            self.changes += 1
            self._ids_by_number = self._arrow_by_number = None

    def drop_columns(self) -> None:
        """Have the columns that were taken last no more: the matcher has refused them."""
        with self._naming:
            self._count -= len(self._columns.pop())
            self.changes += 1
            self._ids_by_number = self._arrow_by_number = None

    def remove(self, subscription: Subscription) -> None:
        """Let go of one. By its number it can be looked up until another gets that."""
        held = self._by_id.get(subscription.id)
        if held is not None and held.number == subscription.number:
            del self._by_id[subscription.id]
        elif subscription.number not in self._by_number:
            self._gone.add(subscription.number)
        self._count -= 1
        self.changes += 1

    def ids_by_number(self) -> list[str | None]:
        """The id of every number, of those that are free the last."""
        with self._naming:
            if self._ids_by_number is None:
                size = max((each.first + len(each) for each in self._columns), default=0)
                ids: list[str | None] = [None] * max(size, max(self._by_number, default=-1) + 1)
                for columns in self._columns:
                    ids[columns.first : columns.first + len(columns)] = columns.ids()
                for number, each in self._by_number.items():
                    ids[number] = each.id
                self._ids_by_number = ids
            return self._ids_by_number

    def ids_of(self, numbers: list[int]) -> list[str]:
        """The ids of these numbers, which somebody has or had last."""
        ids: list[Any] = self.ids_by_number() if self._ids_by_number is None else self._ids_by_number
        return [ids[number] for number in numbers]

    def encoded_ids(self, numbers: NDArray[np.int32]) -> pa.DictionaryArray:
        """The ids of these numbers: the numbers themselves, in a dictionary of all ids. No character is copied."""
        import pyarrow

        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(numbers), self._arrow_ids(), safe=False)

    def plain_ids(self, numbers: NDArray[np.int32]) -> pa.Array:
        """The same as plain strings."""
        import pyarrow

        return self._arrow_ids().take(pyarrow.array(numbers))

    def picked_ids(self, numbers: NDArray[np.int32]) -> pa.Array:
        """The same with offsets of 32 bits. Raises OverflowError if they are too long for that."""
        from harken.codes.picking import picked

        return picked(self._arrow_ids(), numbers)

    def _arrow_ids(self) -> pa.Array:
        """The id of every number, as in `ids_by_number`. It is made once, until there are others."""
        import pyarrow

        if self._is_mapped:
            return self._columns[0].arrow_ids
        ids = self.ids_by_number()
        with self._naming:
            known = self._arrow_by_number
            if known is None:
                known = pyarrow.array(ids, pyarrow.large_string())
                if ids is self._ids_by_number:
                    self._arrow_by_number = known
        return known

    def arrow_fields(self, numbers: NDArray[np.int32], name: str) -> pa.Array:
        """A field of the subscriptions of these numbers, as an Arrow array of strings: JSON for what is no string."""
        import numpy
        import pyarrow

        if self._is_mapped:
            columns = self._columns[0]
            self._fields_asked += len(numbers)
            if self._fields_asked * _SHARE_ASKED > len(columns):
                return columns.field(name).take(pyarrow.array(numbers)).cast(pyarrow.string())
        known, places = numpy.unique(numbers, return_inverse=True)
        values = [_told(self.of(number).fields.get(name)) for number in known.tolist()]
        return pyarrow.array(values, pyarrow.string()).take(pyarrow.array(places))

    def table(self, size: int) -> pa.Table:
        """All of them in Arrow columns, a row for each number below `size`, null where it is free."""
        import numpy
        import pyarrow
        import pyarrow.compute

        changed = numpy.zeros(size, numpy.bool_)
        changed[list(self._gone)] = True
        later = sorted(self._by_id.values(), key=lambda each: each.number)
        changed[[each.number for each in later]] = True
        texts: dict[int, tuple[str, str, str, str | None]] = {
            each.number: (each.id, each.where, each.language, json.dumps(dict(each.fields)) if each.fields else None)
            for each in later
        }
        rows = [texts.get(number, (None,) * 4) for number in numpy.flatnonzero(changed).tolist()]
        columns = {}
        for place, name in enumerate(("id", "where", "language", "fields")):
            new = pyarrow.array([row[place] for row in rows], pyarrow.large_string())
            old = self._padded(name, size)
            columns[name] = pyarrow.compute.replace_with_mask(old, pyarrow.array(changed), new)
        return pyarrow.table(columns)

    @property
    def _is_mapped(self) -> bool:
        """Whether all there is, and ever was, is in columns that start with the first number."""
        return len(self._columns) == 1 and not self._columns[0].first and not self._by_number

    def _padded(self, name: str, size: int) -> pa.Array:
        """What the columns hold under a name, with nulls for the numbers that none of them has."""
        import pyarrow

        parts = []
        end = 0
        for columns in sorted(self._columns, key=lambda each: each.first):
            parts.append(pyarrow.nulls(columns.first - end, pyarrow.large_string()))
            parts.append(columns.table.column(name).combine_chunks())
            end = columns.first + len(columns)
        return pyarrow.concat_arrays([*parts, pyarrow.nulls(size - end, pyarrow.large_string())])

    def _in_columns(self, id: str) -> int | None:
        for columns in self._columns:
            number = columns.find(id)
            if number is not None and number not in self._gone:
                return number
        return None

    def _at(self, number: int) -> Subscription | None:
        return next((found for found in (each.at(number) for each in self._columns) if found is not None), None)


def _told(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _subscription(number: int, id: str, where: str, language: str, fields: str | None) -> Subscription:
    return Subscription(id, where, language, number, NO_FIELDS if fields is None else json.loads(fields))
