"""What a matcher may do besides matching.

Whoever needs more than `Matcher` asks for the role, by `isinstance`, and does without where it is not played.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harken.codes.columns import Column
    from harken.codes.encode import EncodedBatch
    from harken.codes.flat import Flat
    from harken.events import EventBatch
    from harken.limits import Limits
    from harken.matchers.base import Entry, Snapshot
    from harken.schema.paths import Path
    from harken.versions.array_file import ArrayFile

Write = Callable[[str, Mapping[str, "NDArray[Any]"], Mapping[str, Any]], object]
"""Writes a file of this name with arrays and plain data, as a draft of a folder does."""


@runtime_checkable
class AddsInBulk(Protocol):
    """Takes many subscriptions as columns, without a normal form each."""

    def add_flat(self, flat: Flat, replaced: Collection[int] = ()) -> None:
        """Add rows whose subscriptions are new, in place of others."""

    def restore(self, entries: Iterable[Entry]) -> None:
        """As `add`, for subscriptions that were there before: however few, they are indexed at once."""


@runtime_checkable
class Plans(Protocol):
    """Learns from events, and lays out its index by what it learnt."""

    def learn(self, batch: EventBatch) -> None:
        """Take a batch for a sample of the events to come."""

    def merge(self) -> None:
        """Index everything anew, planned by what was learnt."""

    def favourite(self) -> Path | None:
        """The attribute by which most rows are found, if that is at least half of them."""


@runtime_checkable
class TellsColumns(Protocol):
    """Tells which attributes its rows ask for."""

    def columns(self) -> tuple[Column, ...]:
        """The columns that are asked for: the same tuple as long as they are the same."""

    def flats(self) -> list[Flat]:
        """All rows with their constants. Nothing is merged for it."""

    def paths(self) -> tuple[set[Path], list[int]]:
        """The attributes that rows ask for, and the subscriptions that may look at others when they are verified."""


@runtime_checkable
class Persists(Protocol):
    """Is saved as files of arrays."""

    def save(self, write: Write) -> None:
        """Write all that it is made of. Matching goes on meanwhile."""


@runtime_checkable
class Loads(Protocol):
    """Is loaded from what it saved. One that is only saved is made anew from texts, and takes over what was learnt."""

    @classmethod
    def load(cls, files: Mapping[str, ArrayFile], limits: Limits, **options: Any) -> Self | None:
        """What was saved as these files. None where they are of an earlier version that is not read any more."""


@runtime_checkable
class Divides(Protocol):
    """Can be cut into matchers that share its subscriptions, and made from the rows of several."""

    def rows(self) -> Flat:
        """All rows with their constants."""

    def weights(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The subscriptions of all rows, in the order of the index, and each row's share of cost and size."""

    def made_of(self, rows: Flat) -> Self:
        """A matcher like this one, with its options and what it learnt, that has these rows."""


@runtime_checkable
class Renumbers(Protocol):
    """Can be cut into matchers that share its subscriptions, and united with others, by their numbers alone."""

    def numbers(self) -> list[int]:
        """The numbers of all subscriptions."""

    def renumbered(self, numbers: NDArray[np.int32]) -> Self:
        """A matcher with the subscriptions whose new numbers are given, by the old ones; -1 leaves one out."""

    def united(self, others: Sequence[Self]) -> Self:
        """A matcher with the subscriptions of this one and of others, whose numbers are different."""


@runtime_checkable
class ReadsDocuments(Protocol):
    """Reads attributes of events as XML documents."""

    def document_paths(self) -> tuple[Path, ...]:
        """The attributes that are documents, as long as subscriptions ask for them."""


@runtime_checkable
class CallsOperators(Protocol):
    """Evaluates predicates by operators, which see events as they came, and learns from the outcomes."""

    def reads(self) -> frozenset[str] | None:
        """The attributes that operators may look at; None: all."""

    def recall(self, learnt: Mapping[str, list[int]]) -> None:
        """Take over what another one learnt."""

    def plan(self) -> list[dict[str, Any]]:
        """What is known of the predicates, those first that are worth most."""


@runtime_checkable
class TakesSnapshots(Protocol):
    """Tells what it holds at one moment, and is matched by that while changes go on."""

    def snapshot(self) -> Snapshot:
        """What it holds now."""


@runtime_checkable
class MatchesCodes(Protocol):
    """Can encode a batch first and match it then, so that matching is timed alone. All rows have to be exact."""

    def encode(self, batch: EventBatch) -> EncodedBatch:
        """A batch in the codes of this matcher, until its rows change."""

    def find(self, encoded: EncodedBatch) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Offsets, and what holds for each event: see `numbers_of`."""

    def numbers_of(self, found: NDArray[np.int32]) -> NDArray[np.int32]:
        """The subscriptions of what `find` found."""


@runtime_checkable
class CountsPredicates(Protocol):
    """Matches in the two stages of counting."""

    def satisfied(self, encoded: EncodedBatch) -> int:
        """How many predicates hold for the events of a batch: the first stage alone."""
