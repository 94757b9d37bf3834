"""The auction market: events as publishers would send them, and subscriptions as its users would write them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

from harken.schema import CodedDomain, Schema, parse_schema

_OPENING = datetime(2026, 1, 1, tzinfo=UTC)
_COUNTRIES = ("FR", "IT", "DE", "GB", "US", "JP", "PT", "BR")
_WORDS = ("original finish", "with signs of wear", "from a manor", "signed", "a pair", "rare", "restored in 1950")
_PERIODS = ("XVI", "XVII", "XVIII", "XIX", "XX", "unknown")
_PERIOD_WEIGHTS = (1, 2, 6, 20, 30, 8)


def schema() -> Schema:
    """The schema of the market."""
    return parse_schema(_text("schema.toml"), "schema.toml")


def readable_subscriptions() -> bytes:
    """Ten subscriptions to read, as JSON lines."""
    return _text("subscriptions.jsonl").encode()


def events(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Items put up for auction, as decoded JSON. One in 200 has a wrong value."""
    rng = random.Random(seed)
    categories, materials = _values("furniture_category")[1:], _values("material")
    for number in range(count):
        event: dict[str, Any] = {
            "event_type": rng.choices([["antiques"], ["furniture"], ["antiques", "furniture"]], (3, 5, 2))[0],
            "price": round(min(rng.lognormvariate(5.2, 1.2), 50_000), 2),
            "quantity": 1 if rng.random() < 0.7 else rng.randint(2, 12),
            "closes": (_OPENING + timedelta(minutes=rng.randint(1, 20_000))).isoformat(),
            "description": f"lot {number}, {rng.choice(_WORDS)}",
            "seller": {"country": rng.choice(_COUNTRIES), "rating": round(5 - rng.expovariate(2), 1)},
        }
        if rng.random() < 0.3:
            event["reserve"] = round(event["price"] * rng.uniform(0.7, 1.4), 2)
        if "antiques" in event["event_type"]:
            event["period"] = rng.choices(_PERIODS, _PERIOD_WEIGHTS)[0]
            event["restored"] = rng.choice((True, False, None))
        if "furniture" in event["event_type"]:
            event["furniture_category"] = rng.choice(categories)
            event["material"] = rng.sample(materials, rng.randint(1, 3))
        if rng.random() < 0.005:
            event[rng.choice(("price", "quantity", "period"))] = rng.choice(("a lot", -5))
        yield event


def subscriptions(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Subscriptions of many users: one to three conditions on an item, and a price limit."""
    rng = random.Random(seed)
    categories, materials = _values("furniture_category"), _values("material")
    wishes: list[Callable[[], str]] = [
        lambda: f"furniture_category <= '{rng.choice(categories)}'",
        lambda: f"material = '{rng.choice(materials)}'",
        lambda: f"period <= '{rng.choice(_PERIODS[:5])}'",
        lambda: f"seller.country = '{rng.choice(_COUNTRIES)}'",
        lambda: f"seller.rating >= {rng.choice((4.0, 4.5, 4.8))}",
        lambda: f"quantity >= {rng.randint(2, 10)}",
        lambda: f"(restored OR period = '{rng.choice(_PERIODS[:5])}')",
        lambda: f"description LIKE '%{rng.choice(_WORDS).split()[-1]}%'",
    ]
    for number in range(count):
        chosen = rng.sample(wishes, rng.randint(1, 3))
        price = round(rng.lognormvariate(4.0, 1.0), 2)
        where = " AND ".join([f"price < {price}", *(wish() for wish in chosen)])
        yield {"id": f"user-{number:06d}", "owner": f"user {number}", "where": where}


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _values(name: str) -> tuple[str, ...]:
    domain = schema().domains[name]
    assert isinstance(domain, CodedDomain)
    return domain.values
