"""How notifications of a subscription are delivered, as `subscribe(delivery=…)` takes it."""

from __future__ import annotations

from typing import Literal, Required, TypedDict


class Webhook(TypedDict, total=False):
    """An address that notifications are posted to; without a secret to sign them by, the server makes one."""

    url: Required[str]
    secret: str


class Throttle(TypedDict):
    """At most `count` notifications in `seconds`; the rest are counted as suppressed."""

    count: int
    seconds: float


class Delivery(TypedDict, total=False):
    """All parts are optional. `max_delay` lets notifications wait so many seconds, to be delivered as one digest."""

    webhook: Webhook
    format: Literal["plain", "cloudevents"]
    max_delay: float
    throttle: Throttle
