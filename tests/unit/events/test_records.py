"""Events as objects with fields: dataclasses, named tuples and pydantic models."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

import pandas
import pydantic
import pytest

from harken.errors import InvalidValueError, LimitError
from harken.events import Event


@dataclass(slots=True)
class Seller:
    country: str
    since: date | None = None


@dataclass
class Sale:
    price: float
    seller: Seller
    others: list[Seller] = field(default_factory=list)
    blob: bytes = b"?"


class Offer(NamedTuple):
    price: float
    size: tuple[int, int]


class Bid(pydantic.BaseModel):
    price: float
    seller: Seller
    note: str | None = None
    blob: Any = b"?"

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> float:
        return 2 * self.price


class Numbers(pydantic.RootModel[list[int]]):
    pass


NAMES = frozenset({"price", "seller", "others", "size", "double"})
SALE = {"price": 1.5, "seller": {"country": "DE", "since": date(2020, 1, 1)}, "others": [{"country": "FR"}]}


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (Sale(1.5, Seller("DE", date(2020, 1, 1)), [Seller("FR")]), SALE),
        (Offer(1.5, (1, 2)), {"price": 1.5, "size": [1, 2]}),
        (namedtuple("Row", "price blob")(2, b""), {"price": 2}),
        (Bid(price=1, seller=Seller("DE")), {"price": 1.0, "seller": {"country": "DE"}, "double": 2.0}),
    ],
)
def test_the_fields_that_are_named(record: Any, expected: dict[str, Any]) -> None:
    assert Event.of(record, names=NAMES).attributes == expected


def test_all_fields() -> None:
    assert Event.of(Seller("DE")).attributes == {"country": "DE"}
    with pytest.raises(InvalidValueError, match="`blob` is of type bytes"):
        Event.of(Sale(1.5, Seller("DE")))


def test_records_inside_events() -> None:
    inner = {"seller": Seller("DE"), "bids": [Bid(price=1, seller=Seller("FR"), blob=None)], "n": Numbers([1, 2])}
    expected = {"seller": {"country": "DE"}, "n": [1, 2]}
    expected["bids"] = [{"price": 1.0, "seller": {"country": "FR"}, "double": 2.0}]
    assert Event.of(inner).attributes == expected


def test_a_record_that_holds_itself() -> None:
    @dataclass
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    with pytest.raises(LimitError):
        Event.of(node)


def test_fields_that_cannot_be_read() -> None:
    class Broken(pydantic.BaseModel):
        x: int

        @pydantic.field_serializer("x")
        def fail(self, value: int) -> int:
            raise ValueError("not today")

    with pytest.raises(InvalidValueError, match=r"fields of this Broken cannot be read: .*not today"):
        Event.of(Broken(x=1), names=frozenset("x"))
    assert Event.of(Broken(x=1), names=frozenset("y")).attributes == {}


@pytest.mark.parametrize(
    ("what", "hint"),
    [
        ('{"x": 1}', "json.loads"),
        ([{"x": 1}], "match_batch"),
        (object(), "pass a dict"),
        (None, "pass a dict"),
        (Seller, "pass a dict"),
        (Numbers([1]), "match_batch"),
        (pandas.Series({"x": 1}), "pass its to_dict()"),
    ],
)
def test_what_is_no_event(what: Any, hint: str) -> None:
    with pytest.raises(InvalidValueError, match="an event is an object") as caught:
        Event.of(what)
    assert hint in (caught.value.hint or "")
