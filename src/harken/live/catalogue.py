"""The subscriptions of an engine, by id and by number, apart from the index.

Most of a large set is in Arrow columns with a row for each number, which may be memory-mapped. Later subscriptions are
in dictionaries, which are searched first.
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


_ROWS_AT_ONCE = 65_536
_LOOKUP_SHARE = 4
"""Fields are read as whole columns after more lookups than 1/_LOOKUP_SHARE of the number of subscriptions."""


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
        for start in range(0, len(self), _ROWS_AT_ONCE):
            columns = [column.to_pylist() for column in self.table.slice(start, _ROWS_AT_ONCE).columns]
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
        """The number of an id. The first call makes a dictionary of all ids."""
        if self._places is None:
            self._places = {each: place for place, each in enumerate(self.ids()) if each is not None}
        place = self._places.get(id)
        return None if place is None else self.first + place

    def field(self, name: str) -> pa.Array:
        """A field of all subscriptions, as strings by number: cached, and dictionary-encoded, as most values repeat."""
        import pyarrow

        if name not in self._by_field:
            texts = self.table.column("fields").to_pylist()
            values = [None if text is None else _as_text(json.loads(text).get(name)) for text in texts]
            self._by_field[name] = pyarrow.array(values, pyarrow.string()).dictionary_encode()
        return self._by_field[name]

    def field_counts(self) -> Mapping[str, int]:
        """Number of subscriptions with each field. Unless saved, it is counted on the first call."""
        if self._field_counts is None:
            texts = self.table.column("fields").drop_null().to_pylist()
            self._field_counts = Counter(name for text in texts for name in json.loads(text))
        return self._field_counts

    @cached_property
    def arrow_ids(self) -> pa.Array:
        """The ids by row, as one array."""
        chunks = self.table.column(0)
        return chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()

    def ids(self) -> list[str | None]:
        ids: list[str | None] = self.table.column(0).to_pylist()
        return ids


class Catalogue:
    """All subscriptions. One thread at a time may change them while others read."""

    def __init__(
        self,
        columns: Sequence[CatalogueColumns] = (),
        gone: set[int] | None = None,
        used_names: frozenset[str] | None = frozenset(),
    ) -> None:
        self.used_names = used_names
        """Names of the top-level attributes that subscriptions use, perhaps also removed ones. None: unknown, so that
        it may be any."""
        self._columns = list(columns)
        self._gone = gone or set()
        """Numbers of removed subscriptions that are still in the columns."""
        self._by_id: dict[str, Subscription] = {}
        self._by_number: dict[int, Subscription] = {}
        self._count: int = sum(len(each) - each.table.column(0).null_count for each in columns) - len(self._gone)
        self.changes = 0
        """Number of changes so far, by which a cache knows whether it is still valid."""
        self._field_lookups = 0
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
        subscription = self._by_id.get(id)
        if subscription is not None:
            return subscription
        number = self._in_columns(id)
        return None if number is None else self._at(number)

    def of(self, number: int) -> Subscription:
        """The subscription that has a number, or had it last."""
        subscription = self._by_number.get(number) or self._at(number)
        assert subscription is not None, f"no subscription has had the number {number}"
        return subscription

    def field_counts(self) -> dict[str, int]:
        """Number of subscriptions with each field, by its name."""
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
        """Record the numbers of new subscriptions, before the matcher can find them."""
        with self._naming:
            self._by_number.update((each.number, each) for each in subscriptions)
            if self._ids_by_number is not None:
                for each in subscriptions:
                    if each.number >= len(self._ids_by_number):
                        self._ids_by_number.extend([None] * (each.number + 1 - len(self._ids_by_number)))
                    self._ids_by_number[each.number] = each.id
            self._arrow_by_number = None

    def add(self, subscriptions: Sequence[Subscription]) -> None:
        """Add announced subscriptions, whose ids are free or of subscriptions that are removed next."""
        self._by_id.update((each.id, each) for each in subscriptions)
        self._count += len(subscriptions)
        self.changes += 1

    def add_columns(self, first: int, table: pa.Table) -> None:
        """Add subscriptions, numbered from `first` on, whose ids are free or of subscriptions that are removed next."""
        with self._naming:
            self._columns.append(CatalogueColumns(first, table))
            self._count += table.num_rows
            self.changes += 1
            self._ids_by_number = self._arrow_by_number = None

    def drop_columns(self) -> None:
        """Remove the columns that were added last, because the matcher rejected them."""
        with self._naming:
            self._count -= len(self._columns.pop())
            self.changes += 1
            self._ids_by_number = self._arrow_by_number = None

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription. Its number still leads to it until another subscription gets the number."""
        current = self._by_id.get(subscription.id)
        if current is not None and current.number == subscription.number:
            del self._by_id[subscription.id]
        elif subscription.number not in self._by_number:
            self._gone.add(subscription.number)
        self._count -= 1
        self.changes += 1

    def ids_by_number(self) -> list[str | None]:
        """The id of every number; of a free number, the id that had it last."""
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
        """The ids that have these numbers, or had them last."""
        ids: list[Any] = self.ids_by_number() if self._ids_by_number is None else self._ids_by_number
        return [ids[number] for number in numbers]

    def encoded_ids(self, numbers: NDArray[np.int32]) -> pa.DictionaryArray:
        """The ids of these numbers, dictionary-encoded: the numbers are the indices, and no text is copied."""
        import pyarrow

        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(numbers), self._arrow_ids(), safe=False)

    def plain_ids(self, numbers: NDArray[np.int32]) -> pa.Array:
        """The ids of these numbers, as plain strings."""
        import pyarrow

        return self._arrow_ids().take(pyarrow.array(numbers))

    def picked_ids(self, numbers: NDArray[np.int32]) -> pa.Array:
        """The ids of these numbers, as plain strings with 32-bit offsets. Raises OverflowError if these overflow."""
        from harken.codes.picking import picked

        return picked(self._arrow_ids(), numbers)

    def _arrow_ids(self) -> pa.Array:
        """`ids_by_number` as an Arrow array, cached until the ids change."""
        import pyarrow

        if self._is_mapped:
            return self._columns[0].arrow_ids
        ids = self.ids_by_number()
        with self._naming:
            array = self._arrow_by_number
            if array is None:
                array = pyarrow.array(ids, pyarrow.large_string())
                if ids is self._ids_by_number:
                    self._arrow_by_number = array
        return array

    def arrow_fields(self, numbers: NDArray[np.int32], name: str) -> pa.Array:
        """A field of the subscriptions of these numbers, as an Arrow array of strings; other values are JSON."""
        import numpy
        import pyarrow

        if self._is_mapped:
            columns = self._columns[0]
            self._field_lookups += len(numbers)
            if self._field_lookups * _LOOKUP_SHARE > len(columns):
                return columns.field(name).take(pyarrow.array(numbers)).cast(pyarrow.string())
        distinct, places = numpy.unique(numbers, return_inverse=True)
        values = [_as_text(self.of(number).fields.get(name)) for number in distinct.tolist()]
        return pyarrow.array(values, pyarrow.string()).take(pyarrow.array(places))

    def table(self, size: int) -> pa.Table:
        """All subscriptions in Arrow columns: a row for each number below `size`, null where the number is free."""
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
        """Whether all subscriptions, removed ones too, are in one set of columns that starts at number 0."""
        return len(self._columns) == 1 and not self._columns[0].first and not self._by_number

    def _padded(self, name: str, size: int) -> pa.Array:
        """One column for all numbers below `size`, null for those that no columns have."""
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
        rows = (columns.at(number) for columns in self._columns)
        return next((row for row in rows if row is not None), None)


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _subscription(number: int, id: str, where: str, language: str, fields: str | None) -> Subscription:
    return Subscription(id, where, language, number, NO_FIELDS if fields is None else json.loads(fields))
