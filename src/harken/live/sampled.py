"""Comparison of subscriptions with the first events of an engine, if these have no column types.

An attribute that is compared with one kind of value, and always had another, is a mismatch, as a column of that type
is. An attribute with values of several kinds, or none, is not: events may be of several sorts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harken.events.document_views import DocumentViews
from harken.live.mismatch import FAIL, IGNORE, Asking, FirstSubscriptions, OnMismatch, counted, tell
from harken.schema import BUILT_IN, Kind, Path
from harken.schema.derived import needed, place_of, reading, sources_of
from harken.schema.event_columns import Leaf

if TYPE_CHECKING:
    from harken.codes.columns import Column
    from harken.events import EventBatch
    from harken.live.live_set import LiveSet

SAMPLE = 1_000
"""Number of events that columns are compared with."""
_ANY = Leaf(None, "null")


class Sampled:
    """The kinds of values that the first events had. After `SAMPLE` events, a batch costs next to nothing."""

    def __init__(self) -> None:
        self._changes = -1
        """The catalogue's number of changes when the columns were last read."""
        self._columns: tuple[Column, ...] = ()
        self._open: tuple[Column, ...] = ()
        """The columns not compared with enough events yet."""
        self._events = 0
        self._kinds: dict[Path, set[Kind]] = {}
        """The kinds of values that events had, also at the paths of readings."""
        self._warned: set[Column] = set()

    def look(self, batch: EventBatch, live: LiveSet, on_mismatch: OnMismatch, *, has_types: bool) -> None:
        """Compare subscriptions with a batch, and warn of mismatches or raise MismatchError, as `on_mismatch` says.

        With `has_types`, the types of columns were compared before, and only strings read as times are left. With
        "fail", every batch is compared.
        """
        catalogue, fails = live.catalogue, on_mismatch == FAIL
        if self._events >= SAMPLE and self._changes == catalogue.changes and not fails:
            return  # the common case
        if on_mismatch == IGNORE or not len(batch) or not len(catalogue) or live.schema is not None:
            return
        if isinstance(batch.views, DocumentViews):  # their only attribute is `document`, a string
            return
        asking = live.asking()
        self._update_columns(asking, catalogue.changes)
        open_ones = self._columns if fails else self._open if self._events < SAMPLE else ()
        columns = [each for each in open_ones if not has_types or reading(each.path) is not None]
        if not columns:
            return
        part = batch if len(batch) <= SAMPLE else batch[:SAMPLE]
        names = part.known_names()
        for path in dict.fromkeys(path for each in columns for path in _looked_at(each)):
            if place_of(path)[0] in names:
                self._kinds.setdefault(path, set()).update(_kinds_at(part, path))
        self._events += len(part)
        wrong = [each for each in columns if self._is_wrong(each) and (fails or each not in self._warned)]
        if wrong:
            self._warned.update(wrong)
            kinds = {path: self._kinds[path] for path in self._sampled_paths(wrong)}
            types = _SampledTypes(kinds, {read.path for each in wrong if (read := reading(each.path)) is not None})
            tell(counted(asking, catalogue, wrong, types, self._events), on_mismatch, stacklevel=3)

    def _update_columns(self, asking: Asking, changes: int) -> None:
        """Read the columns if subscriptions have changed. New columns begin a new sample."""
        if self._changes == changes or (self._events and isinstance(asking, FirstSubscriptions)):
            return  # `FirstSubscriptions` is slow, and read only once
        self._changes = changes
        columns, earlier = asking.columns(), set(self._columns)
        new = [each for each in columns if each not in earlier]
        if new:
            self._open = (*(self._open if self._events < SAMPLE else ()), *new)
            self._events = 0
        self._columns = columns

    def _is_wrong(self, column: Column) -> bool:
        """Whether the attribute of a column always had values of another kind."""
        if column.kind is None:
            return False
        read = reading(column.path)
        if read is not None and self._kinds.get(read.path) == {Kind.STRING}:
            return not self._kinds.get(column.path)
        allowed = {read.read_as, Kind.STRING} if read is not None else None
        for path, kind in needed(column.path, column.kind):
            seen = self._kinds.get(path, set())
            if kind is not None and len(seen) == 1 and not seen & (allowed or {kind}):
                return True
        return False

    def _sampled_paths(self, columns: list[Column]) -> list[Path]:
        paths = (path for each in columns for path, _ in needed(each.path, each.kind))
        return [path for path in dict.fromkeys(paths) if path in self._kinds]


class _SampledTypes:
    """The types of the attributes of a sample: the one kind that all values of an attribute had."""

    def __init__(self, kinds: dict[Path, set[Kind]], unread: set[Path]) -> None:
        self._kinds = kinds
        self._unread = unread
        """The attributes whose strings cannot be read as times."""

    def at(self, path: Path) -> Leaf:
        kinds = self._kinds.get(path, set())
        if len(kinds) != 1:
            return _ANY
        (kind,) = kinds
        domain = BUILT_IN["float" if kind is Kind.NUMBER else str(kind)]
        return Leaf(domain, str(kind), has_no_times=kind is Kind.STRING and path in self._unread)

    def leaves(self) -> Iterator[tuple[Path, Leaf]]:
        return ((path, self.at(path)) for path in self._kinds)


def _looked_at(column: Column) -> tuple[Path, ...]:
    """The paths whose values decide whether a column fits."""
    return (*sources_of(column.path), column.path) if reading(column.path) is not None else sources_of(column.path)


def _kinds_at(batch: EventBatch, path: Path) -> set[Kind]:
    dense = batch.dense(path)
    if dense is not None:
        return {dense.kind}
    return {cells.kind for cells in batch.cells(path).cells if len(cells.rows)}
