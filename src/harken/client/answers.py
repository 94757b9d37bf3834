"""The server's answers as plain typed objects, which the methods of a client return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from harken.errors import HarkenError, Place

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ticketed:
    """A new subscription. The ticket allows to read, change, renew and end it."""

    id: str
    ticket: str = field(repr=False)
    expires_at: datetime
    warnings: tuple[str, ...] = ()
    webhook_secret: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, plain: Json) -> Ticketed:
        warnings = tuple(plain.get("warnings") or ())
        return cls(plain["id"], plain["ticket"], moment(plain["expires_at"]), warnings, plain.get("webhook_secret"))


@dataclass(frozen=True, slots=True)
class Changed:
    """A changed or renewed subscription, and when it expires now."""

    id: str
    expires_at: datetime
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, plain: Json) -> Changed:
        return cls(plain["id"], moment(plain["expires_at"]), tuple(plain.get("warnings") or ()))


@dataclass(frozen=True, slots=True)
class LineReport:
    """The result for one subscription of many: a ticket, or an error. `line` is its position in the input, from 1."""

    line: int
    id: str | None
    ticket: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None
    warnings: tuple[str, ...] = ()
    webhook_secret: str | None = field(default=None, repr=False)
    error: HarkenError | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionState:
    """A subscription of the server. If the client may not read it, most fields are None."""

    id: str
    language: str
    expires_at: datetime
    where: str | None = None
    owner: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    delivery: Json | None = None
    webhook: Json | None = None
    """State, failures and next attempt of its webhook, if it has one."""

    @classmethod
    def of(cls, plain: Json) -> SubscriptionState:
        return cls(
            plain["id"],
            plain["language"],
            moment(plain["expires_at"]),
            plain.get("where"),
            plain.get("owner"),
            plain.get("labels") or {},
            _moment(plain.get("created_at")),
            plain.get("delivery"),
            plain.get("webhook"),
        )


@dataclass(frozen=True, slots=True)
class Rejected:
    """An event that was not accepted: its position in the input, from 0, and the reason."""

    position: int
    error: str
    """The kind of error, as `DecodeError`."""
    message: str
    place: Place | None = None
    excerpt: str | None = None
    hint: str | None = None

    @classmethod
    def of(cls, plain: Json) -> Rejected:
        line = plain.get("line")
        place = None if line is None else Place(line, plain.get("column"))
        what = (plain["position"], plain["error"], plain["message"])
        return cls(*what, place, plain.get("excerpt"), plain.get("hint"))

    @classmethod
    def because(cls, error: HarkenError, position: int) -> Rejected:
        """The rejection of an event that could not be sent."""
        return cls(position, type(error).__name__, error.message, error.place, error.excerpt, error.hint)

    def at(self, position: int) -> Rejected:
        """The rejection with another position."""
        return replace(self, position=position)


@dataclass(frozen=True, slots=True)
class Published:
    """The result of publishing. `duplicates` were accepted before, under the same idempotency key."""

    accepted: int
    rejected: tuple[Rejected, ...] = ()
    duplicates: int = 0


class Matched(list[list[str]]):
    """For each event the ids of the subscriptions that are true of it; empty where the event was rejected."""

    def __init__(self, ids: Iterable[list[str]] = (), rejected: tuple[Rejected, ...] = ()) -> None:
        super().__init__(ids)
        self.rejected = rejected


@dataclass(frozen=True, slots=True)
class Notification:
    """An event that matched a subscription. The notification's id is a cursor: `after=id` continues after it."""

    id: str
    subscription: str
    event: Any
    """An object, or the text of an XML document."""
    event_id: str
    time: datetime
    suppressed: int = 0
    """The number of notifications left out before this one, because the subscription is throttled."""
    event_gone: str | None = None
    """Why the event is no longer available, if `event` is None."""

    @classmethod
    def of(cls, plain: Json) -> Notification:
        """A notification from JSON, plain or in a CloudEvent."""
        plain = plain["data"] if "specversion" in plain else plain
        return cls(
            str(plain["id"]),
            plain["subscription"],
            plain["event"],
            str(plain["event_id"]),
            moment(plain["time"]),
            plain.get("suppressed") or 0,
            plain.get("event_gone"),
        )

    def to_dict(self) -> dict[str, Any]:
        """The notification as plain data."""
        plain = {
            "id": self.id,
            "subscription": self.subscription,
            "event_id": self.event_id,
            "time": in_text(self.time),
            "event": self.event,
        }
        optional = {"suppressed": self.suppressed or None, "event_gone": self.event_gone}
        return plain | {name: value for name, value in optional.items() if value is not None}


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """Notifications, oldest first, and the cursor to continue after them."""

    notifications: tuple[Notification, ...]
    next: str

    @classmethod
    def of(cls, plain: Json) -> NotificationPage:
        return cls(tuple(map(Notification.of, plain["notifications"])), str(plain["next"]))


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A notification that could not be delivered to a webhook, after all attempts."""

    id: str
    event: Any
    time: datetime
    failed_at: datetime
    attempts: int
    reason: str
    event_gone: str | None = None
    """Why the event is no longer available, if `event` is None."""

    @classmethod
    def of(cls, plain: Json) -> DeadLetter:
        return cls(
            str(plain["id"]),
            plain["event"],
            moment(plain["time"]),
            moment(plain["failed_at"]),
            plain["attempts"],
            plain["reason"],
            plain.get("event_gone"),
        )


@dataclass(frozen=True, slots=True)
class Explained:
    """Whether and why an event matches. `str()` draws the tree; `tree` has it as data."""

    matched: bool
    tree: Json
    text: str

    @classmethod
    def of(cls, plain: Json) -> Explained:
        return cls(plain["matched"], plain["tree"], plain["text"])

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Example:
    """An event of the journal that matched in a backtest."""

    event_id: str
    time: datetime
    event: Any


@dataclass(frozen=True, slots=True)
class Backtested:
    """What a subscription would have matched among the newest events of the journal."""

    looked_at: int
    matched: int
    examples: tuple[Example, ...]
    earliest: datetime | None
    latest: datetime | None

    @classmethod
    def of(cls, plain: Json) -> Backtested:
        examples = tuple(
            Example(str(each["event_id"]), moment(each["time"]), each["event"]) for each in plain["examples"]
        )
        return cls(plain["looked_at"], plain["matched"], examples, _moment(plain.get("from")), _moment(plain.get("to")))


def moment(text: str) -> datetime:
    """A time in an answer, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)


def in_text(time: datetime) -> str:
    """A time in the format of answers: ISO 8601 in UTC, with microseconds and Z."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _moment(text: str | None) -> datetime | None:
    return None if text is None else moment(text)
