"""How a subscriber wants to be notified: by webhook, in which shape, how late at most, how often at most."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

PLAIN, CLOUDEVENTS = "plain", "cloudevents"
FORMATS = (PLAIN, CLOUDEVENTS)


@dataclass(frozen=True, slots=True)
class StoredThrottle:
    """At most so many notifications in so many seconds; the others are counted and suppressed."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    """What a subscription says of its notifications. The default is to be asked for them."""

    url: str | None = None
    """Where the webhook is; None if there is none."""
    secret: str | None = None
    """What the webhook's messages are signed with."""
    format: str = PLAIN
    max_delay: float = 0.0
    """Seconds that a notification may wait, so that several travel together."""
    throttle: StoredThrottle | None = None

    @property
    def is_default(self) -> bool:
        return self == DEFAULT_DELIVERY

    def to_json(self) -> str | None:
        """The delivery as it is stored; None for the default."""
        if self.is_default:
            return None
        throttle = None if self.throttle is None else [self.throttle.count, self.throttle.seconds]
        found = {"url": self.url, "secret": self.secret, "format": self.format, "max_delay": self.max_delay}
        return json.dumps({**found, "throttle": throttle})

    @classmethod
    def from_json(cls, text: str | None) -> StoredDelivery:
        if text is None:
            return DEFAULT_DELIVERY
        found: dict[str, Any] = json.loads(text)
        throttle = found["throttle"]
        return cls(
            found["url"],
            found["secret"],
            found["format"],
            found["max_delay"],
            None if throttle is None else StoredThrottle(*throttle),
        )

    def shown(self) -> dict[str, Any]:
        """The delivery as its subscriber sees it, without the secret."""
        plain: dict[str, Any] = {"format": self.format}
        if self.url is not None:
            plain["webhook"] = {"url": self.url}
        if self.max_delay:
            plain["max_delay"] = self.max_delay
        if self.throttle is not None:
            plain["throttle"] = {"count": self.throttle.count, "seconds": self.throttle.seconds}
        return plain


DEFAULT_DELIVERY = StoredDelivery()
