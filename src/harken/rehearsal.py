"""`harken warm-up`: a small life of engines, in which every kernel is compiled."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from harken.engine import Engine
from harken.internals import join_engines
from harken.operators import FREE, ORDERS, operator

_LARGE = 6_000
_EVENTS = 200
_VERIFIED = 50
"""One condition in this many is of a form that is verified one by one."""
_KERNELS = 155
"""About as many kernels are compiled where none are kept."""
_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def warm_up(progress: Callable[[str], None] | None = None) -> int:
    """Compile every kernel that matching needs and that is not cached yet. Returns the number of matches made.

    It takes about a minute on a new machine, and some seconds afterwards. `progress` is called with what is being done.
    """
    tell = progress or (lambda step: None)
    draw = Random(1)
    events = _events(draw)
    tell("small engines")
    matches = _small(events)
    tell("large engines")
    engine = _large(draw)
    matches += _matched(engine, events)
    tell("equalities and dense subscriptions")
    matches += _equalities(draw, events) + _dense(draw)
    with tempfile.TemporaryDirectory(prefix="harken-warm-up-") as folder:
        tell("engines on disk")
        matches += _on_disk(engine, events, Path(folder))
        tell("XML documents")
        matches += _documents(Path(folder))
    tell("operators")
    matches += sum(map(_operators, ORDERS))
    return matches


def kernels() -> int:
    """About how many kernels `warm_up` compiles where none are kept."""
    return _KERNELS


def compile_silently() -> None:
    """Do not say that kernels are compiled, in this process. Workers call it: their output is not read."""
    from harken.kernels.compile import compiling_silently

    compiling_silently()


def _small(events: list[dict[str, Any]]) -> int:
    engine = Engine(background=False)
    engine.subscribe_many([(f"s{n}", _text(n, Random(n))) for n in range(300)])
    matches = _matched(engine, events)
    engine.subscribe("one", "category = 'new' AND price < 3.5")
    engine.unsubscribe("one")
    return matches + len(engine.match(events[0]).ids)


def _large(draw: Random) -> Engine:
    """An engine with a base, middle layers, deleted rows and recent rows."""
    engine = Engine(background=False, recent_rows=512)
    engine.subscribe_many([(f"s{n}", _text(n, draw)) for n in range(_LARGE)])
    engine.subscribe_many([(f"k{n}", f"category = 'c{n % 40}'") for n in range(_LARGE)])  # runs that are copied whole
    engine.subscribe_many([(f"t{n}", _text(n, draw)) for n in range(600)])
    for number in range(0, 400, 3):
        engine.unsubscribe(f"s{number}")
    for number in range(5):
        engine.subscribe(f"r{number}", _text(number, draw))
    return engine


def _equalities(draw: Random, events: list[dict[str, Any]]) -> int:
    """Subscriptions of several equalities and nothing else: their clusters get filters."""
    engine = Engine(background=False)
    engine.subscribe_many(
        (f"e{n}", f"category = 'c{n % 40}' AND title = 'title {n % 90}' AND size = {draw.randrange(1_000)}")
        for n in range(_LARGE // 2)
    )
    engine.merge()
    return _matched(engine, events)


def _dense(draw: Random) -> int:
    """Few values and many matches, from a table of predicates: these become pools."""
    import pyarrow as pa

    predicates = [
        [{"attribute": f"d{n}", "operator": draw.choice(["=", "<", ">="]), "value": draw.randrange(8)} for n in chosen]
        for chosen in (draw.sample(range(10), draw.randint(1, 4)) for _ in range(_LARGE))
    ]
    table = pa.table({"id": [f"d{n}" for n in range(_LARGE)], "predicates": predicates})
    engine = Engine(background=False)
    engine.subscribe_many(table)
    engine.merge()
    return _matched(engine, [{f"d{n}": draw.randrange(8) for n in range(10)} for _ in range(200)])


def _on_disk(engine: Engine, events: list[dict[str, Any]], folder: Path) -> int:
    """Memory-mapped arrays are read-only, and kernels are compiled for them separately."""
    engine.save(folder / "whole")
    loaded = Engine.load(folder / "whole", background=False)
    matches = _matched(loaded, events)
    loaded.unsubscribe("s2")
    matches += _matched(loaded, events)
    for number, part in enumerate(loaded.internals.cut(2)):
        part.save(folder / str(number))
    joined, _ = join_engines([Engine.load(folder / str(number)) for number in range(2)])
    joined.unsubscribe("s1")
    joined.subscribe("new", "category = 'c1'")
    return matches + _matched(joined, events)


def _documents(folder: Path) -> int:
    """XPath over documents, as subscriptions come, are merged, saved, loaded and divided."""
    documents = [f"<a><b c='{n}'><d>v{n}</d> text &amp; more<e>{n}.5</e></b></a>".encode() for n in range(200)]
    texts = (
        "/a/b[d = 'v{n}' and e > {n}]/@c = {n}",
        "//b[not(f) and .//e != '7.5']",
        "/a/b/d = 'v{n}' or //e/text() <= {n}",
    )
    engine = Engine(background=False)
    engine.subscribe("mixed", "kind = 1 AND xpath_boolean(document, '/a/b')")

    def add(first: int, into: Engine) -> int:
        into.subscribe_many(
            {"id": f"x{n}", "where": texts[n % 3].format(n=n), "language": "xpath"} for n in range(first, first + 30)
        )
        return len(into.match_batch(documents).numbers) + len(into.match(documents[0]).ids)

    matches = add(0, engine) + add(30, engine)
    engine.unsubscribe("x1")
    engine.save(folder / "documents")
    loaded = Engine.load(folder / "documents", background=False)
    matches += add(60, loaded)
    joined, _ = join_engines(loaded.internals.cut(2))
    return matches + add(90, joined) + len(joined.match({"kind": 1, "document": documents[0].decode()}).ids)


def _operators(order: str) -> int:
    """Operators in an order: some hold, some fail, and some have variables."""

    @operator(name="divides", cost=1, deterministic=False, most_failures=_EVENTS)
    def divides(event: Any, by: int, times: Any = FREE) -> list[int]:
        return [event["n"] // by] if event["n"] % by == 0 else []

    engine = Engine(operators=[divides], order=order, background=False)
    for n in range(1, 40):
        engine.subscribe(n, f"divides({n % 7}, ?x) AND divides({n % 5 + 1}, ?y) AND (?x > ?y OR n = {n})")
    return len(engine.match_batch([{"n": n} for n in range(60)]).numbers)


def _matched(engine: Engine, events: list[dict[str, Any]]) -> int:
    """Match events in every form in which they may come. Returns the number of matches."""
    import pyarrow as pa

    flat = [{key: value for key, value in event.items() if not isinstance(value, list)} for event in events]
    table = pa.Table.from_pylist(flat)
    large = table.cast(_with_large_strings(table.schema))
    found = [
        engine.match_batch(events),
        engine.match_batch(table, threads=2, on_mismatch="ignore"),
        engine.match_batch(large, on_mismatch="ignore"),
    ]
    for each in found:
        each.arrow_ids()
        each.arrow_names(plain=True)
        each.arrow_fields("owner")
    return sum(len(each.numbers) for each in found) + sum(len(engine.match(event).ids) for event in events[:20])


def _with_large_strings(schema: Any) -> Any:
    import pyarrow as pa

    fields = [field.with_type(pa.large_string()) if field.type == pa.string() else field for field in schema]
    return pa.schema(fields)


def _text(number: int, draw: Random) -> str:
    """A condition, of one of several forms."""
    category, price, size = f"c{draw.randrange(40)}", draw.randrange(500) / 4, draw.randrange(1_000)
    forms = (
        f"category = '{category}' AND price < {price}",
        f"price BETWEEN {price} AND {price + 9} AND size > {size}",
        f"category IN ('{category}', 'c1') AND size <> {size}",
        f"category = '{category}' OR size = {size}",
        f"at >= TIMESTAMP '2026-01-01T{draw.randrange(24):02}:00:00Z' AND sold = {draw.choice(['true', 'false'])}",
        f"title < 'title {number % 90}' AND brand IS NULL AND size < {size}",
        f"user = 'u{number}' AND size < {size}",
    )
    verified = (
        f"title LIKE '%{number % 90}%' AND price > {price}",
        f"tags CONTAINS 't{draw.randrange(9)}' AND seller.rating >= {draw.randrange(5)}",
    )
    return verified[number // _VERIFIED % 2] if number % _VERIFIED == 0 else forms[number % len(forms)]


def _events(draw: Random) -> list[dict[str, Any]]:
    return [
        {
            "category": f"c{draw.randrange(45)}",
            "price": draw.randrange(500) / 4,
            "size": draw.randrange(1_000),
            "title": f"title {draw.randrange(100)}",
            "at": _NOON + timedelta(hours=draw.randrange(-12, 12)),
            "sold": draw.random() < 0.5,
            "user": f"u{draw.randrange(_LARGE)}",
            "seller": {"rating": draw.randrange(6)},
            "tags": [f"t{draw.randrange(9)}" for _ in range(draw.randrange(3))],
        }
        for _ in range(_EVENTS)
    ]
