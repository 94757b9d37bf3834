"""The goods and sellers of the auction house: the words and weights that events and wishes are drawn from."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harken.schema import HierarchicalDomain, Schema, parse_schema

SCHEMA_FILE = "auction.toml"
DAY = date(2026, 3, 14)
CONDITIONS = ("for parts", "worn", "good", "as new", "new")
CONDITION_SHARES = (4, 22, 44, 20, 10)
FLAGS = ("signed", "boxed", "restored")
WORDS = ("vintage", "rare", "with papers", "a pair", "prototype")
REMARKS = FLAGS + WORDS
"""Remarks of a listing on a lot: flags, which are fields of the event, and words of its title."""
REMARK_SHARES = (0.06, 0.18, 0.07, 0.30, 0.08, 0.10, 0.05, 0.004)
COUNTRIES = ("DE", "FR", "IT", "GB", "NL", "PT", "US", "JP", "SE", "PL")
COUNTRY_SHARES = (22, 14, 12, 14, 8, 5, 12, 5, 4, 4)
SELLERS = 3_000
_NAMES = ("Attic", "Corner", "Harbour", "Lantern", "Magpie", "Market", "Meadow", "Old Town", "Second", "Station")
_TRADES = ("Antiques", "Bazaar", "Brothers", "Collectables", "Finds", "House", "Rooms", "Salvage", "Traders", "Vault")


@dataclass(frozen=True, slots=True)
class Good:
    """A kind of goods: a leaf of the hierarchy of categories."""

    category: str
    share: float
    price: float
    """Of a piece in good condition, without the random spread."""
    makers: tuple[str, ...]
    things: tuple[str, ...]


@cache
def goods() -> tuple[Good, ...]:
    """All kinds of goods that are sold."""
    plain = tomllib.loads(text_of("goods.toml"))
    return tuple(
        Good(name, each["share"], each["price"], tuple(each["makers"]), tuple(each["things"]))
        for name, each in plain.items()
    )


@cache
def schema() -> Schema:
    """The schema of the events."""
    return parse_schema(text_of(SCHEMA_FILE), SCHEMA_FILE)


@cache
def ancestors() -> dict[str, tuple[str, ...]]:
    """Every kind of goods with the categories above it, the nearest first."""
    domain = schema().domains["category"]
    assert isinstance(domain, HierarchicalDomain)
    parents = dict(domain.parents)
    above = {}
    for good in goods():
        path, name = [], parents[good.category]
        while name is not None:
            path.append(name)
            name = parents[name]
        above[good.category] = tuple(path)
    return above


def sellers(seed: int, count: int = SELLERS) -> pa.Table:
    """The reference table that events are joined with: name, country, rating and first day of each seller."""
    rng = generator(seed, 1)
    names = [f"{_NAMES[a]} {_TRADES[b]}" for a, b in rng.integers(0, (len(_NAMES), len(_TRADES)), (count, 2))]
    days = np.datetime64(DAY) - rng.exponential(1_400, count).astype("m8[D]")
    return pa.table(
        {
            "seller": seller_ids(np.arange(count)),
            "name": names,
            "country": rng.choice(COUNTRIES, count, p=shares(COUNTRY_SHARES)),
            "rating": np.round(np.maximum(1.0, 5 - rng.exponential(0.35, count)), 1),
            "since": days,
            "business": rng.random(count) < 0.3,
        }
    )


def generator(seed: int, purpose: int) -> np.random.Generator:
    """The random numbers of one purpose. Drawing for another purpose does not change them."""
    return np.random.default_rng((seed, purpose))


def seller_ids(numbers: NDArray[np.int64]) -> list[str]:
    return [f"s-{number:04d}" for number in numbers.tolist()]


def lot_ids(numbers: NDArray[np.int64]) -> list[str]:
    return [f"L{number:06d}" for number in numbers.tolist()]


def shares(weights: tuple[float, ...] | list[float]) -> NDArray[np.float64]:
    """The weights, scaled so that they add up to one."""
    array = np.asarray(weights, np.float64)
    scaled: NDArray[np.float64] = array / array.sum()
    return scaled


def text_of(name: str) -> str:
    """The text of a file in the folder of this module."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
