"""The tables of a matcher, which a file may keep: open them, see that they have the expected rows, save their moment.

In memory, and on a server, tables end with the session, and a new session fills them from the texts of subscriptions.
A file is opened again and used as it is if it has the rows that this matcher wrote last. A new matcher takes a file
without subscriptions only. A saved engine and its file agree if the file was not changed since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from harken.databases.connection import Connection
from harken.errors import CapabilityError, SegmentError
from harken.matchers.roles import Write
from harken.relational.database_session import Session
from harken.relational.number_set import NumberSet
from harken.relational.table_state import TableState

_CHANGED = "the file of the database was changed by another engine"
_HINT = "load the engine that was saved with it, or delete the file: then it is filled from the texts"


class OwnsTables(Protocol):
    """A matcher, as its tables see it. They do not refer to it: it has to end, and close its file, at once."""

    def create_tables(self, database: Connection) -> None:
        """Create empty tables."""

    def reopen_tables(self, database: Connection) -> None:
        """Prepare a session whose file has the tables."""


class KeptTables:
    """The session of a matcher, its state, and the numbers of its subscriptions. One thread may use it at a time."""

    def __init__(self, name: str, state: TableState, tables: Sequence[str]) -> None:
        """`name` is that of the database, or its URL."""
        self.session = Session(name)
        self.state = state
        self.numbers = NumberSet()
        self._tables = tables
        self._expected: tuple[int, int] | None = None
        """The moment of the tables after the last change; None before the first one."""
        self._is_behind = False
        """Whether a change is in the texts only."""

    @property
    def is_filled(self) -> bool:
        """Whether this process has tables with all rows."""
        return self.session.is_filled

    # Opening

    def reject_used(self) -> None:
        """Raise CapabilityError if the file has the subscriptions of an engine: a new matcher would mix them."""
        if self.session.is_durable and self._expected is None:
            with self.session.guarded() as database:
                database.connect()
                try:
                    self._reject_used(database)
                finally:
                    database.close()

    def _reject_used(self, database: Connection) -> None:
        if not self.state.exists(database):
            return
        self.state.read(database)
        if self._expected is not None:
            (stamp, sequence), (now, changes) = self._expected, self.state.moment
            if now != stamp or changes - sequence not in (0, 1):  # 1: a change that was made, and reported as failed
                raise CapabilityError(_CHANGED, hint=_HINT)
        elif count := self.state["subscriptions"]:
            raise CapabilityError(f"the file of the database has {count:,} subscriptions of another engine", hint=_HINT)

    def begin(self, database: Connection, owner: OwnsTables) -> bool:
        """Connect. Returns whether the tables have all rows; else they are new, and have to be filled."""
        if self.resume(database, owner):
            return True
        database.connect()
        if self.session.is_durable:
            self._reject_used(database)
        with database.transaction():
            if self.session.is_durable:
                self._drop(database)
            self.state.create(database)
            owner.create_tables(database)
        self._expected, self._is_behind = self.state.moment, len(self.numbers) > 0
        self.session.note_filled()
        return False

    def complete(self) -> None:
        """Note that new tables have all rows by now."""
        self._is_behind = False

    def resume(self, database: Connection, owner: OwnsTables) -> bool:
        """Go on with the tables of the file, if it has the rows that were written last. Returns whether it does."""
        if not self.session.is_durable or self._expected is None or self._is_behind:
            return False
        database.connect()
        if not self.state.exists(database):
            return False
        self.state.read(database)
        if not self.state.is_ours or self.state.moment != self._expected:
            raise CapabilityError(_CHANGED, hint=_HINT)
        owner.reopen_tables(database)
        self.session.note_filled()
        return True

    def _drop(self, database: Connection) -> None:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        names = {name for (name,) in database.rows(query)}
        for table in (self.state.table, *self._tables):
            if table in names:
                database.run(f"DROP TABLE {table}")

    # Changing

    @contextmanager
    def changed(self, coming: Collection[int], leaving: Collection[int]) -> Iterator[None]:
        """Note a change of the subscriptions, whether or not the tables get it: see `write`."""
        try:
            yield
        except CapabilityError:  # the file is another engine's
            raise
        except BaseException:
            self._is_behind = True
            raise
        self.numbers.remove(leaving)
        self.numbers.add(coming)

    def defer(self) -> None:
        """Note that a change is not in the tables: they are filled again before the next match."""
        self._is_behind = True

    def check(self, database: Connection) -> None:
        """Raise CapabilityError if another engine has changed the file."""
        if self.session.is_durable and self.state.stored_moment(database) != self._expected:
            raise CapabilityError(_CHANGED, hint=_HINT)

    @contextmanager
    def changing(self, database: Connection, difference: int) -> Iterator[None]:
        """A transaction that changes the tables, and the number of their subscriptions by `difference`."""
        with database.transaction():
            self.check(database)
            yield
            self.state["subscriptions"] += difference
            self.state["sequence"] += 1
            self.state.write(database)
        self._expected = self.state.moment

    # Saving

    def save(self, name: str, write: Write) -> None:
        """Save which moment of the file the engine belongs to. Tables that end with the session are not saved."""
        is_kept = self.session.is_durable and self._expected is not None and not self._is_behind
        stamp, sequence = self._expected if is_kept and self._expected is not None else (None, None)
        write(name, {"numbers": np.empty(0, np.int32)}, {"stamp": stamp, "sequence": sequence})

    def load(self, meta: Mapping[str, Any], numbers: str, owner: OwnsTables) -> bool:
        """Open the file at a saved moment. Returns False if the tables have to be filled from texts.

        `numbers` is the query for the numbers of all subscriptions. Raises SegmentError if the file has other rows.
        """
        if meta["stamp"] is None or not self.session.is_durable:
            return False
        self._expected = meta["stamp"], meta["sequence"]
        with self.session.guarded() as database:
            try:
                is_kept = self.resume(database, owner)
            except CapabilityError:
                database.close()
                message = "the file of the database was changed after the engine was saved, or is another engine's"
                raise SegmentError(message, hint=_HINT) from None
            if is_kept:
                self.numbers.add(database.integers(numbers)[:, 0].tolist())
            else:
                self._expected = None
        return is_kept
