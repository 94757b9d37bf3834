"""The visitors' subscriptions, with their owners: saved searches, price alerts and monitors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from harken_lab.workloads.auction.day.events import lots_of
from harken_lab.workloads.auction.day.goods import CONDITIONS, COUNTRIES, DAY, SELLERS, WORDS, Good, ancestors, goods

_FIRST = (
    "Ada Aino Amir Ana Bao Bela Carlos Chiara Dara Dmitri Elif Emeka Eva Farid Finn Gina Hana Hugo Ines Ivan Jaro "
    "Joana Kofi Lars Leila Luca Mara Mei Milan Nadia Nils Noor Olga Omar Paula Pedro Rana Rosa Samir Sofia Tariq Tove "
    "Uma Vera Wanda Yusuf Zeno Zoe"
).split()
_LAST = (
    "Abreu Adler Bakker Banerjee Berg Castro Chen Costa Diallo Duarte Eriksen Farkas Ferrari Fischer Garcia Haddad "
    "Hansen Horvat Ito Jansen Kaya Keller Kim Kovacs Lopes Lund Martin Meyer Mori Moreau Nagy Nowak Okafor Olsen Osei "
    "Park Pereira Petrov Quist Rossi Roth Sato Silva Singh Tanaka Torres Varga Wagner Weber Yilmaz"
).split()
_LETTERS = "ABCDEFGHIJKLMNOPRSTUVW"


@dataclass(frozen=True, slots=True)
class Wish:
    """A subscription, its owner, and its kind, such as `bargain`."""

    id: str
    owner: str
    kind: str
    where: str


def wishes(count: int, seed: int, events: int) -> Iterator[Wish]:
    """Draw wishes, for a day with this number of events."""
    maker = _Maker(random.Random(f"wishes {seed}"), lots_of(events))
    kinds = list(maker.kinds())
    weights = list(accumulate(weight for _, weight, _ in kinds))
    people = max(1, count // 4)
    for number in range(count):
        name, _, make = maker.rng.choices(kinds, cum_weights=weights)[0]
        yield Wish(f"{name}-{number:06d}", maker.person(people), name, make())


class _Maker:
    def __init__(self, rng: random.Random, lots: int) -> None:
        self.rng = rng
        self._lots = lots
        self._goods = goods()
        self._shares = list(accumulate(each.share for each in self._goods))
        self._above = ancestors()

    def kinds(self) -> Iterator[tuple[str, float, Callable[[], str]]]:
        """The kinds of wishes, their weights, and the methods that write a condition of each."""
        yield "bargain", 24, self.bargain
        yield "maker", 16, self.of_a_maker
        yield "trusted", 12, self.of_a_trusted_seller
        yield "watch-list", 14, self.watch_list
        yield "last-call", 10, self.last_call
        yield "seller", 8, self.from_a_seller
        yield "collector", 10, self.collector
        yield "no-reserve", 3, self.without_reserve
        yield "either-or", 3, self.either_or
        yield "below-estimate", 1.5, self.below_estimate
        yield "desk", 0.06, self.desk

    def person(self, people: int) -> str:
        number = self.rng.randrange(people) * 7_919
        first, rest = number % len(_FIRST), number // len(_FIRST)
        last, rest = rest % len(_LAST), rest // len(_LAST)
        return f"{_FIRST[first]} {_LETTERS[rest % len(_LETTERS)]}. {_LAST[last]}"

    def bargain(self) -> str:
        good = self._good()
        limit = good.price * self.rng.uniform(0.04, 0.15)
        parts = [f"category = '{good.category}'", f"price < {limit:.2f}", "kind IN ('listed', 'reduced')"]
        if self.rng.random() < 0.6:
            parts.append(f"condition >= '{self.rng.choice(CONDITIONS[1:4])}'")
        if self.rng.random() < 0.4:
            parts.append(f"shipping <= {self.rng.choice((0, 3, 5, 10))}")
        return " AND ".join(parts)

    def of_a_maker(self) -> str:
        good = self._good()
        limit = good.price * self.rng.uniform(0.1, 0.5)
        parts = [
            f"maker = {_quoted(self.rng.choice(good.makers))}",
            f"price <= {limit:.0f}",
            self.rng.choice(("kind = 'listed'", "kind IN ('listed', 'reduced')")),
        ]
        if self.rng.random() < 0.3:
            parts.append(f"item LIKE {_quoted(f'%{self.rng.choice(good.things)}%')}")
        else:
            parts.append(f"category = '{good.category}'")
        if self.rng.random() < 0.7:
            parts.append(f"condition >= '{self.rng.choice(CONDITIONS[2:])}'")
        return " AND ".join(parts)

    def of_a_trusted_seller(self) -> str:
        good = self._good()
        low = good.price * self.rng.uniform(0.3, 1.5)
        countries = sorted(self.rng.sample(COUNTRIES, self.rng.randint(1, 3)))
        parts = [
            f"category = '{good.category}'",
            f"seller_rating >= {self.rng.choice((4.5, 4.7, 4.8, 4.9))}",
            f"seller_country IN ({_listed(countries)})",
            f"price BETWEEN {low:.0f} AND {low * self.rng.uniform(1.1, 1.5):.0f}",
            "kind <> 'bid'",
        ]
        if self.rng.random() < 0.3:
            parts.append("seller_business")
        return " AND ".join(parts)

    def watch_list(self) -> str:
        lots = sorted({self.rng.randrange(self._lots) for _ in range(self.rng.randint(1, 6))})
        which = f"lot IN ({_listed(f'L{lot:06d}' for lot in lots)})"
        return which if self.rng.random() < 0.3 else f"{which} AND kind IN ('reduced', 'ending', 'sold')"

    def last_call(self) -> str:
        good = self._good()
        hour = min(22, max(0, round(self.rng.gauss(19, 3))))
        span = f"TIMESTAMP '{DAY} {hour:02d}:00:00' AND TIMESTAMP '{DAY} {hour + 1:02d}:30:00'"
        limit = good.price * self.rng.uniform(0.05, 0.5)
        return (
            f"kind = 'ending' AND category = '{good.category}' AND ends BETWEEN {span} "
            f"AND bids <= {self.rng.randint(0, 3)} AND price < {limit:.2f}"
        )

    def from_a_seller(self) -> str:
        seller = f"seller = 's-{min(int(SELLERS * self.rng.random() ** 1.6), SELLERS - 1):04d}'"
        more = ("kind = 'listed'", f"category <= '{self._category()}'", "kind <> 'bid' AND NOT (condition <= 'worn')")
        return f"{seller} AND {self.rng.choice(more)}"

    def collector(self) -> str:
        good = self._good()
        limit = good.price * self.rng.uniform(0.1, 0.8)
        wanted = self.rng.choice(
            (
                "signed AND boxed",
                "signed AND restored IS NULL",
                f"signed AND item LIKE '%{self.rng.choice(WORDS)}%'",
                "boxed AND (condition = 'new' OR signed)",
            )
        )
        return f"kind <> 'bid' AND category = '{good.category}' AND {wanted} AND price < {limit:.0f}"

    def without_reserve(self) -> str:
        good = self._good()
        return (
            f"reserve IS NULL AND category = '{good.category}' AND kind = 'listed' "
            f"AND price < {good.price * self.rng.uniform(0.1, 0.4):.0f} AND condition IN ('as new', 'new')"
        )

    def either_or(self) -> str:
        one, two = self._good(), self._good()
        return (
            f"kind = 'ending' AND ((category = '{one.category}' AND price < {one.price * 0.15:.2f}) "
            f"OR (category = '{two.category}' AND price < {two.price * 0.12:.2f} AND condition >= 'good'))"
        )

    def below_estimate(self) -> str:
        good = self._good()
        return (
            f"price < reserve AND kind = 'ending' AND category = '{good.category}' "
            f"AND price > {good.price * self.rng.uniform(0.5, 2.0):.0f} AND seller_rating > 4.6"
        )

    def desk(self) -> str:
        """A subscription of the staff, who watch large parts of the house."""
        return self.rng.choice(
            (
                f"seller_since > DATE '2026-0{self.rng.randint(1, 2)}-01' AND price > {self.rng.randint(10, 60) * 100}",
                f"category <= '{self._category()}' AND bids >= {self.rng.randint(12, 30)}",
                f"kind = 'bid' AND category <= '{self._category()}' AND price > {self.rng.randint(5, 40) * 100}",
                f"kind = 'sold' AND seller_country = '{self.rng.choice(COUNTRIES)}' AND NOT seller_business",
                f"kind = 'sold' AND price > estimate AND category <= '{self._category()}' AND seller_rating < 4",
                f"kind = 'unsold' AND bids > 5 AND seller_rating < {self.rng.choice((3.0, 3.5))}",
                f"item LIKE '%prototype' AND price > {self.rng.randint(1, 8) * 100}",
            )
        )

    def _good(self) -> Good:
        return self.rng.choices(self._goods, cum_weights=self._shares)[0]

    def _category(self) -> str:
        """A category that has others below it."""
        return self.rng.choice(self._above[self._good().category])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _listed(texts: Iterator[str] | list[str]) -> str:
    return ", ".join(f"'{text}'" for text in texts)
