"""How subscribers want to be notified: as it is stored, and as they see it."""

from __future__ import annotations

import pytest

from harken.store import CLOUDEVENTS, StoredDelivery, StoredThrottle

WHOLE = StoredDelivery("https://example.org/hook", "whsec_x", CLOUDEVENTS, 2.5, StoredThrottle(3, 60.0))


@pytest.mark.parametrize(
    "delivery",
    [StoredDelivery(), WHOLE, StoredDelivery(max_delay=1.0), StoredDelivery(throttle=StoredThrottle(1, 0.5))],
)
def test_a_delivery_is_read_as_it_was_written(delivery: StoredDelivery) -> None:
    assert StoredDelivery.from_json(delivery.to_json()) == delivery
    assert (delivery.to_json() is None) == delivery.is_default == (delivery == StoredDelivery())


def test_a_subscriber_sees_everything_but_the_secret() -> None:
    assert WHOLE.shown() == {
        "format": "cloudevents",
        "webhook": {"url": "https://example.org/hook"},
        "max_delay": 2.5,
        "throttle": {"count": 3, "seconds": 60.0},
    }
    assert StoredDelivery().shown() == {"format": "plain"}
