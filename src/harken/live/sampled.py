"""Subscriptions compared with the first events of an engine, where these come without types of columns.

An attribute that is compared with values of one kind, and always had values of another one, is told of, as a column of
that type would be. One that had values of several kinds, or none, is not: events may be of several sorts.
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
"""Events that columns are compared with."""
_ANY = Leaf(None, "null")


class Sampled:
    """What the first events had, of what subscriptions ask for. Once they are enough, a batch costs next to nothing."""

    def __init__(self) -> None:
        self._changes = -1
        """How often the subscriptions had changed when they were last asked for their columns."""
        self._columns: tuple[Column, ...] = ()
        self._open: tuple[Column, ...] = ()
        """The columns that were not compared with enough events yet."""
        self._events = 0
        self._kinds: dict[Path, set[Kind]] = {}
        """The kinds of values that events had, also at the paths of readings."""
        self._told: set[Column] = set()

    def look(self, batch: EventBatch, live: LiveSet, on_mismatch: OnMismatch, *, has_types: bool) -> None:
        """Compare with a batch, and tell of what does not fit. Raises MismatchError if that is asked for.

        Where events have types, those were compared: only whether strings are timestamps is still to be seen. Who asks
        for errors has every batch looked at.
        """
        catalogue, fails = live.catalogue, on_mismatch == FAIL
        if self._events >= SAMPLE and self._changes == catalogue.changes and not fails:
            return  # as of most batches
        if on_mismatch == IGNORE or not len(batch) or not len(catalogue) or live.schema is not None:
            return
        if isinstance(batch.views, DocumentViews):  # of which nothing but `document` is known, and that is a string
            return
        asking = live.asking()
        self._ask(asking, catalogue.changes)
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
        wrong = [each for each in columns if self._is_wrong(each) and (fails or each not in self._told)]
        if wrong:
            self._told.update(wrong)
            kinds = {path: self._kinds[path] for path in self._plain(wrong)}
            seen = _Seen(kinds, {read.path for each in wrong if (read := reading(each.path)) is not None})
            tell(counted(asking, catalogue, wrong, seen, self._events), on_mismatch, stacklevel=3)

    def _ask(self, asking: Asking, changes: int) -> None:
        """Learn of new columns, if there may be any. The sample begins anew for them."""
        if self._changes == changes or (self._events and isinstance(asking, FirstSubscriptions)):
            return  # to ask the last ones takes long: what they asked for at first is all
        self._changes = changes
        columns, known = asking.columns(), set(self._columns)
        new = [each for each in columns if each not in known]
        if new:
            self._open = (*(self._open if self._events < SAMPLE else ()), *new)
            self._events = 0
        self._columns = columns

    def _is_wrong(self, column: Column) -> bool:
        """Whether an attribute always had another kind of value than a column asks for."""
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

    def _plain(self, columns: list[Column]) -> list[Path]:
        paths = (path for each in columns for path, _ in needed(each.path, each.kind))
        return [path for path in dict.fromkeys(paths) if path in self._kinds]


class _Seen:
    """The attributes of events, by what they always had."""

    def __init__(self, kinds: dict[Path, set[Kind]], unread: set[Path]) -> None:
        self._kinds = kinds
        self._unread = unread
        """The attributes whose strings are not what they were read as."""

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
    """The paths whose values tell whether a column fits."""
    return (*sources_of(column.path), column.path) if reading(column.path) is not None else sources_of(column.path)


def _kinds_at(batch: EventBatch, path: Path) -> set[Kind]:
    dense = batch.dense(path)
    if dense is not None:
        return {dense.kind}
    return {cells.kind for cells in batch.cells(path).cells if len(cells.rows)}
