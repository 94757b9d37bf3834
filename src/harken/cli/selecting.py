"""Which subscription and which event `harken explain` is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import typer

from harken.cli.json_text import to_text
from harken.errors import SourceError, UnknownIdError, did_you_mean
from harken.events import Decoded, Event, read_events, read_rows
from harken.events.json_text import decode_object
from harken.limits import DEFAULT_LIMITS
from harken.schema import Path, Schema, parse_path
from harken.subscriptions import Fault, records_of_rows

_MOST_FOR_A_HINT = 10_000
_BATCH = 256


@dataclass(frozen=True, slots=True)
class SubscriptionChoice:
    """A subscription of a file by its id, or a text. Raises BadParameter where it is neither or both."""

    file: str | None
    id: str | None
    where: str | None

    def __post_init__(self) -> None:
        if (self.id is None) is (self.where is None):
            raise typer.BadParameter("give one of them", param_hint="--id or --where")
        if (self.id is None) is not (self.file is None):
            raise typer.BadParameter("they belong together", param_hint="--subscriptions and --id")

    def find(self) -> tuple[str, str]:
        """The text and its language. Raises HarkenError."""
        if self.where is not None or self.file is None:
            return self.where or "", "sql"
        seen: list[str] = []
        for record in records_of_rows(read_rows(self.file, types=False)):
            if record.id == self.id:
                if isinstance(record, Fault):
                    raise record.error
                return record.where, record.language
            if record.id is not None and len(seen) < _MOST_FOR_A_HINT:
                seen.append(record.id)
        hint = did_you_mean(self.id or "", seen)
        raise UnknownIdError(f"{self.file} has no subscription {self.id!r}", hint=hint)


@dataclass(frozen=True, slots=True)
class EventChoice:
    """An event of a file by its position or by the value of a field, or one that is given as JSON."""

    file: str | None
    position: int | None
    name: str | None
    json: str | None
    format: str | None

    def __post_init__(self) -> None:
        if (self.file is None) is (self.json is None):
            raise typer.BadParameter("give one of them", param_hint="EVENTS or --event-json")
        if len([each for each in (self.position, self.name, self.json) if each is not None]) > 1:
            raise typer.BadParameter("give only one of them", param_hint="--event, --event-id or --event-json")

    def find(self, schema: Schema | None) -> Event:
        """The event. Raises HarkenError if it is not there or was refused."""
        if self.json is not None or self.file is None:
            return Event.of(decode_object((self.json or "").encode(errors="surrogateescape"), DEFAULT_LIMITS), schema)
        with closing(_batches(self.file, self.format, schema)) as batches:
            if self.name is not None:
                return _named(batches, self.name, self.file)
            return _at(batches, self.position or 0, self.file)


def _batches(file: str, format: str | None, schema: Schema | None) -> Any:
    return read_events(file, format, schema, batch_size=_BATCH)


def _at(batches: Iterator[Decoded], position: int, file: str) -> Event:
    count = 0
    for decoded in batches:
        count += len(decoded.batch) + len(decoded.refused)
        if count <= position:
            continue
        for refused in decoded.refused:
            if refused.position == position:
                raise refused.error
        return decoded.batch[decoded.batch.positions.index(position)]
    there_are = "has no events" if count == 0 else f"has {count:,} events, counted from 0"
    raise SourceError(f"there is no event {position} in {file}: it {there_are}")


def _named(batches: Iterator[Decoded], name: str, file: str) -> Event:
    path, value = _field_and_value(name)
    refused = 0
    for decoded in batches:
        refused += len(decoded.refused)
        for event in decoded.batch:
            if any(to_text(each) == value for each in event.values(path)):
                return event
    hint = f"events were refused, {refused:,} in all: `harken check --events {file}` tells why" if refused else None
    raise SourceError(f"{file} has no event with {name}", hint=hint)


def _field_and_value(name: str) -> tuple[Path, str]:
    field, sign, value = name.partition("=")
    try:
        if not sign:
            raise ValueError("write FIELD=VALUE")
        return parse_path(field), value
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--event-id") from None
