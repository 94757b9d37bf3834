"""Changes of subscriptions and schema: checked, written to the store, and indexed before the request is answered."""

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
from harken.server.credentials import TICKET, hashed, new_credential
from harken.server.reading import Readers
from harken.server.served_index import ServedIndex
from harken.server.settings import ServerSettings
from harken.store import BehindError, Store, StoredChange, StoredDelivery, StoredSubscription, Writing
from harken.store.store import microseconds
from harken.store.stored import GONE, PUT, RENEWED, SCHEMA

_LONGEST_ID = 200
_MOST_TRIES = 10
_NEAR = 20_000
"""How close to its limit an owner is counted exactly. More subscriptions of one owner than requests add at one time."""


@dataclass(frozen=True, slots=True)
class SubscriptionDraft:
    """A subscription as a request describes it."""

    id: str
    where: str
    language: str
    valid_for: float | None
    """Seconds; None for the server's default."""
    owner: str | None
    labels: dict[str, str]
    delivery: StoredDelivery


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A subscription that was created. Show the ticket now: the store has only its hash."""

    id: str
    ticket: str
    expires_at: int
    warnings: tuple[str, ...]


class SubscriptionService:
    """Makes all changes of subscriptions and schema."""

    def __init__(
        self, settings: ServerSettings, store: Store, index: ServedIndex, committer: Committer, readers: Readers
    ) -> None:
        self._settings = settings
        self._store = store
        self._index = index
        self._committer = committer
        self._readers = readers

    async def subscribe(self, drafts: Sequence[SubscriptionDraft]) -> list[NewSubscription | HarkenError]:
        """Create subscriptions. Returns each new subscription, or the error for which it was rejected."""
        checked = await self._checked(drafts)
        outcomes: list[NewSubscription | HarkenError | None] = [
            each if isinstance(each, HarkenError) else None for each in checked
        ]
        most = await self._nearly_full(drafts)
        now = microseconds()
        rows: list[StoredSubscription] = []
        places: list[int] = []
        tickets: list[str] = []
        checked_by_id: dict[str, Checked] = {}
        for place, (draft, each) in enumerate(zip(drafts, checked, strict=True)):
            if outcomes[place] is None and isinstance(each, Checked):
                tickets.append(new_credential(TICKET))
                places.append(place)
                rows.append(self._row(draft, now, hashed(tickets[-1])))
                checked_by_id.setdefault(draft.id, each)
        if rows:
            created = await self._create(rows, checked_by_id, most)
            for place, ticket, row, outcome in zip(places, tickets, rows, created, strict=True):
                if isinstance(outcome, HarkenError):
                    outcomes[place] = outcome
                else:
                    warnings = checked_by_id[row.id].warnings
                    outcomes[place] = NewSubscription(row.id, ticket, row.expires_at, warnings)
        return [each for each in outcomes if each is not None]

    async def change(self, before: StoredSubscription, draft: SubscriptionDraft) -> tuple[int, tuple[str, ...]]:
        """Replace a subscription. Returns when the new one expires, and warnings."""
        (checked,) = await self._checked([draft])
        if isinstance(checked, HarkenError):
            raise checked
        row = self._row(draft, microseconds(), before.ticket)
        # Without a requested validity it gets the default, but does not expire earlier than before.
        expires_at = row.expires_at if row.valid_for is not None else max(row.expires_at, before.expires_at)
        after = replace(
            row, owner=before.owner, created_at=before.created_at, since=before.since, expires_at=expires_at
        )

        def change(writing: Writing) -> list[StoredChange]:
            writing.change(after)
            return [StoredChange(writing.sequence, PUT, after.id, after)]

        await self._write(change, {after.id: checked})
        return after.expires_at, checked.warnings

    async def renew(self, before: StoredSubscription, valid_for: float | None) -> int:
        """Extend a subscription from now on. Returns when it expires."""
        expires_at = microseconds() + self._microseconds(valid_for)
        renewed = replace(before, expires_at=expires_at, valid_for=None if valid_for is None else int(valid_for * 1e6))

        def renew(writing: Writing) -> list[StoredChange]:
            writing.renew(renewed.id, renewed.expires_at, renewed.valid_for)
            return [StoredChange(writing.sequence, RENEWED, renewed.id, renewed)]

        await self._write(renew)
        return renewed.expires_at

    async def unsubscribe(self, id: str) -> None:
        """Remove a subscription. Raises UnknownIdError."""

        def remove(writing: Writing) -> list[StoredChange]:
            writing.remove(id)
            return [StoredChange(writing.sequence, GONE, id, None)]

        await self._write(remove)

    async def sweep(self) -> list[str]:
        """Remove some expired subscriptions, and return their ids."""

        def sweep(writing: Writing) -> list[StoredChange]:
            before = writing.sequence
            ids = writing.remove_expired(microseconds())
            return [StoredChange(sequence, GONE, id, None) for sequence, id in enumerate(ids, before + 1)]

        return [each.id for each in await self._write(sweep)]

    async def extend_schema(self, extension: Extension) -> Schema:
        """Extend the schema. Raises SchemaError."""
        for _ in range(_MOST_TRIES):
            extended = self._index.extended(extension)
            if self._index.engine.schema is not None and extended.version == self._index.engine.schema.version:
                return extended  # the schema has this extension already
            text, version = format_schema(extended), extended.version

            def extend(writing: Writing, version: int = version, text: str = text) -> list[StoredChange]:
                writing.put_schema(version, text)
                return [StoredChange(writing.sequence, SCHEMA, str(version), None)]

            try:
                await self._write(extend)
                return extended
            except BehindError:  # another process extended the schema first
                await self.follow()
        raise ExtensionError("the store has subscriptions, or other processes keep extending the schema")

    async def _checked(self, drafts: Sequence[SubscriptionDraft]) -> list[Checked | HarkenError]:
        """Check drafts. If one is rejected, check again with changes of the schema by other processes."""
        sequence = self._index.sequence
        checked = await self._readers.run(_check, self._index.engine, drafts)
        is_rejected = any(isinstance(each, HarkenError) for each in checked)
        if not is_rejected or not self._store.is_shared:
            return checked
        if await self._readers.run(lambda: self._store.sequence) == sequence:
            return checked
        await self.follow()
        return await self._readers.run(_check, self._index.engine, drafts)

    async def follow(self) -> None:
        """Apply the changes that other processes have logged."""
        await asyncio.wrap_future(self._committer.submit(_nothing, lambda _: _done(self._index.follow())))

    async def _create(
        self, rows: Sequence[StoredSubscription], checked: dict[str, Checked], most: dict[str, int]
    ) -> list[StoredSubscription | HarkenError]:
        """Write new subscriptions and index them. Those that cannot be indexed are removed again."""
        faults: dict[str, HarkenError] = {}

        def create(writing: Writing) -> tuple[list[StoredSubscription | HarkenError], list[StoredChange]]:
            outcomes: list[StoredSubscription | HarkenError] = [*writing.create(rows, most)]
            new = [each for each in outcomes if isinstance(each, StoredSubscription)]
            first = writing.sequence - len(new) + 1  # the changes before it removed expired subscriptions
            return outcomes, [StoredChange(sequence, PUT, each.id, each) for sequence, each in enumerate(new, first)]

        def index(result: tuple[list[StoredSubscription | HarkenError], list[StoredChange]]) -> None:
            for fault in self._index.apply(result[1], checked):
                faults[str(fault.id)] = fault.error

        outcomes, _ = await asyncio.wrap_future(self._committer.submit(create, index))
        for id in faults.keys() & {each.id for each in rows}:
            await self.unsubscribe(id)
        return [
            faults[each.id] if isinstance(each, StoredSubscription) and each.id in faults else each for each in outcomes
        ]

    async def _write(
        self, work: Callable[[Writing], list[StoredChange]], checked: dict[str, Checked] | None = None
    ) -> list[StoredChange]:
        """Write changes to the store, then apply them to the index."""
        then = self._index.apply
        future = self._committer.submit(work, lambda changes: _done(then(changes, checked)))
        return await asyncio.wrap_future(future)

    async def _nearly_full(self, drafts: Sequence[SubscriptionDraft]) -> dict[str, int]:
        """The owners who are close to their limit, with the limit.

        Only their subscriptions are counted again in the write transaction: counting very many would block it for long.
        """
        most = self._settings.max_subscriptions_per_owner
        owners = {each.owner for each in drafts if each.owner is not None}
        return {each: most for each in owners if await self._readers.run(self._store.owned, each) > most - _NEAR}

    def _row(self, draft: SubscriptionDraft, now: int, ticket: bytes) -> StoredSubscription:
        """A draft as a row of the store, with its webhook's secret encrypted."""
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
        """The requested validity, or the default, in microseconds."""
        return int((self._settings.valid_for if valid_for is None else valid_for) * 1e6)


def reject_odd_id(id: str) -> None:
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
        reject_odd_id(draft.id)
        if "\0" in draft.where:
            raise ParseError("a subscription's text has no NUL characters")
        return engine.check(draft.where, draft.language)
    except HarkenError as error:
        return error


def _nothing(writing: Writing) -> None:
    pass


def _done(_: object) -> None:
    pass
