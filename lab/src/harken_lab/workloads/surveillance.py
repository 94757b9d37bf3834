"""A city watched from the air, after the paper on expensive operators: drones publish their positions and pictures.

Pictures are arrays of brightness into which people, cars, boats and others are drawn. A small detector reads the
pixels: it finds connected bright regions and classifies them by their size. Districts are GeoJSON, and the operators on
positions come from `harken.operators.box`.
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
"""Height and width, in pixels, of each kind of object that the detector knows."""
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
    """Events of drones: position, altitude, speed, and a picture."""
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
    """Ids and texts: five subscriptions after the paper's examples, and `count` random ones of the same forms."""
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
    yield "empty streets", "altitude < 100 AND NOT people(?people) AND NOT within(position, 'Island')"
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
    """An operator per kind of object, which counts it in the picture, and the box's operators on positions.

    Raises MissingExtraError if `harken[operators]` is not installed.
    """
    from harken.operators.box import spatial

    def counting(what: str) -> Operator:
        @operator(name=what, cost=8.0, reads=("image",), thread_safe=True)
        def count(event: Mapping[str, Any], total: Any = FREE) -> list[int]:
            number = detect(event["image"])[what]
            return [number] if number else []

        return count

    return [*spatial(regions()), *map(counting, SHAPES)]


def detect(picture: Picture) -> Counter[str]:
    """Count objects in a picture: each connected bright region is of the kind nearest to its height and width."""
    counts: Counter[str] = Counter()
    for rows, columns in bright_regions(picture):
        height, width = int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1
        counts[min(SHAPES, key=lambda kind: abs(SHAPES[kind][0] - height) + abs(SHAPES[kind][1] - width))] += 1
    return counts


def bright_regions(picture: Picture) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The rows and columns of the pixels of each connected bright region. Pixels connect by their sides.

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
    """A picture with `counts` objects of each kind, none of which touch, on a noisy ground."""
    picture = np.random.default_rng(rng.randrange(1 << 30)).integers(0, 60, (SIZE, SIZE), np.uint8)
    places = [(row, column) for row in range(0, SIZE - 11, 11) for column in range(0, SIZE - 11, 11)]
    rng.shuffle(places)
    shapes = [SHAPES[kind] for kind, count in counts.items() for _ in range(count)]
    for (height, width), (row, column) in zip(shapes, places, strict=False):
        picture[row + 1 : row + 1 + height, column + 1 : column + 1 + width] = rng.randrange(160, 255)
    return picture


@dataclass(frozen=True, slots=True)
class SurveillanceResult:
    """The figures of the tour, and an explained near miss. `harken tour --json` prints the fields."""

    subscriptions: int
    events: int
    matches: int
    seconds: float
    told: dict[str, int]
    """The number of matches of each of the five readable subscriptions."""
    operators: dict[str, dict[str, Any]]
    spent: dict[str, dict[str, float]]
    """Evaluations, and seconds in operators, by order. The events are the same."""
    predicates: int
    explained: str
    explanation: Explanation


def run(
    subscriptions_wanted: int = 150,
    events_wanted: int = 100,
    seed: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> SurveillanceResult:
    """Watch the city: subscribe, match, count what each order evaluates, and explain a near miss.

    `progress` is called with the number of events matched since the previous call.
    """
    texts = dict(subscriptions(subscriptions_wanted, seed))
    published = list(events(events_wanted, seed))
    spent: dict[str, dict[str, float]] = {}
    for order in ("naive", "sequential", "suborder", "adaptive"):  # the last order's engine is shown
        engine = Engine(operators=operators(), order=order)
        report = engine.subscribe_many(texts.items())
        assert not report.faults, report.faults[0]
        started = perf_counter()
        matches: list[list[str]] = []
        for first in range(0, len(published), _BATCH):
            matches += engine.match_batch(published[first : first + _BATCH]).ids
            progress(len(published[first : first + _BATCH]))
        seconds = perf_counter() - started
        stats = engine.stats()["operators"]
        spent[order] = {figure: sum(each[figure] for each in stats.values()) for figure in ("evaluations", "seconds")}
    counts = Counter(id for ids in matches for id in ids)
    readable = [id for id in texts if " " in id or not id.startswith("s")]
    missed = [event for event, ids in zip(published, matches, strict=True) if "mob" not in ids]
    return SurveillanceResult(
        len(engine),
        len(published),
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
