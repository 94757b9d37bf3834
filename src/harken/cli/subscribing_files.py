"""The work of `harken subscribe --file`: subscriptions of files are sent, and what came of each is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, NamedTuple

from harken.cli.durations import seconds_of
from harken.cli.input_findings import InputFinding
from harken.cli.json_output import to_text
from harken.cli.refusals import Refusals, refusals
from harken.cli.screen import Screen, counted
from harken.client import Client, LineReport
from harken.client.answers import in_text
from harken.errors import HarkenError, SourceError, SubscriptionError
from harken.events import read_rows
from harken.events.row import Row

_FIELDS = ("id", "where", "language", "owner", "valid_for", "delivery")


@dataclass(slots=True)
class SubscribeSummary:
    """What came of it."""

    accepted: int
    rejected: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data."""
        return {"kind": "summary", **asdict(self)}

    def __str__(self) -> str:
        refused = f" ({self.rejected:,} refused)" if self.rejected else ""
        return f"{counted(self.accepted, 'subscription')}{refused} · {self.seconds:.2f} s"


class _Origin(NamedTuple):
    """Where a subscription was read."""

    file: str
    position: int
    line: int | None
    id: str | None


def subscribe_files(
    client: Client, files: Sequence[str], given: Mapping[str, Any], file: str | None, screen: Screen
) -> SubscribeSummary:
    """Subscribe to all that files have, and write what was refused to `file`.

    `given` is what subscriptions are that do not say otherwise.
    """
    started = perf_counter()
    sources = [(each, read_rows(each, types=False)) for each in files]
    with refusals(screen, file) as refused, screen.progress("subscribing") as advance:
        reading = _Reading(sources, given, refused)
        accepted = 0
        for report in client.subscribe_many(reading.subscriptions()):
            accepted += _reported(report, reading.origins.pop(report.line), screen, refused)
            advance(1)
    if reading.fault is not None:
        raise reading.fault
    rejected = refused.counts["subscription"]
    if not accepted + rejected:
        raise SourceError(f"there is no subscription in {', '.join(files)}")
    return SubscribeSummary(accepted, rejected, perf_counter() - started)


class _Reading:
    """Reads subscriptions from rows of files, and remembers where those were that are under way."""

    def __init__(
        self, sources: Sequence[tuple[str, Iterator[Row]]], given: Mapping[str, Any], refused: Refusals
    ) -> None:
        self._sources = sources
        self._given = given
        self._refused = refused
        self.origins: dict[int, _Origin] = {}
        """By the number of the subscription among those that were sent, from 1."""
        self.fault: SourceError | None = None
        """What broke a file. What came before is not lost."""

    def subscriptions(self) -> Iterator[Mapping[str, Any]]:
        sent = 0
        for position, (file, row) in enumerate(self._rows()):
            origin = _Origin(file, position, row.line, None if row.content is None else _id(row.content))
            try:
                if row.error is not None:
                    raise row.error
                body = described(row.content or {}, self._given)
            except HarkenError as error:
                self._refused.add(_finding(origin, error))
                continue
            sent += 1
            self.origins[sent] = origin
            yield body

    def _rows(self) -> Iterator[tuple[str, Row]]:
        try:
            for file, rows in self._sources:
                yield from ((file, row) for row in rows)
        except SourceError as error:
            self.fault = error


def described(content: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The subscription that a row describes. Raises SubscriptionError."""
    own = {name: content[name] for name in _FIELDS if content.get(name) is not None}
    if "where" not in own:
        raise SubscriptionError("the subscription has no `where`")
    if "id" in own:
        own["id"] = _id(own)
    if isinstance(own.get("valid_for"), str):
        try:
            own["valid_for"] = seconds_of(own["valid_for"])
        except ValueError as error:
            raise SubscriptionError(str(error)) from None
    labels = content.get("labels")
    if labels is not None and not isinstance(labels, Mapping):
        raise SubscriptionError("`labels` are an object of texts")
    further = {name: value for name, value in content.items() if name not in (*_FIELDS, "labels")}
    named = {name: to_text(value) for name, value in {**further, **(labels or {})}.items() if value is not None}
    every = {**given.get("labels", {}), **named}
    return {**given, **own, **({"labels": every} if every else {})}


def _id(content: Mapping[str, Any]) -> str | None:
    """The id as a string: many tables number their rows."""
    id = content.get("id")
    return None if id is None else str(id)


def _reported(report: LineReport, origin: _Origin, screen: Screen, refused: Refusals) -> bool:
    """Report what came of one subscription, and return whether it was accepted."""
    if report.error is not None:
        refused.add(_finding(origin, report.error))
        return False
    for warning in report.warnings:
        refused.warn(_finding(origin._replace(id=report.id), HarkenError(warning), is_warning=True))
    if not screen.is_table:
        expires_at = None if report.expires_at is None else in_text(report.expires_at)
        secret = {} if report.webhook_secret is None else {"webhook_secret": report.webhook_secret}
        screen.line({"id": report.id, "ticket": report.ticket, "expires_at": expires_at, **secret})
    return True


def _finding(origin: _Origin, error: HarkenError, *, is_warning: bool = False) -> InputFinding:
    return InputFinding(
        "subscription", origin.file, error, origin.position, origin.line, origin.id, is_warning=is_warning
    )
