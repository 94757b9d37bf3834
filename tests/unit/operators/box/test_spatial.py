"""Positions against plain geometry: ray casting, and the nearest of many points along each edge."""

from __future__ import annotations

import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from shapely.geometry import shape

import harken
from harken.errors import CheckError, OperatorError, SourceError
from harken.operators.box import spatial
from harken.operators.box.spatial import EARTH_RADIUS, Regions, position_of

Ring = list[tuple[float, float]]


def feature(name: Any, geometry: Any, key: str = "name") -> dict[str, Any]:
    return {"type": "Feature", "properties": {key: name}, "geometry": geometry}


def collection(*features: Any) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features)}


def polygon(*rings: Ring) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[*map(list, ring), list(ring[0])] for ring in rings]}


def square(lon: float, lat: float, size: float) -> Ring:
    return [(lon, lat), (lon + size, lat), (lon + size, lat + size), (lon, lat + size)]


BRONX, QUEENS = square(-73.9, 40.8, 0.1), square(-73.8, 40.8, 0.1)
CITY = collection(feature("Bronx", polygon(BRONX)), feature("Queens", polygon(QUEENS)))


@st.composite
def stars(draw: st.DrawFn, size: float) -> Ring:
    """Polygons whose corners are seen from their centre: their edges never cross."""
    lon, lat = draw(st.floats(-175 + size, 175 - size)), draw(st.floats(-80 + size, 80 - size))
    corners = draw(st.integers(3, 9))
    radii = draw(st.lists(st.floats(0.1 * size, size), min_size=corners, max_size=corners))
    turns = [2 * math.pi * corner / corners for corner in range(corners)]
    return [
        (lon + radius * math.cos(turn), lat + radius * math.sin(turn))
        for turn, radius in zip(turns, radii, strict=True)
    ]


def edges(ring: Ring) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    return list(zip(ring, [*ring[1:], ring[0]], strict=True))


def is_inside(ring: Ring, lon: float, lat: float) -> bool:
    """A ray to the east crosses the edges an odd number of times."""
    crossings = 0
    for (lon_1, lat_1), (lon_2, lat_2) in edges(ring):
        if (lat_1 > lat) != (lat_2 > lat):
            crossings += lon < lon_1 + (lat - lat_1) * (lon_2 - lon_1) / (lat_2 - lat_1)
    return crossings % 2 == 1


def haversine(place: tuple[float, float], lons: Any, lats: Any) -> Any:
    lon_1, lat_1, lon_2, lat_2 = np.radians(place[0]), np.radians(place[1]), np.radians(lons), np.radians(lats)
    half = np.sin((lat_2 - lat_1) / 2) ** 2 + np.cos(lat_1) * np.cos(lat_2) * np.sin((lon_2 - lon_1) / 2) ** 2
    return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(half, 1.0)))


def metres_by_sampling(ring: Ring, place: tuple[float, float]) -> float:
    """The nearest of many points of each edge, then of many more around it."""
    nearest = math.inf
    for (lon_1, lat_1), (lon_2, lat_2) in edges(ring):
        low, high = 0.0, 1.0
        for _ in range(3):
            part = np.linspace(low, high, 1_001)
            metres = haversine(place, lon_1 + part * (lon_2 - lon_1), lat_1 + part * (lat_2 - lat_1))
            best = int(np.argmin(metres))
            nearest = min(nearest, float(metres[best]))
            low, high = part[max(best - 1, 0)], part[min(best + 1, 1_000)]
    return nearest


OFFSETS = st.tuples(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5))


@given(st.lists(stars(4.0), min_size=1, max_size=4), st.lists(OFFSETS, min_size=1, max_size=6))
def test_within_as_by_ray_casting(rings: list[Ring], offsets: list[tuple[float, float]]) -> None:
    known = [(feature(f"r{number}", polygon(ring))) for number, ring in enumerate(rings)]
    places = [(rings[0][0][0] + 2 * lon, rings[0][0][1] + 2 * lat) for lon, lat in offsets]
    assume(all(metres_by_sampling(ring, place) > 0.01 for ring in rings for place in places))
    within, _ = spatial(collection(*known))
    expected = [[f"r{at}" for at, ring in enumerate(rings) if is_inside(ring, *place)] for place in places]
    assert within([{}] * len(places), places, harken.FREE) == expected
    for at in range(len(rings)):
        name = f"r{at}"
        assert within([{}] * len(places), places, [name] * len(places)) == [name in each for each in expected]


SLANTED = [(1.0, 77.0), (-1.0, 78.732), (-0.5, 76.134)]


@example(SLANTED, (0.0, 0.5), 1.0)
@given(stars(2.0), OFFSETS, st.sampled_from([0.01, 1.0, 10.0]))
def test_distance_as_to_the_nearest_of_many_points(ring: Ring, offset: tuple[float, float], scale: float) -> None:
    place = ring[0][0] + scale * offset[0], ring[0][1] + scale * offset[1]
    assume(abs(place[0]) <= 180 and abs(place[1]) <= 90)
    _, distance = spatial(collection(feature("r", polygon(ring))))
    ((metres,),) = distance([{}], [place], ["r"], harken.FREE)
    if is_inside(ring, *place):
        assert metres == 0.0
    else:
        assert metres == pytest.approx(metres_by_sampling(ring, place), abs=1.0, rel=1e-9)


@given(st.floats(-180, 180), st.floats(-90, 90), st.floats(-180, 180), st.floats(-90, 90))
def test_distance_of_points_is_the_great_circle(lon_1: float, lat_1: float, lon_2: float, lat_2: float) -> None:
    _, distance = spatial(collection(feature("p", {"type": "Point", "coordinates": [lon_1, lat_1]})))
    ((metres,),) = distance([{}], [[lon_2, lat_2]], ["p"], harken.FREE)
    # Near the other side of the earth the haversine itself is off by 10 cm.
    assert metres == pytest.approx(float(haversine((lon_2, lat_2), lon_1, lat_1)), abs=1.0)


def test_a_region_across_the_antimeridian() -> None:
    """Fiji, say: cut in two, as GeoJSON asks for."""
    west, east = square(178, -18, 2), square(-180, -18, 2)
    parts = {"type": "MultiPolygon", "coordinates": [polygon(west)["coordinates"], polygon(east)["coordinates"]]}
    within, distance = spatial(collection(feature("Fiji", parts)))
    assert within([{}] * 3, [[179, -17], [-179, -17], [177, -17]], ["Fiji"] * 3) == [True, True, False]
    ((metres,),) = distance([{}], [[-177, -17]], ["Fiji"], harken.FREE)
    assert metres == pytest.approx(float(haversine((-177, -17), -178, -17)), rel=1e-3)


def test_holes_lines_edges_and_several_features_of_one_name() -> None:
    ring, hole = square(0, 0, 10), square(4, 4, 2)
    line = {"type": "LineString", "coordinates": [[20, 0], [30, 0]]}
    several = {"type": "GeometryCollection", "geometries": [line, {"type": "Point", "coordinates": [40, 0]}]}
    within, distance = spatial(
        collection(
            feature("a", polygon(ring, hole[::-1])), feature("a", polygon(square(50, 0, 1))), feature("b", several)
        )
    )
    places = [[5, 5], [1, 1], [0, 5], [4, 5], [50.5, 0.5], [25, 0], [40, 0], [60, 60]]
    expected = [[], ["a"], ["a"], ["a"], ["a"], ["b"], ["b"], []]
    assert within([{}] * len(places), places, harken.FREE) == expected
    ((hole_found,), (line_found,)) = distance([{}] * 2, [[5, 5], [25, 1]], ["a", "b"], harken.FREE)
    assert hole_found == pytest.approx(float(haversine((5, 5), 4, 5)), rel=1e-3)
    assert line_found == pytest.approx(float(haversine((25, 1), 25, 0)), abs=0.01)


FORMS = [
    [-73.85, 40.85],
    (-73.85, 40.85, 12.0),
    {"lon": -73.85, "lat": 40.85},
    {"longitude": -73.85, "latitude": 40.85, "speed": 3},
    {"type": "Point", "coordinates": [-73.85, 40.85]},
    {"type": "Feature", "geometry": {"type": "Point", "coordinates": [-73.85, 40.85]}, "properties": {}},
    "POINT (-73.85 40.85)",
]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_forms_of_a_position(form: Any) -> None:
    assert position_of(form) == (-73.85, 40.85)
    engine = harken.Engine(operators=spatial(CITY))
    engine.subscribe("in", "within(position, 'Bronx')")
    assert engine.match({"position": form}).ids == ["in"]


@pytest.mark.parametrize(
    "form",
    [
        [40.85],
        [200, 40],
        [40.0, -173.9],
        [True, 1],
        ["1", "2"],
        [math.nan, 0.0],
        {"lon": 1},
        {"lon": None, "lat": 2},
        {"type": "Polygon", "coordinates": [[[1, 2]]]},
        "POINT (1",
        "POINT EMPTY",
        "POINT (500 2)",
        "LINESTRING (1 2, 3 4)",
        7,
    ],
    ids=str,
)
def test_what_is_no_position(form: Any) -> None:
    with pytest.raises(OperatorError, match=r"a position is \[longitude, latitude\] in degrees"):
        position_of(form)


def test_an_engine_with_operators_on_positions() -> None:
    engine = harken.Engine(operators=spatial(CITY))
    engine.subscribe("in", "within(position, 'Bronx') AND speed > 10")
    engine.subscribe("out", "NOT within(position, 'Bronx')")
    engine.subscribe("near", "distance(position, 'Queens', ?metres) AND ?metres > 0 AND ?metres <= 1000")
    engine.subscribe("home", "within(position, ?region) AND ?region = home")
    engine.subscribe("nearest", "distance(position, ?region, ?metres) AND ?metres < 500 AND ?region <> home")
    with pytest.raises(CheckError, match="there is no region `Bronks`: did you mean `Bronx`"):
        engine.subscribe("typo", "within(position, 'Bronks')")
    engine.subscribe("asked", "within(position, asked)")
    matches = engine.match_batch(
        [
            {"position": [-73.805, 40.85], "speed": 11, "home": "Bronx", "asked": "Bronks"},
            {"position": [-73.75, 40.85], "speed": 11, "home": "Bronx"},
            {"speed": 11},
            {"position": [0, 100]},
        ]
    )
    expected = [["home", "in", "near", "nearest"], ["nearest", "out"], [], []]
    assert [sorted(ids) for ids in matches.ids] == expected
    messages = {(index, id): str(error) for index, id, error in matches.errors}
    assert "there is no region `Bronks`: did you mean `Bronx`?" in messages[0, "asked"]
    assert "a position is [longitude, latitude]" in messages[3, "in" if (3, "in") in messages else "out"]
    assert not [key for key in messages if key[0] == 2]


def test_a_constant_distance_says_what_to_write() -> None:
    engine = harken.Engine(operators=spatial(CITY))
    engine.subscribe("a", "distance(position, 'Bronx', 500)")
    matches = engine.match_batch([{"position": [0, 0]}])
    assert "write distance(position, 'region', ?metres) AND ?metres <= 500" in str(matches.errors[0][2])


def test_a_position_is_located_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[Any] = []
    search = Regions._search

    def counted(self: Regions, places: Any) -> Any:
        searched.extend(places)
        return search(self, places)

    monkeypatch.setattr(Regions, "_search", counted)
    engine = harken.Engine(operators=spatial(CITY), order="naive")
    for number in range(4):
        engine.subscribe(f"w{number}", f"within(position, '{'Bronx' if number % 2 else 'Queens'}') AND a = {number}")
        engine.subscribe(f"d{number}", f"distance(position, 'Queens', ?m) AND ?m < {number}000 AND a = {number}")
    events = [{"position": [-73.85 + at % 3, 40.85], "a": at % 4} for at in range(24)]
    engine.match_batch(events)
    engine.match_batch(events)
    assert sorted(searched) == sorted({(-73.85 + at, 40.85) for at in range(3)})


def test_what_is_remembered_of_positions_is_bounded() -> None:
    regions = Regions(["Bronx"], [shape(polygon(BRONX))], most_located=10)
    places = [[-73.85 + at / 1_000, 40.85] for at in range(200)]
    expected = [BRONX[0][0] <= lon <= BRONX[1][0] for lon, _ in places]
    for size in (1, 8, 200):
        batches = [places[start : start + size] for start in range(0, 200, size)]
        answers = [answer for each in batches for answer in regions.within([{}] * size, each, ["Bronx"] * size)]
        assert answers == expected
        assert len(regions._located) <= max(10, size)


def test_threads_share_it() -> None:
    within, distance = spatial(CITY)

    def ask(seed: int) -> bool:
        places = [[-73.95 + ((seed * 31 + at * 7) % 200) / 1_000, 40.85] for at in range(100)]
        expected = [BRONX[0][0] <= lon <= BRONX[1][0] for lon, _ in places]
        inside = within([{}] * 100, places, ["Bronx"] * 100) == expected
        metres = [one for (one,) in distance([{}] * 100, places, ["Bronx"] * 100, harken.FREE)]
        return inside and [each == 0.0 for each in metres] == expected

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(64)))


def test_operators_go_to_other_processes() -> None:
    within, distance = (pickle.loads(pickle.dumps(each)) for each in spatial(CITY))
    assert within([{}], [[-73.85, 40.85]], ["Bronx"]) == [True]
    assert distance([{}], [[-73.85, 40.85]], ["Bronx"], harken.FREE) == [[0.0]]


# GeoJSON


def test_geojson_from_a_file_and_names_from_another_property(tmp_path: Path) -> None:
    path = tmp_path / "regions.geojson"
    path.write_text(json.dumps(collection(feature("Brønx", polygon(BRONX), "borough"))), encoding="utf-8")
    for given_path in (path, str(path)):
        within, _ = spatial(given_path, name="borough")
        assert within([{}], [[-73.85, 40.85]], ["Brønx"]) == [True]
    with pytest.raises(OperatorError, match="feature 1 has no name: its property `name` is None") as caught:
        spatial(path)
    assert caught.value.hint == "spatial(regions, name='borough') takes names from another property"
    with pytest.raises(SourceError, match=r"nowhere\.geojson cannot be read: No such file"):
        spatial(tmp_path / "nowhere.geojson")
    path.write_text("{")
    with pytest.raises(OperatorError, match="is not JSON"):
        spatial(path)


BOW_TIE = polygon([(0, 0), (2, 2), (2, 0), (0, 2)])


@pytest.mark.parametrize(
    ("geojson", "message"),
    [
        ([], "regions are a FeatureCollection of GeoJSON, not a list without that type"),
        (polygon(BRONX), "regions are a FeatureCollection of GeoJSON, not a Polygon"),
        (collection(), "the FeatureCollection has no features"),
        (collection(7), "feature 1 is not a Feature of GeoJSON, but 7"),
        (collection(feature(12, polygon(BRONX))), "feature 1 has no name: its property `name` is 12"),
        (collection(feature("a", None)), "the region `a` has no geometry of GeoJSON"),
        (collection(feature("a", {"type": "Disc"})), "the region `a` has no geometry of GeoJSON"),
        (
            collection(feature("a", {"type": "Polygon", "coordinates": [[[0, 0], [1]]]})),
            "the region `a` has no geometry",
        ),
        (collection(feature("a", {"type": "Polygon", "coordinates": []})), "the region `a` is empty"),
        (collection(feature("a", polygon(square(583_960, 4_507_523, 9)))), "the region `a` is not on the earth"),
        (collection(feature("a", BOW_TIE)), "the region `a` is not valid: Self-intersection"),
    ],
)
def test_wrong_geojson(geojson: Any, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        spatial(geojson)


def test_shapes_that_cross_themselves_are_repaired_on_demand() -> None:
    within, _ = spatial(collection(feature("a", BOW_TIE)), repair=True)
    assert within([{}] * 3, [[0.1, 1], [1.9, 1], [1, 0.1]], ["a"] * 3) == [True, True, False]
