"""How notifications of a subscription are delivered: the argument `delivery` of `subscribe`."""

from __future__ import annotations

from typing import Literal, Required, TypedDict


class Webhook(TypedDict, total=False):
    """A URL that notifications are posted to. If no secret to sign them is given, the server makes one."""

    url: Required[str]
    secret: str


class Throttle(TypedDict):
    """At most `count` notifications in `seconds`; the rest are counted as suppressed."""

    count: int
    seconds: float


class Delivery(TypedDict, total=False):
    """All parts are optional. Notifications may wait up to `max_delay` seconds, to be delivered as one digest."""

    webhook: Webhook
    format: Literal["plain", "cloudevents"]
    max_delay: float
    throttle: Throttle
