"""The results of matching: ids, made on demand, and numbers with offsets for millions of matches."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from harken.concurrency.caching import cached_property
from harken.errors import HarkenError
from harken.events import EventBatch, RejectedEvent
from harken.live.notebook import (
    EVENT,
    MOST_SHOWN,
    SUBSCRIPTION,
    columns_of,
    counted,
    html_table,
    pandas_frame,
    polars_frame,
)
from harken.live.unparsed import NONE_UNPARSED, UnparsedCounts, by_attribute

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from harken.live.catalogue import Catalogue
    from harken.live.numbering import Numbering
    from harken.matchers import MatchResult


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of one event."""

    ids: list[str]
    candidates: int
    """The number of index rows examined. A subscription has a row for each side of its ORs."""
    errors: list[tuple[str, HarkenError]] = field(default_factory=list)
    """Subscriptions that failed on this event."""
    seconds: dict[str, float] = field(default_factory=dict)
    """The time spent on each step: decode and match."""

    def to_pandas(self) -> Any:
        """The matches as a DataFrame of pandas: a row for each, with the column `subscription`."""
        return pandas_frame(self._table())

    def to_polars(self) -> Any:
        """The matches as a DataFrame of Polars, as in `to_pandas`."""
        return polars_frame(self._table())

    def _table(self) -> pa.Table:
        import pyarrow

        return pyarrow.table({SUBSCRIPTION: pyarrow.array(self.ids, pyarrow.large_string())})

    def _repr_html_(self) -> str:
        failed = f", {counted(len(self.errors), 'subscription')} failed" if self.errors else ""
        title = f"{counted(len(self.ids), 'match', 'matches')}{failed}"
        shown = [[id] for id in self.ids[:MOST_SHOWN]]
        return html_table(title, [SUBSCRIPTION], shown, len(self.ids) - len(shown))


class Reading:
    """Keeps the numbers of a result from being reused as long as the result lives."""

    def __init__(self, catalogue: Catalogue, numbering: Numbering) -> None:
        self.catalogue = catalogue
        self._finalize = weakref.finalize(self, numbering.end, numbering.begin())


class BatchMatches:
    """The matches of a batch. There is an item for every event; a rejected event has no matches.

    `numbers` and `offsets` are ready at once; `ids`, `arrow_ids()` and the like are made on demand.
    """

    def __init__(
        self,
        results: list[tuple[EventBatch, MatchResult]],
        rejected: tuple[RejectedEvent, ...],
        reading: Reading,
        seconds: dict[str, float],
        unparsed: UnparsedCounts = NONE_UNPARSED,
    ) -> None:
        self._results = results
        self._unparsed = unparsed
        self._reading = reading
        self.rejected = rejected
        self.seconds = seconds
        """The time spent on each step: decode and match."""

    @cached_property
    def positions(self) -> list[int]:
        """The position of each event in the input, from 0."""
        matched = [position for batch, _ in self._results for position in batch.positions]
        return sorted([*matched, *(each.position for each in self.rejected)]) if self.rejected else matched

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The matches of event i are `numbers[offsets[i] : offsets[i + 1]]`."""
        if len(self._results) == 1 and not self.rejected:
            return self._results[0][1].offsets
        import numpy as np

        counts = [np.empty(0, np.int64), *(np.diff(result.offsets) for _, result in self._results)]
        offsets = np.zeros(len(self.positions) + 1, np.int64)
        np.cumsum(self._placed(np.concatenate(counts)), out=offsets[1:])
        return offsets

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        """The numbers of the matching subscriptions, event by event."""
        import numpy as np

        parts = [result.numbers for _, result in self._results]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int32), *parts])

    @cached_property
    def ids(self) -> list[list[str]]:
        """The ids of the matching subscriptions of each event."""
        by_number: list[Any] = self._reading.catalogue.ids_by_number()
        ids = [by_number[number] for number in self.numbers.tolist()]
        return [ids[begin:end] for begin, end in pairwise(self.offsets.tolist())]

    @cached_property
    def counts(self) -> list[int]:
        """The number of matches of each event."""
        import numpy as np

        counts: list[int] = np.diff(self.offsets).tolist()
        return counts

    @cached_property
    def candidates(self) -> list[int]:
        """The number of index rows examined for each event, as in `Matches`."""
        import numpy as np

        parts = [np.empty(0, np.int64), *(result.candidates for _, result in self._results)]
        examined: list[int] = self._placed(np.concatenate(parts)).tolist()
        return examined

    @cached_property
    def errors(self) -> list[tuple[int, str, HarkenError]]:
        """Subscriptions that failed on an event: (position of the event, id, error)."""
        return [
            (batch.positions[index], self._reading.catalogue.of(number).id, error)
            for batch, result in self._results
            for index, number, error in result.errors
        ]

    @property
    def unparsed(self) -> dict[str, dict[str, int]]:
        """The number of strings that are compared with timestamps or dates and are none: {"at": {"timestamp": 3}}."""
        return by_attribute(self._unparsed)

    def arrow_ids(self, *, plain: bool = False) -> pa.LargeListArray:
        """The ids of each event, as an Arrow array of lists of dictionary-encoded strings: no character is copied.

        The dictionary has the ids of all subscriptions; the answers of an engine share it until subscriptions change.
        With `plain`, they are plain strings, for readers that know no dictionaries or would store them.
        """
        import pyarrow

        catalogue = self._reading.catalogue
        ids = catalogue.plain_ids(self.numbers) if plain else catalogue.encoded_ids(self.numbers)
        return pyarrow.LargeListArray.from_arrays(pyarrow.array(self.offsets), ids)

    def arrow_names(self, these: slice = slice(None), *, plain: bool = False) -> pa.Array:
        """The ids of all matches in one array, or of some: one for each of `numbers[these]`.

        They are dictionary-encoded as in `arrow_ids` or, with `plain`, strings with 32-bit offsets: raises
        OverflowError if the ids have more than 2 GB.
        """
        catalogue, numbers = self._reading.catalogue, self.numbers[these]
        return catalogue.picked_ids(numbers) if plain else catalogue.encoded_ids(numbers)

    def arrow_fields(self, name: str, these: slice = slice(None)) -> pa.Array:
        """A field of the subscription of each of `numbers[these]`, as a string; other values are JSON."""
        return self._reading.catalogue.arrow_fields(self.numbers[these], name)

    def arrow_numbers(self) -> pa.LargeListArray:
        """The numbers of each event, as an Arrow array of lists of integers."""
        import pyarrow

        return pyarrow.LargeListArray.from_arrays(pyarrow.array(self.offsets), pyarrow.array(self.numbers))

    def to_pandas(self) -> Any:
        """The matches as a DataFrame of pandas: a row for each, with `event`, `subscription` and all fields.

        `event` is the position of the event in the input, from 0. Fields of subscriptions are strings; other values are
        JSON. A field called `event` or `subscription` has an underscore after its name.
        """
        return pandas_frame(self._table())

    def to_polars(self) -> Any:
        """The matches as a DataFrame of Polars, as in `to_pandas`."""
        return polars_frame(self._table())

    def _table(self, these: slice = slice(None)) -> pa.Table:
        """A row for each of `numbers[these]`."""
        import numpy as np
        import pyarrow

        catalogue, numbers = self._reading.catalogue, self.numbers[these]
        events = np.repeat(np.array(self.positions, np.int64), np.diff(self.offsets))[these]
        fields = columns_of(catalogue.field_counts())
        return pyarrow.table(
            {
                EVENT: pyarrow.array(events),
                SUBSCRIPTION: catalogue.plain_ids(numbers),
                **{column: catalogue.arrow_fields(numbers, name) for name, column in fields.items()},
            }
        )

    def _repr_html_(self) -> str:
        table = self._table(slice(MOST_SHOWN))
        title = [counted(len(self), "event"), counted(len(self.numbers), "match", "matches")]
        title += [
            f"{len(each):,} {what}" for each, what in ((self.rejected, "rejected"), (self.errors, "failed")) if each
        ]
        rows = [list(row.values()) for row in table.to_pylist()]
        return html_table(", ".join(title), table.column_names, rows, len(self.numbers) - len(rows))

    def fields(self, number: int) -> Mapping[str, Any]:
        """The fields of the subscription with one of `numbers`."""
        return self._reading.catalogue.of(number).fields

    def of(self, index: int) -> NDArray[np.int32]:
        """The numbers of the subscriptions that match one event."""
        return self.numbers[self.offsets[index] : self.offsets[index + 1]]

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        return f"<BatchMatches: {len(self)} events, {len(self.numbers)} matches, {len(self.rejected)} rejected>"

    def _placed(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """A value for every event, 0 for those that were rejected."""
        import numpy as np

        if not self.rejected:
            return values
        order = [position for batch, _ in self._results for position in batch.positions]
        placed = np.zeros(len(self.positions), np.int64)
        placed[np.searchsorted(self.positions, order)] = values
        return placed
