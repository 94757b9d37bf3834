"""A city watched from the air, after the paper on expensive operators: drones publish where they are and what they see.

Pictures are arrays of brightness with people, cars, boats and others drawn into them. A detector finds connected bright
regions in a picture and tells them apart by their size: it is small, and it does look at the pixels. Regions are
GeoJSON, and the operators on positions are those of the box.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harken.engine import Engine
from harken.language.explanation import Explanation
from harken.operators import FREE, Operator, operator

SIZE = 96
"""Pixels of a picture, in each direction."""
_BRIGHT = 120
_ROW = 8
"""Districts of the city, in each direction."""
_NAMED = ("Harbour", "Old Town", "Market", "Heights", "Docks", "Gardens", "Station", "Mills", "Island")
_DISTRICTS = (*_NAMED, *(f"District {number}" for number in range(len(_NAMED), _ROW * _ROW)))
_STEP = 0.01
"""Degrees of a district, in each direction."""
SHAPES = {"people": (2, 2), "cars": (3, 7), "boats": (7, 7), "trucks": (4, 9), "tents": (5, 5), "barriers": (2, 9)}
"""How high and how wide what the detector knows is in a picture."""
_CORNER = (4.0, 52.0)
_BATCH = 64
Picture = NDArray[np.uint8]


def regions() -> dict[str, Any]:
    """The districts, in rows, as GeoJSON."""
    features = []
    for place, name in enumerate(_DISTRICTS):
        west, south = _CORNER[0] + place % _ROW * _STEP, _CORNER[1] + place // _ROW * _STEP
        corners = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]
        ring = [[west + x * _STEP, south + y * _STEP] for x, y in corners]
        shape = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": {"name": name}, "geometry": shape})
    return {"type": "FeatureCollection", "features": features}


def events(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """What drones publish: position, altitude, speed, and a picture."""
    rng = Random(seed)
    for number in range(count):
        position = [corner + _STEP * _ROW * rng.random() ** 2 for corner in _CORNER]  # most are over the old city
        counts = {kind: rng.choice([0, 0, 1, 3, 6]) for kind in SHAPES} | {"people": rng.choice([0, 2, 5, 12, 40])}
        yield {
            "id": f"d{number}",
            "drone": f"uav-{rng.randrange(12)}",
            "position": [round(each, 5) for each in position],
            "altitude": rng.randrange(20, 400),
            "speed": round(rng.uniform(0, 30), 1),
            "image": _drawn(rng, counts),
        }


def subscriptions(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Five after the paper's examples, and others of their forms."""
    yield "chase", "within(position, 'Market') AND cars(?cars) AND ?cars >= 2 AND speed > 15"
    yield "mob", "within(position, 'Old Town') AND people(?people) AND ?people > 30"
    yield (
        "crowd near the station",
        ("distance(position, 'Station', ?metres) AND ?metres < 1500 AND people(?people) AND ?people > 10"),
    )
    yield (
        "boats and few guards",
        ("within(position, 'Harbour') AND boats(?boats) AND cars(?cars) AND ?boats >= 2 * ?cars AND altitude < 300"),
    )
    yield "nobody home", "altitude < 100 AND NOT people(?anybody) AND NOT within(position, 'Island')"
    rng = Random(seed + 1)
    for number in range(count):
        parts = [f"within(position, '{rng.choice(_DISTRICTS)}')"]
        for variable, kind in zip("xy", rng.sample(list(SHAPES), rng.choice([1, 2])), strict=False):
            parts.append(f"{kind}(?{variable}) AND ?{variable} > {rng.randrange(1, 6)}")
        if rng.random() < 0.5:
            parts.append(f"altitude < {rng.randrange(50, 400, 50)}")
        rng.shuffle(parts)
        yield f"s{number}", " AND ".join(parts)


def operators() -> list[Operator]:
    """The detector's counts, each of which looks at the picture, and the box's operators on positions.

    Raises MissingExtraError without what `harken[operators]` brings.
    """
    from harken.operators.box import spatial

    def counting(what: str) -> Operator:
        @operator(name=what, cost=8.0, reads=("image",), thread_safe=True)
        def count(event: Mapping[str, Any], found: Any = FREE) -> list[int]:
            number = detect(event["image"])[what]
            return [number] if number else []

        return count

    return [*spatial(regions()), *map(counting, SHAPES)]


def detect(picture: Picture) -> Counter[str]:
    """Count what is in a picture: connected bright regions, each taken for what is nearest to its height and width."""
    found: Counter[str] = Counter()
    for rows, columns in bright_regions(picture):
        height, width = int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1
        found[min(SHAPES, key=lambda kind: abs(SHAPES[kind][0] - height) + abs(SHAPES[kind][1] - width))] += 1
    return found


def bright_regions(picture: Picture) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pixels that are bright, and their neighbours that are, as rows and columns of each connected region.

    Every bright pixel begins with a label of its own, and takes the least of its neighbours' until nothing changes.
    """
    is_bright = np.pad(picture > _BRIGHT, 1)
    none = is_bright.size
    labels = np.where(is_bright, np.arange(none).reshape(is_bright.shape), none)
    inner = labels[1:-1, 1:-1]
    while True:
        least = np.minimum.reduce([inner, labels[:-2, 1:-1], labels[2:, 1:-1], labels[1:-1, :-2], labels[1:-1, 2:]])
        least = np.where(inner < none, least, none)
        if (least == inner).all():
            break
        inner[:] = least
    rows, columns = np.nonzero(inner < none)
    label = inner[rows, columns]
    order = np.argsort(label, kind="stable")
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    if not len(order):
        return []
    return [(rows[each], columns[each]) for each in np.split(order, cuts)]


def _drawn(rng: Random, counts: Mapping[str, int]) -> Picture:
    """A picture with so many of each, none of them touching another, on a noisy ground."""
    picture = np.random.default_rng(rng.randrange(1 << 30)).integers(0, 60, (SIZE, SIZE), np.uint8)
    places = [(row, column) for row in range(0, SIZE - 11, 11) for column in range(0, SIZE - 11, 11)]
    rng.shuffle(places)
    shapes = [SHAPES[kind] for kind, count in counts.items() for _ in range(count)]
    for (height, width), (row, column) in zip(shapes, places, strict=False):
        picture[row + 1 : row + 1 + height, column + 1 : column + 1 + width] = rng.randrange(160, 255)
    return picture


@dataclass(frozen=True, slots=True)
class Watch:
    """What came of watching, for whoever shows it."""

    subscriptions: int
    events: int
    matches: int
    seconds: float
    told: dict[str, int]
    """How many events each of the five readable subscriptions was told of."""
    operators: dict[str, dict[str, Any]]
    spent: dict[str, dict[str, float]]
    """What each order did for the same events: evaluations, and seconds in operators."""
    predicates: int
    explained: str
    explanation: Explanation


def run(
    subscriptions_wanted: int = 150,
    events_wanted: int = 100,
    seed: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> Watch:
    """Watch the city: subscribe, match, count what each order evaluates, and explain a near miss.

    `progress` is called with the number of events matched since the last time.
    """
    texts = dict(subscriptions(subscriptions_wanted, seed))
    seen = list(events(events_wanted, seed))
    spent: dict[str, dict[str, float]] = {}
    for order in ("naive", "sequential", "suborder", "adaptive"):  # the last one is shown
        engine = Engine(operators=operators(), order=order)
        report = engine.subscribe_many(texts.items())
        assert not report.faults, report.faults[0]
        started = perf_counter()
        found: list[list[str]] = []
        for first in range(0, len(seen), _BATCH):
            found += engine.match_batch(seen[first : first + _BATCH]).ids
            progress(len(seen[first : first + _BATCH]))
        seconds = perf_counter() - started
        stats = engine.stats()["operators"]
        spent[order] = {what: sum(each[what] for each in stats.values()) for what in ("evaluations", "seconds")}
    counts = Counter(id for ids in found for id in ids)
    readable = [id for id in texts if " " in id or not id.startswith("s")]
    missed = [event for event, ids in zip(seen, found, strict=True) if "mob" not in ids]
    return Watch(
        len(engine),
        len(seen),
        sum(counts.values()),
        seconds,
        {id: counts[id] for id in readable},
        stats,
        spent,
        sum(each["predicates"] for each in stats.values()),
        "mob",
        engine.explain("mob", max(missed, key=lambda event: _nearness(engine.explain("mob", event)))),
    )


def _nearness(explanation: Explanation) -> int:
    return sum(part.truth is True for part in explanation.tree.parts)
