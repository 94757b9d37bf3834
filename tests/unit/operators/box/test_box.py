"""The box as a whole: what importing it loads, what a missing library is told as, and all operators in one engine."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import duckdb
import pytest
import rdflib

import harken
from harken.errors import MissingExtraError
from harken.operators import box
from test_architecture import LAZY


def test_importing_the_box_imports_nothing_heavy() -> None:
    program = f"import sys, harken.operators.box; print([name for name in {LAZY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


REGIONS = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": "square"},
            "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]},
        }
    ],
}


@pytest.mark.parametrize(
    ("library", "make"),
    [
        ("shapely", lambda: box.spatial(REGIONS)),
        ("rdflib", lambda: box.ontology("zoo.ttl")),
        ("duckdb", lambda: box.table_operator("t", "t.duckdb", "t", keys=("id",))),
        ("psycopg", lambda: box.table_operator("t", "postgresql://here/db", "t", keys=("id",))),
        ("rapidfuzz", lambda: box.similar([{}], ["a"], ["b"], harken.FREE)),
    ],
)
def test_a_missing_library_says_what_to_install(library: str, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=f"this needs {library}, which is not installed") as caught:
        make()
    assert caught.value.hint == "pip install 'harken[operators]'"


@pytest.mark.parametrize("order", ["adaptive", "suborder", "sequential", "naive"])
def test_all_of_them_in_one_subscription(order: str) -> None:
    turtle = (
        "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :Van rdfs:subClassOf :Car ."
    )
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE owners AS SELECT 'B-1' AS plate, 'Ann' AS owner, 50 AS most")
        operators = [
            *box.spatial(REGIONS),
            box.matches,
            box.similar,
            *box.ontology(rdflib.Graph().parse(data=turtle, format="turtle")),
            box.table_operator("owner", connection, "owners", keys=("plate",), values=("owner", "most")),
        ]
        engine = harken.Engine(operators=operators, order=order)
        where = (
            "within(at, 'square') AND matches(plate, '^B-') AND is_a(kind, 'Car') AND owner(plate, ?who, ?most) "
            "AND speed > ?most AND similar(driver, ?who, ?alike) AND ?alike < 50"
        )
        with pytest.raises(harken.HarkenError, match="the other of `similar` cannot be a variable"):
            engine.subscribe("a", where)
        engine.subscribe("a", where.replace("similar(driver, ?who, ?alike) AND ?alike < 50", "?who <> driver"))
        event = {"at": [0.5, 0.5], "plate": "B-1", "kind": "Van", "speed": 60, "driver": "Bob"}
        others = [{"at": [2, 2]}, {"plate": "A-1"}, {"kind": "Bike"}, {"speed": 50}, {"driver": "Ann"}, {"at": "here"}]
        matches = engine.match_batch([event, *(event | each for each in others)])
        assert matches.ids == [["a"], [], [], [], [], [], []]
        assert [(index, id) for index, id, _ in matches.errors] == [(6, "a")]
