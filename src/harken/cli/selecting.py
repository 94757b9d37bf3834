"""The subscription and the event that `harken explain` explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import typer

from harken.cli.inputs import EventFiles, SubscriptionFiles, title_of
from harken.cli.json_output import to_text
from harken.engine import Engine
from harken.errors import SourceError, UnknownIdError, did_you_mean
from harken.events import Event
from harken.events.json_text import decode_object
from harken.limits import DEFAULT_LIMITS
from harken.live.subscriptions import Fault
from harken.schema import Path, Schema, format_path, parse_path

_MOST_FOR_A_HINT = 10_000
_BATCH = 256


@dataclass(frozen=True, slots=True)
class SubscriptionChoice:
    """A subscription of files by its id, or a text. Raises BadParameter if it is neither or both."""

    files: Sequence[str] | None
    id: str | None
    where: str | None
    language: str | None = None
    """The language of `where`; "sql" unless it is named."""

    def __post_init__(self) -> None:
        if (self.id is None) is (self.where is None):
            raise typer.BadParameter("give one of them", param_hint="--id or --where")
        if (self.id is None) is not (self.files is None):
            raise typer.BadParameter("give both or neither", param_hint="--subscriptions and --id")
        if self.language is not None and self.where is None:
            raise typer.BadParameter("only for --where: a subscription has its own language", param_hint="--language")

    def find(self, saved: Engine | None) -> tuple[str, str]:
        """The text and its language; by id from the engine, if there is one, else from files. Raises HarkenError."""
        if self.where is not None:
            return self.where, self.language or "sql"
        assert self.files is not None
        assert self.id is not None
        if saved is not None:
            subscription = saved.subscription(self.id)
            return subscription.where, subscription.language
        seen: list[str] = []
        for record in SubscriptionFiles(self.files):
            if record.id == self.id:
                if isinstance(record, Fault):
                    raise record.error
                return record.where, record.language
            if record.id is not None and len(seen) < _MOST_FOR_A_HINT:
                seen.append(record.id)
        hint = did_you_mean(self.id, seen)
        raise UnknownIdError(f"{title_of(self.files)} has no subscription {self.id!r}", hint=hint)


@dataclass(frozen=True, slots=True)
class EventChoice:
    """An event of files by its position or by its value of the field `id_field`, or an event given as JSON."""

    files: Sequence[str] | None
    event: str | None
    id_field: str | None
    json: str | None
    format: str | None
    split: str | None = None

    def __post_init__(self) -> None:
        if (self.files is None) is (self.json is None):
            raise typer.BadParameter("give one of them", param_hint="EVENTS or --event-json")
        if self.json is not None and (self.event is not None or self.id_field is not None):
            raise typer.BadParameter("there is only one event: --event-json", param_hint="--event or --event-id")
        if self.id_field is not None and self.event is None:
            raise typer.BadParameter("give the value of this field: --event VALUE", param_hint="--event-id")

    def find(self, schema: Schema | None, names: frozenset[str] | None) -> Event:
        """The event, with the attributes of these names. Raises HarkenError if it is missing or was rejected."""
        if self.json is not None:
            content = decode_object(self.json.encode(errors="surrogateescape"), DEFAULT_LIMITS)
            return Event.of(content, schema, names=names)
        assert self.files is not None
        events = EventFiles(self.files, self.format, schema, _BATCH, self.split)
        if self.id_field is None:
            return _at(events, _position(self.event), names)
        path = _path(self.id_field)
        assert self.event is not None
        return _named(events, path, self.event, None if names is None else names | {path[0]})


def _at(events: EventFiles, position: int, names: frozenset[str] | None) -> Event:
    count = 0
    for batch in events.batches(names):
        count += batch.size
        if count <= position:
            continue
        inside = position - batch.first
        for rejected in batch.decoded.rejected:
            if rejected.position == inside:
                raise rejected.error
        return batch.decoded.batch[batch.decoded.batch.positions.index(inside)]
    there_are = "no events" if count == 0 else f"{count:,} events, counted from 0"
    raise SourceError(f"there is no event {position}: {events.title} has {there_are}")


def _named(events: EventFiles, path: Path, value: str, names: frozenset[str] | None) -> Event:
    rejected = 0
    for batch in events.batches(names):
        rejected += len(batch.decoded.rejected)
        for event in batch.decoded.batch:
            if any(to_text(each) == value for each in event.values(path)):
                return event
    hint = f"{rejected:,} events were rejected: `harken check --events` tells why" if rejected else None
    raise SourceError(f"{events.title} has no event with {format_path(path)} = {value}", hint=hint)


def _position(event: str | None) -> int:
    if event is None:
        return 0
    if event.isascii() and event.isdigit():
        return int(event)
    hint = "a position is a number from 0; to give the value of a field, name the field by --event-id"
    raise typer.BadParameter(f"{event!r}: {hint}", param_hint="--event")


def _path(field: str) -> Path:
    try:
        return parse_path(field)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--event-id") from None
