"""How a subscriber is notified: webhook, format, longest delay, and throttle."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

PLAIN, CLOUDEVENTS = "plain", "cloudevents"
FORMATS = (PLAIN, CLOUDEVENTS)


@dataclass(frozen=True, slots=True)
class StoredThrottle:
    """At most `count` notifications in `seconds`; the others are suppressed and counted."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    """How a subscription's notifications are delivered. By default the subscriber polls or opens a stream."""

    url: str | None = None
    """The URL of the webhook; None without one."""
    secret: str | None = None
    """The secret that signs the webhook's messages."""
    format: str = PLAIN
    max_delay: float = 0.0
    """Seconds that a notification may wait for others, to be sent together."""
    throttle: StoredThrottle | None = None

    @property
    def is_default(self) -> bool:
        return self == DEFAULT_DELIVERY

    def to_json(self) -> str | None:
        """The delivery as the store has it; None for the default."""
        if self.is_default:
            return None
        throttle = None if self.throttle is None else [self.throttle.count, self.throttle.seconds]
        fields = {"url": self.url, "secret": self.secret, "format": self.format, "max_delay": self.max_delay}
        return json.dumps({**fields, "throttle": throttle})

    @classmethod
    def from_json(cls, text: str | None) -> StoredDelivery:
        if text is None:
            return DEFAULT_DELIVERY
        fields: dict[str, Any] = json.loads(text)
        throttle = fields["throttle"]
        return cls(
            fields["url"],
            fields["secret"],
            fields["format"],
            fields["max_delay"],
            None if throttle is None else StoredThrottle(*throttle),
        )

    def shown(self) -> dict[str, Any]:
        """The delivery as answers show it, without the secret."""
        plain: dict[str, Any] = {"format": self.format}
        if self.url is not None:
            plain["webhook"] = {"url": self.url}
        if self.max_delay:
            plain["max_delay"] = self.max_delay
        if self.throttle is not None:
            plain["throttle"] = {"count": self.throttle.count, "seconds": self.throttle.seconds}
        return plain


DEFAULT_DELIVERY = StoredDelivery()
