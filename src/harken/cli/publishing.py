"""The work of `harken publish`: events are read from files and sent in batches, and rejected ones are reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from harken import errors
from harken.cli.input_findings import InputFinding
from harken.cli.inputs import title_of
from harken.cli.rejections import Rejections, rejections
from harken.cli.screen import Screen, counted
from harken.client import Client, Published, Rejected, ServerError
from harken.errors import HarkenError, LimitError, Place, SourceError
from harken.events.document_batches import document_pieces
from harken.events.event_rows import rows_of
from harken.events.json_text import decode_object
from harken.events.pieces import Piece, place_in
from harken.events.sources import STANDARD_INPUT, Source, find_source, opened
from harken.limits import DEFAULT_LIMITS


class EventItem(NamedTuple):
    """One event to publish, or the reason why it cannot be read, and its place."""

    file: str
    first: int
    """Number of events in the files before this one."""
    position: int
    line: int | None
    event: Any
    raw: str | None = None
    error: HarkenError | None = None
    piece: Piece | None = None
    """The document, if the event is one."""


@dataclass(frozen=True, slots=True)
class Events:
    """The events to publish, and the name of their source."""

    title: str
    items: Iterable[EventItem]


@dataclass(slots=True)
class PublishSummary:
    """The result of publishing. `matches` is counted in a dry run."""

    events: int = 0
    accepted: int = 0
    rejected: int = 0
    duplicates: int = 0
    matches: int | None = None
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data."""
        return {"kind": "summary", **{name: value for name, value in asdict(self).items() if value is not None}}

    def __str__(self) -> str:
        parts = [counted(self.events, "event")]
        if self.matches is None:
            parts.append(f"{self.accepted:,} accepted")
        else:
            parts.append(f"{counted(self.matches, 'match')}, nothing published")
        if self.duplicates:
            parts.append(f"{self.duplicates:,} had been accepted before")
        if self.rejected:
            parts.append(f"{self.rejected:,} rejected")
        return " · ".join([*parts, f"{self.seconds:.2f} s"])


def events_of_texts(texts: Sequence[str]) -> Events:
    """Events given as JSON. Raises HarkenError if one is not a JSON object."""
    objects = [decode_object(text.encode(errors="surrogateescape"), DEFAULT_LIMITS) for text in texts]
    return Events("--event-json", [EventItem("--event-json", 0, at, None, each) for at, each in enumerate(objects)])


def events_of_files(files: Sequence[str], format: str | None, split: str | None) -> Events:
    """The events of files. Raises SourceError at once if a file is missing."""
    sources = [find_source(file, _format(file, format, split)) for file in files]
    for source in sources:
        if split is not None and source.format != "xml":
            raise SourceError(f"{source.name} is not XML: there are no elements to split it by")
    return Events(title_of(files), _items(sources, split))


def run(
    client: Client, events: Events, batch_size: int, file: str | None, screen: Screen, *, dry_run: bool
) -> PublishSummary:
    """Publish events, or show what they match. Raises HarkenError if nothing can be published."""
    started = perf_counter()
    summary = PublishSummary(matches=0 if dry_run else None)
    what = "matching events" if dry_run else "publishing events"
    with rejections(screen, file) as rejected, screen.progress(what) as advance:
        items, fault = iter(events.items), None
        while fault is None:
            batch, fault = _taken(items, batch_size)
            if not batch:
                break
            good = [item for item in batch if item.error is None]
            for item in batch:
                if item.error is not None:
                    rejected.add(_unreadable(item, item.error))
            if dry_run:
                _match(client, good, screen, summary, rejected)
            else:
                _publish(client, good, summary, rejected)
            summary.events += len(batch)
            advance(len(batch))
    if fault is not None:
        raise fault
    if not summary.events:
        raise SourceError(f"there is no event in {events.title}")
    summary.rejected = rejected.counts["event"]
    summary.seconds = perf_counter() - started
    return summary


def _taken(items: Iterator[EventItem], size: int) -> tuple[list[EventItem], SourceError | None]:
    """The next events, and the error that broke the file after them, if there is one."""
    taken: list[EventItem] = []
    try:
        taken.extend(islice(items, size))
    except SourceError as error:
        return taken, error
    return taken, None


def _publish(client: Client, items: Sequence[EventItem], summary: PublishSummary, rejected: Rejections) -> None:
    try:
        done = client.publish([item.event for item in items])
    except ServerError as error:
        if not error.rejected:
            raise
        done = Published(0, error.rejected)
    summary.accepted += done.accepted
    summary.duplicates += done.duplicates
    for each in done.rejected:
        rejected.add(_rejected(items[each.position], each))


def _match(
    client: Client, items: Sequence[EventItem], screen: Screen, summary: PublishSummary, rejected: Rejections
) -> None:
    matched = client.match([item.event for item in items])
    for each in matched.rejected:
        rejected.add(_rejected(items[each.position], each))
    summary.accepted += len(items) - len(matched.rejected)
    summary.matches = (summary.matches or 0) + sum(map(len, matched))
    for item, ids in zip(items, matched, strict=True):
        for id in ids:
            screen.line({"event": item.first + item.position, "subscription": id})


def _items(sources: Sequence[Source], split: str | None) -> Iterator[EventItem]:
    count = 0
    for source in sources:
        first = count
        for item in _documents(source, first, split) if source.format == "xml" else _objects(source, first):
            count += 1
            yield item


def _objects(source: Source, first: int) -> Iterator[EventItem]:
    for row in rows_of(source, DEFAULT_LIMITS):
        yield EventItem(source.name, first, row.position, row.line, row.content, row.raw, row.error)


def _documents(source: Source, first: int, split: str | None) -> Iterator[EventItem]:
    with opened(source) as stream:
        for position, piece in enumerate(document_pieces(stream, split, DEFAULT_LIMITS)):
            error = piece.error
            if error is not None:
                error.place = place_in(piece, error.place, source.name, is_exact=True)
            yield EventItem(source.name, first, position, piece.line, piece.data, piece.excerpt, error, piece)


def _format(file: str, format: str | None, split: str | None) -> str | None:
    return "xml" if format is None and split is not None and file == STANDARD_INPUT else format


def _unreadable(item: EventItem, error: HarkenError) -> InputFinding:
    return InputFinding("event", item.file, error, item.first + item.position, None, None, item.raw, first=item.first)


def _rejected(item: EventItem, rejected: Rejected) -> InputFinding:
    """The finding for a rejected event, with its place in the file, not in the request."""
    kind = getattr(errors, rejected.error, HarkenError)
    is_plain = isinstance(kind, type) and issubclass(kind, HarkenError) and not issubclass(kind, LimitError)
    error = (kind if is_plain else HarkenError)(rejected.message, hint=rejected.hint)
    if item.piece is not None:
        error.place, error.excerpt = place_in(item.piece, rejected.place, item.file), rejected.excerpt
    elif item.line is not None:
        error.place = Place(item.line, None, item.file)
    return _unreadable(item, error)
