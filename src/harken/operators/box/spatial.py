"""Operators on positions: the named regions that contain a position, and its distance from them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from harken.concurrency.forking import PART, fork_lock
from harken.errors import OperatorError, SourceError, needing_extra
from harken.operators.box.declaring import NEVER, attempt, declared, failing, rows_of, unknown
from harken.operators.operator import FREE, Operator
from harken.schema.signatures import OperatorParameter
from harken.schema.values import Kind

EARTH_RADIUS = 6_371_008.8
"""Mean radius, in metres."""
Position = tuple[float, float]
"""Longitude and latitude, in degrees."""
_MOST_LOCATED = 65_536
"""Positions whose regions are cached."""
_LONGEST_EDGE = 0.05
"""Degrees. A longer edge is divided. An edge of length h, straight in degrees, departs from the great circle between
its ends by at most about R · h² / 8, that is 0.7 m: near the poles, if it is slanted."""
_AXES = (("lon", "lat"), ("longitude", "latitude"))
_WANTED = "a position is [longitude, latitude] in degrees, {'lon': …, 'lat': …}, or a point of WKT or GeoJSON"


def spatial(regions: str | Path | Mapping[str, Any], *, name: str = "name", repair: bool = False) -> list[Operator]:
    """The operators `within(position, 'region')` and `distance(position, 'region', ?metres)`.

    `regions` is GeoJSON, the path of a file or a dict: a FeatureCollection whose features have their region's name in
    the property `name`. Features of one name are parts of one region. `repair` makes shapes valid whose edges cross.
    The region may be a variable: `within(position, ?region)` binds each region that the position is in.

    A position on the edge of a region is within it. A distance is in metres, 0.0 inside the region: along the great
    circle of a sphere to the nearest point of the region's edges. Edges are straight in degrees, as GeoJSON has it, and
    followed to 1 metre. On the earth's ellipsoid, distances differ by up to 0.6 %.

    Raises OperatorError if the GeoJSON is wrong, SourceError if the file cannot be read, and MissingExtraError.
    """
    geojson = _read(regions) if isinstance(regions, str | Path) else regions
    named = Regions(*_shapes_of(geojson, name, repair))
    position = OperatorParameter("position")
    region = OperatorParameter("region", Kind.STRING, may_be_free=True, check=named.check_region)
    metres = OperatorParameter("metres", Kind.NUMBER, may_be_free=True)
    return [
        declared("within", named.within, position, region, most_failures=NEVER),
        declared("distance", named.distance, position, region, metres, most_failures=NEVER),
    ]


class Arcs(NamedTuple):
    """The edges of a region as arcs of great circles: vectors, an arc a row.

    A point is beside an arc if its dot product with `begins` is not negative, and with `stops` not positive.
    """

    ends: Any
    """Points of the unit sphere at which arcs begin or end, and points of the region that are on no edge."""
    normals: Any
    begins: Any
    stops: Any


class Regions:
    """Named shapes on the earth, and the regions and distances of positions. Threads may share it."""

    def __init__(self, names: Sequence[str], shapes: Sequence[Any], most_located: int = _MOST_LOCATED) -> None:
        with needing_extra():
            import numpy as np
            import shapely
        self._names = list(names)
        self._shapes = np.array(shapes, dtype=object)
        shapely.prepare(self._shapes)
        self._tree = shapely.STRtree(self._shapes)
        self._parts: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            self._parts.setdefault(name, []).append(number)
        self._arcs: dict[str, Arcs] = {}
        self._located: dict[Position, frozenset[str]] = {}
        self._most_located = most_located
        self._lock = fork_lock(PART)

    def __reduce__(self) -> Any:
        return Regions, (self._names, self._shapes.tolist(), self._most_located)

    # The operators

    def within(self, events: Sequence[Any], positions: Any, regions: Any) -> list[Any]:
        rows = zip(self._places(positions), rows_of(events, regions), strict=True)
        return [attempt(self._is_within, place, *row) for place, row in rows]

    def distance(self, events: Sequence[Any], positions: Any, regions: Any, metres: Any) -> list[Any]:
        if metres is not FREE:
            message = "a distance is a variable: write distance(position, 'region', ?metres) AND ?metres <= 500"
            return [failing(OperatorError(message)) for _ in events]
        rows = zip(self._places(positions), rows_of(events, regions), strict=True)
        return [attempt(self._distances, place, *row) for place, row in rows]

    def _is_within(self, place: Position | OperatorError, region: Any) -> bool | list[str]:
        inside = self._regions_at(place)
        if region is FREE:
            return sorted(inside)
        self.check_region(region)
        return region in inside

    def _distances(self, place: Position | OperatorError, region: Any) -> list[Any]:
        inside = self._regions_at(place)
        assert not isinstance(place, OperatorError)
        if region is FREE:
            return [(each, 0.0 if each in inside else self._to_edge(place, each)) for each in self._parts]
        self.check_region(region)
        return [0.0 if region in inside else self._to_edge(place, region)]

    def check_region(self, name: Any) -> None:
        """Raise OperatorError if there is no such region."""
        if not isinstance(name, str) or name not in self._parts:
            raise unknown("region", name, self._parts)

    # Where a position is

    def _places(self, given: Iterable[Any]) -> list[Position | OperatorError]:
        """Positions, or their errors. All positions whose regions are not cached are located together."""
        places = [_position_or_error(each) for each in given]
        self._locate([each for each in places if isinstance(each, tuple)])
        return places

    def _regions_at(self, place: Position | OperatorError) -> frozenset[str]:
        if isinstance(place, OperatorError):
            raise place
        regions = self._located.get(place)
        return self._locate([place])[place] if regions is None else regions

    def _locate(self, places: Iterable[Position]) -> dict[Position, frozenset[str]]:
        """The regions of each position, cached: each is looked up in the tree once for all regions."""
        cache = self._located
        cached = {place: cache.get(place) for place in places}
        new = [place for place, regions in cached.items() if regions is None]
        located = self._search(new) if new else {}
        if len(cache) + len(located) > self._most_located:  # repeated positions are close in time: drop the old ones
            self._located = dict(located)
        else:
            cache.update(located)
        return {place: located[place] if regions is None else regions for place, regions in cached.items()}

    def _search(self, places: Sequence[Position]) -> dict[Position, frozenset[str]]:
        import numpy as np
        import shapely

        lon, lat = np.array(places, np.float64).T
        with self._lock:  # a prepared shape builds its index at first use
            which, numbers = self._tree.query(shapely.points(lon, lat))
            is_inside = shapely.intersects_xy(self._shapes[numbers], lon[which], lat[which])
        regions: list[set[str]] = [set() for _ in places]
        for place, number in zip(which[is_inside].tolist(), numbers[is_inside].tolist(), strict=True):
            regions[place].add(self._names[number])
        return dict(zip(places, map(frozenset, regions), strict=True))

    # How far it is

    def _to_edge(self, place: Position, region: str) -> float:
        """Metres to the nearest point of a region's edges."""
        import numpy as np

        arcs = self._arcs.get(region)
        if arcs is None:
            arcs = self._arcs[region] = _arcs_of([self._shapes[number] for number in self._parts[region]])
        here = _on_sphere(np.array([place]))[0]
        chord = np.sqrt(np.min(np.sum((arcs.ends - here) ** 2, axis=1)))
        nearest = 2.0 * math.asin(min(1.0, chord / 2.0))
        is_beside = (arcs.begins @ here >= 0.0) & (arcs.stops @ here <= 0.0)
        if is_beside.any():
            sine = np.min(np.abs(arcs.normals[is_beside] @ here))
            nearest = min(nearest, math.asin(min(1.0, sine)))
        return EARTH_RADIUS * nearest


def _arcs_of(shapes: Iterable[Any]) -> Arcs:
    import numpy as np
    import shapely

    parts = shapely.get_parts(shapely.segmentize(np.array(list(shapes), dtype=object), _LONGEST_EDGE))
    while any(each.geom_type.startswith(("Multi", "Geometry")) for each in parts):
        parts = shapely.get_parts(parts)
    is_area = shapely.get_type_id(parts) == shapely.GeometryType.POLYGON
    lines = [*parts[~is_area], *shapely.get_rings(parts[is_area])]
    points = [_on_sphere(shapely.get_coordinates(each)) for each in lines]
    first, last = (np.concatenate(several) for several in ([p[:-1] for p in points], [p[1:] for p in points]))
    normals = np.cross(first, last)
    lengths = np.linalg.norm(normals, axis=1)
    is_arc = lengths > 0.0
    normals = normals[is_arc] / lengths[is_arc, None]
    return Arcs(np.concatenate(points), normals, np.cross(normals, first[is_arc]), np.cross(normals, last[is_arc]))


def _on_sphere(degrees: Any) -> Any:
    import numpy as np

    lon, lat = np.radians(degrees).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


# Positions


def _position_or_error(given: Any) -> Position | OperatorError:
    try:
        return position_of(given)
    except OperatorError as error:
        return error


def position_of(given: Any) -> Position:
    """A position from a pair of numbers, WKT, GeoJSON or a dict of longitude and latitude. Raises OperatorError."""
    coordinates = given
    if isinstance(given, str):
        return _point_of_wkt(given)
    if isinstance(given, Mapping):
        coordinates = _in_mapping(given)
    if isinstance(coordinates, list | tuple) and len(coordinates) in (2, 3):
        lon, lat = coordinates[:2]
        is_number = type(lon) in (int, float) and type(lat) in (int, float)
        if is_number and -180 <= lon <= 180 and -90 <= lat <= 90:
            return float(lon), float(lat)
    raise OperatorError(f"{_WANTED}, not {given!r:.80}")


def _in_mapping(given: Mapping[Any, Any]) -> Any:
    """The coordinates in a dict of longitude and latitude, or in GeoJSON; None if there are none."""
    for lon, lat in _AXES:
        if lon in given and lat in given:
            return [given[lon], given[lat]]
    inner = given.get("geometry") if given.get("type") == "Feature" else given
    return inner.get("coordinates") if isinstance(inner, Mapping) and inner.get("type") == "Point" else None


@lru_cache(maxsize=4_096)
def _point_of_wkt(text: str) -> Position:
    with needing_extra():
        import shapely
    try:
        point = shapely.from_wkt(text)
    except (shapely.errors.ShapelyError, ValueError) as problem:
        raise OperatorError(f"{_WANTED}, not {text!r:.80}") from problem
    if point.geom_type != "Point" or point.is_empty:
        raise OperatorError(f"{_WANTED}, not {text!r:.80}")
    return position_of([point.x, point.y])


# GeoJSON


def _read(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise SourceError(f"{path} cannot be read: {problem.strerror or problem}") from problem
    except ValueError as problem:
        raise OperatorError(f"{path} is not JSON: {problem}") from problem


def _shapes_of(given: Any, name: str, repair: bool) -> tuple[list[str], list[Any]]:
    """The names and shapes of a FeatureCollection's features."""
    kind = given.get("type") if isinstance(given, Mapping) else None
    if kind != "FeatureCollection":
        actual = f"a {kind}" if isinstance(kind, str) else f"a {type(given).__name__} without that type"
        raise OperatorError(f"regions are a FeatureCollection of GeoJSON, not {actual:.60}")
    features = given.get("features")
    if not isinstance(features, list | tuple) or not features:
        raise OperatorError("the FeatureCollection has no features")
    names = [_name_of(feature, number, name) for number, feature in enumerate(features, 1)]
    return names, [_shape_of(feature, region, repair) for feature, region in zip(features, names, strict=True)]


def _name_of(feature: Any, number: int, name: str) -> str:
    if not isinstance(feature, Mapping) or feature.get("type") != "Feature":
        raise OperatorError(f"feature {number} is not a Feature of GeoJSON, but {feature!r:.40}")
    properties = feature.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    value = properties.get(name)
    if isinstance(value, str) and value:
        return value
    texts = [each for each, text in properties.items() if isinstance(text, str)]
    message = f"feature {number} has no name: its property `{name}` is {value!r:.40}"
    shown = texts[0] if len(texts) == 1 else next((each for each in texts if "name" in each.lower()), "…")
    raise OperatorError(message, hint=f"spatial(regions, name={shown!r}) takes names from another property")


def _shape_of(feature: Mapping[str, Any], name: str, repair: bool) -> Any:
    with needing_extra():
        import shapely
        from shapely.geometry import shape
    geometry = feature.get("geometry")
    try:
        region = shape(geometry)
        low_lon, low_lat, high_lon, high_lat = region.bounds
    except (shapely.errors.ShapelyError, AttributeError, TypeError, ValueError, KeyError, IndexError) as problem:
        raise OperatorError(f"the region `{name}` has no geometry of GeoJSON: {problem}") from problem
    if region.is_empty:
        raise OperatorError(f"the region `{name}` is empty")
    if not (-180 <= low_lon <= high_lon <= 180 and -90 <= low_lat <= high_lat <= 90):
        shown = f"it has coordinates from {low_lon:g}, {low_lat:g} to {high_lon:g}, {high_lat:g}"
        hint = "GeoJSON is in degrees of longitude and latitude, and shapes are cut at the antimeridian"
        raise OperatorError(f"the region `{name}` is not on the earth: {shown}", hint=hint)
    if not region.is_valid:
        if not repair:
            hint = "spatial(regions, repair=True) makes it valid"
            raise OperatorError(f"the region `{name}` is not valid: {shapely.is_valid_reason(region)}", hint=hint)
        region = shapely.make_valid(region)
    return region
