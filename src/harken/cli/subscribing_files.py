"""The work of `harken subscribe --file`: subscriptions of files are sent, and the result for each is reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, NamedTuple

from harken.cli.durations import seconds_of
from harken.cli.input_findings import InputFinding
from harken.cli.json_output import to_text
from harken.cli.rejections import Rejections, rejections
from harken.cli.screen import Screen, counted
from harken.client import Client, LineReport
from harken.client.answers import in_text
from harken.errors import HarkenError, SourceError, SubscriptionError
from harken.events import read_rows
from harken.events.row import Row

_FIELDS = ("id", "where", "language", "owner", "valid_for", "delivery")


@dataclass(slots=True)
class SubscribeSummary:
    """The result of subscribing."""

    accepted: int
    rejected: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data."""
        return {"kind": "summary", **asdict(self)}

    def __str__(self) -> str:
        rejected = f" ({self.rejected:,} rejected)" if self.rejected else ""
        return f"{counted(self.accepted, 'subscription')}{rejected} · {self.seconds:.2f} s"


class _Origin(NamedTuple):
    """Where a subscription was read, and its id."""

    file: str
    position: int
    line: int | None
    id: str | None


def subscribe_files(
    client: Client, files: Sequence[str], given: Mapping[str, Any], file: str | None, screen: Screen
) -> SubscribeSummary:
    """Add all subscriptions of files, and write rejected ones to `file`.

    `given` has defaults for fields that a subscription lacks.
    """
    started = perf_counter()
    sources = [(each, read_rows(each, types=False)) for each in files]
    with rejections(screen, file) as rejected, screen.progress("subscribing") as advance:
        reading = _Reading(sources, given, rejected)
        accepted = 0
        for report in client.subscribe_many(reading.subscriptions()):
            accepted += _reported(report, reading.origins.pop(report.line), screen, rejected)
            advance(1)
    if reading.fault is not None:
        raise reading.fault
    count = rejected.counts["subscription"]
    if not accepted + count:
        raise SourceError(f"there is no subscription in {', '.join(files)}")
    return SubscribeSummary(accepted, count, perf_counter() - started)


class _Reading:
    """Reads subscriptions from rows of files, and remembers the origin of those sent and not reported yet."""

    def __init__(
        self, sources: Sequence[tuple[str, Iterator[Row]]], given: Mapping[str, Any], rejected: Rejections
    ) -> None:
        self._sources = sources
        self._given = given
        self._rejected = rejected
        self.origins: dict[int, _Origin] = {}
        """The origins, by the position of the subscription among those sent, from 1."""
        self.fault: SourceError | None = None
        """The error that broke a file, if any. Subscriptions before it are sent."""

    def subscriptions(self) -> Iterator[Mapping[str, Any]]:
        sent = 0
        for position, (file, row) in enumerate(self._rows()):
            origin = _Origin(file, position, row.line, None if row.content is None else _id(row.content))
            try:
                if row.error is not None:
                    raise row.error
                body = described(row.content or {}, self._given)
            except HarkenError as error:
                self._rejected.add(_finding(origin, error))
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
    fields = {name: content[name] for name in _FIELDS if content.get(name) is not None}
    if "where" not in fields:
        raise SubscriptionError("the subscription has no `where`")
    if "id" in fields:
        fields["id"] = _id(fields)
    if isinstance(fields.get("valid_for"), str):
        try:
            fields["valid_for"] = seconds_of(fields["valid_for"])
        except ValueError as error:
            raise SubscriptionError(str(error)) from None
    labels = content.get("labels")
    if labels is not None and not isinstance(labels, Mapping):
        raise SubscriptionError("`labels` are an object of texts")
    others = {name: value for name, value in content.items() if name not in (*_FIELDS, "labels")}
    texts = {name: to_text(value) for name, value in {**others, **(labels or {})}.items() if value is not None}
    all_labels = {**given.get("labels", {}), **texts}
    return {**given, **fields, **({"labels": all_labels} if all_labels else {})}


def _id(content: Mapping[str, Any]) -> str | None:
    """The id as a string: many tables number their rows."""
    id = content.get("id")
    return None if id is None else str(id)


def _reported(report: LineReport, origin: _Origin, screen: Screen, rejected: Rejections) -> bool:
    """Report the result for one subscription, and return whether it was accepted."""
    if report.error is not None:
        rejected.add(_finding(origin, report.error))
        return False
    for warning in report.warnings:
        rejected.warn(_finding(origin._replace(id=report.id), HarkenError(warning), is_warning=True))
    if not screen.is_table:
        expires_at = None if report.expires_at is None else in_text(report.expires_at)
        secret = {} if report.webhook_secret is None else {"webhook_secret": report.webhook_secret}
        screen.line({"id": report.id, "ticket": report.ticket, "expires_at": expires_at, **secret})
    return True


def _finding(origin: _Origin, error: HarkenError, *, is_warning: bool = False) -> InputFinding:
    return InputFinding(
        "subscription", origin.file, error, origin.position, origin.line, origin.id, is_warning=is_warning
    )
