"""Subscribing: texts are understood, written to the store, and matched with before anybody is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harken.concurrency.collecting import collector_paused
from harken.engine import Engine
from harken.errors import ExtensionError, HarkenError, InvalidIdError, ParseError
from harken.live.loading import Checked
from harken.schema import Schema
from harken.schema.extensions import Extension
from harken.schema.schema_files import format_schema
from harken.server.committing import Committer
from harken.server.reading import Readers
from harken.server.secret_words import TICKET, hashed, new_word
from harken.server.served_index import ServedIndex
from harken.server.settings import ServerSettings
from harken.store import BehindError, Store, StoredChange, StoredDelivery, StoredSubscription, Writing
from harken.store.store import microseconds
from harken.store.stored import GONE, PUT, RENEWED, SCHEMA

_LONGEST_ID = 200
_MOST_TRIES = 10
_NEAR = 20_000
"""Subscriptions of one owner that may be under way at once, and those of a bulk request more."""


@dataclass(frozen=True, slots=True)
class SubscriptionDraft:
    """A subscription as somebody asks for it."""

    id: str
    where: str
    language: str
    valid_for: float | None
    """Seconds, as was asked for; None for the default."""
    owner: str | None
    labels: dict[str, str]
    delivery: StoredDelivery


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A subscription that was taken: the ticket is told now, and never again."""

    id: str
    ticket: str
    expires_at: int
    warnings: tuple[str, ...]


class Subscribing:
    """Everything that changes subscriptions and the schema."""

    def __init__(
        self, settings: ServerSettings, store: Store, index: ServedIndex, committer: Committer, readers: Readers
    ) -> None:
        self._settings = settings
        self._store = store
        self._index = index
        self._committer = committer
        self._readers = readers

    async def subscribe(self, drafts: Sequence[SubscriptionDraft]) -> list[NewSubscription | HarkenError]:
        """Take subscriptions. Those that cannot be taken are told why."""
        checked = await self._checked(drafts)
        found: list[NewSubscription | HarkenError | None] = [
            each if isinstance(each, HarkenError) else None for each in checked
        ]
        most = await self._nearly_full(drafts)
        now = microseconds()
        rows: list[StoredSubscription] = []
        places: list[int] = []
        tickets: list[str] = []
        known: dict[str, Checked] = {}
        for place, (draft, each) in enumerate(zip(drafts, checked, strict=True)):
            if found[place] is None and isinstance(each, Checked):
                tickets.append(new_word(TICKET))
                places.append(place)
                rows.append(self._row(draft, now, hashed(tickets[-1])))
                known.setdefault(draft.id, each)
        if rows:
            outcomes = await self._create(rows, known, most)
            for place, ticket, row, outcome in zip(places, tickets, rows, outcomes, strict=True):
                if isinstance(outcome, HarkenError):
                    found[place] = outcome
                else:
                    warnings = known[row.id].warnings
                    found[place] = NewSubscription(row.id, ticket, row.expires_at, warnings)
        return [each for each in found if each is not None]

    async def change(self, known: StoredSubscription, draft: SubscriptionDraft) -> tuple[int, tuple[str, ...]]:
        """Make a subscription another. Returns when it expires, and what to warn of."""
        (checked,) = await self._checked([draft])
        if isinstance(checked, HarkenError):
            raise checked
        row = self._row(draft, microseconds(), known.ticket)
        # What is said of no validity is valid for the default, and no shorter than it was.
        expires_at = row.expires_at if row.valid_for is not None else max(row.expires_at, known.expires_at)
        renewed = replace(row, owner=known.owner, created_at=known.created_at, since=known.since, expires_at=expires_at)

        def change(writing: Writing) -> list[StoredChange]:
            writing.change(renewed)
            return [StoredChange(writing.sequence, PUT, renewed.id, renewed)]

        await self._changed(change, {renewed.id: checked})
        return renewed.expires_at, checked.warnings

    async def renew(self, known: StoredSubscription, valid_for: float | None) -> int:
        """Have a subscription expire later. Returns when."""
        expires_at = microseconds() + self._microseconds(valid_for)
        renewed = replace(known, expires_at=expires_at, valid_for=None if valid_for is None else int(valid_for * 1e6))

        def renew(writing: Writing) -> list[StoredChange]:
            writing.renew(renewed.id, renewed.expires_at, renewed.valid_for)
            return [StoredChange(writing.sequence, RENEWED, renewed.id, renewed)]

        await self._changed(renew)
        return renewed.expires_at

    async def unsubscribe(self, id: str) -> None:
        """Let go of a subscription. Raises UnknownIdError."""

        def remove(writing: Writing) -> list[StoredChange]:
            writing.remove(id)
            return [StoredChange(writing.sequence, GONE, id, None)]

        await self._changed(remove)

    async def sweep(self) -> list[str]:
        """Let go of some that have expired, and return their ids."""

        def sweep(writing: Writing) -> list[StoredChange]:
            before = writing.sequence
            ids = writing.remove_expired(microseconds())
            return [StoredChange(sequence, GONE, id, None) for sequence, id in enumerate(ids, before + 1)]

        return [each.id for each in await self._changed(sweep)]

    async def extend_schema(self, extension: Extension) -> Schema:
        """Extend the schema. Raises SchemaError."""
        for _ in range(_MOST_TRIES):
            extended = self._index.extended(extension)
            if self._index.engine.schema is not None and extended.version == self._index.engine.schema.version:
                return extended  # it said so already
            text, version = format_schema(extended), extended.version

            def extend(writing: Writing, version: int = version, text: str = text) -> list[StoredChange]:
                writing.put_schema(version, text)
                return [StoredChange(writing.sequence, SCHEMA, str(version), None)]

            try:
                await self._changed(extend)
                return extended
            except BehindError:  # another process was first
                await self.follow()
        raise ExtensionError("the store has subscriptions, or other processes extend the schema all the time")

    async def _checked(self, drafts: Sequence[SubscriptionDraft]) -> list[Checked | HarkenError]:
        """Understand texts. What is refused may be right by the schema that another process has just extended."""
        known = self._index.sequence
        found = await self._readers.run(_check, self._index.engine, drafts)
        is_refused = any(isinstance(each, HarkenError) for each in found)
        if not is_refused or not self._store.is_shared:
            return found
        if await self._readers.run(lambda: self._store.sequence) == known:
            return found
        await self.follow()
        return await self._readers.run(_check, self._index.engine, drafts)

    async def follow(self) -> None:
        """Make the changes that other processes have logged."""
        await asyncio.wrap_future(self._committer.submit(_nothing, lambda _: _done(self._index.follow())))

    async def _create(
        self, rows: Sequence[StoredSubscription], known: dict[str, Checked], most: dict[str, int]
    ) -> list[StoredSubscription | HarkenError]:
        refused: dict[str, HarkenError] = {}

        def create(writing: Writing) -> tuple[list[StoredSubscription | HarkenError], list[StoredChange]]:
            found: list[StoredSubscription | HarkenError] = [*writing.create(rows, most)]
            made = [each for each in found if isinstance(each, StoredSubscription)]
            first = writing.sequence - len(made) + 1  # before them, those that had expired were removed
            return found, [StoredChange(at, PUT, each.id, each) for at, each in enumerate(made, first)]

        def index(result: tuple[list[StoredSubscription | HarkenError], list[StoredChange]]) -> None:
            for fault in self._index.apply(result[1], known):
                refused[str(fault.id)] = fault.error

        found, _ = await asyncio.wrap_future(self._committer.submit(create, index))
        for id in refused.keys() & {each.id for each in rows}:  # the index has no room for it
            await self.unsubscribe(id)
        return [
            refused[each.id] if isinstance(each, StoredSubscription) and each.id in refused else each for each in found
        ]

    async def _changed(
        self, work: Callable[[Writing], list[StoredChange]], checked: dict[str, Checked] | None = None
    ) -> list[StoredChange]:
        """Have a change written, and then matched with."""
        then = self._index.apply
        future = self._committer.submit(work, lambda changes: _done(then(changes, checked)))
        return await asyncio.wrap_future(future)

    async def _nearly_full(self, drafts: Sequence[SubscriptionDraft]) -> dict[str, int]:
        """Owners who are near what they may have, and that limit: they are counted again when the rows are written.

        To count the subscriptions of those who have very many takes long, and everybody else would wait for it.
        """
        most = self._settings.max_subscriptions_per_owner
        owners = {each.owner for each in drafts if each.owner is not None}
        return {each: most for each in owners if await self._readers.run(self._store.owned, each) > most - _NEAR}

    def _row(self, draft: SubscriptionDraft, now: int, ticket: bytes) -> StoredSubscription:
        """A subscription as it is stored, with its webhook's secret encrypted."""
        delivery = draft.delivery
        if delivery.secret is not None:
            delivery = replace(delivery, secret=self._store.sealing.sealed(delivery.secret))
        return StoredSubscription(
            draft.id,
            draft.where,
            draft.language,
            expires_at=now + self._microseconds(draft.valid_for),
            created_at=now,
            owner=draft.owner,
            labels=draft.labels,
            delivery=delivery,
            ticket=ticket,
            valid_for=None if draft.valid_for is None else int(draft.valid_for * 1e6),
        )

    def _microseconds(self, valid_for: float | None) -> int:
        """How long a subscription is valid."""
        return int((self._settings.valid_for if valid_for is None else valid_for) * 1e6)


def refuse_odd_id(id: str) -> None:
    """Raise InvalidIdError for an id that cannot stand in a path, a header or a log."""
    if not id or len(id) > _LONGEST_ID:
        raise InvalidIdError(f"an id has 1 to {_LONGEST_ID} characters, not {len(id)}")
    if id in (".", ".."):
        raise InvalidIdError(f"the id {id!r} cannot stand in a path")
    if not id.isprintable():
        raise InvalidIdError(f"the id {id!r:.60} has characters that cannot be printed")


def _check(engine: Engine, drafts: Sequence[SubscriptionDraft]) -> list[Checked | HarkenError]:
    with collector_paused():
        return [_checked(engine, each) for each in drafts]


def _checked(engine: Engine, draft: SubscriptionDraft) -> Checked | HarkenError:
    try:
        refuse_odd_id(draft.id)
        if "\0" in draft.where:
            raise ParseError("a subscription's text has no NUL characters")
        return engine.check(draft.where, draft.language)
    except HarkenError as error:
        return error


def _nothing(writing: Writing) -> None:
    pass


def _done(_: object) -> None:
    pass
