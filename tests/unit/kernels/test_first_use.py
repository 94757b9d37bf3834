"""What plain subscriptions have compiled on a new machine: as few kernels as they need, each for one kind of array."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "src"
PROGRAM = """
import json, sys, threading
from collections import Counter
from numba.core import event

class Listener(event.Listener):
    compiled = Counter()
    def on_start(self, started):
        function = started.data["dispatcher"].py_func
        if function.__module__.startswith("harken."):
            self.compiled[f"{function.__module__.rpartition('.')[2]}.{function.__name__}"] += 1
    def on_end(self, ended):
        pass

event.register("numba:compile", Listener())
import pyarrow as pa
import harken

engine = harken.Engine()
texts = ("category = 'c{c}' AND price < {n}", "category = 'c{c}' AND price BETWEEN {n} AND {m} AND stock > 3")
texts += ("brand = 'b{n}' AND category = 'c{c}'", "category IN ('c{c}', 'c1') AND price >= {n}.5")
engine.subscribe_many((f"s{n}", texts[n % 4].format(n=n % 500, m=n % 500 + 9, c=n % 200)) for n in range(5_000))
events = [{"category": f"c{n % 210}", "price": n % 400, "stock": n % 9, "brand": f"b{n}"} for n in range(1_000)]
found = [sorted(engine.match(event).ids) for event in events[:9]]
dicts = engine.match_batch(events).ids
assert [sorted(ids) for ids in dicts[:9]] == found
table = engine.match_batch(pa.Table.from_pylist(events))
assert table.ids == dicts
table.arrow_ids()
fresh = dict(Listener.compiled)
engine.save(sys.argv[1])
loaded = harken.Engine.load(sys.argv[1])
assert [sorted(ids) for ids in loaded.match_batch(events).ids[:9]] == found
assert sorted(loaded.match(events[3]).ids) == found[3]
loaded.match_batch(pa.Table.from_pylist(events)).arrow_ids()
print(json.dumps([fresh, dict(Listener.compiled - Counter(fresh))]))
"""


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kept"), "PYTHONPATH": str(SOURCES)}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder / "saved")],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        timeout=600,
    )


@pytest.mark.seconds
def test_plain_subscriptions_need_few_kernels_and_each_once(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.stderr.count("compiling kernels") == 1
    fresh, loaded = json.loads(done.stdout)
    # Strings come with offsets of 32 and of 64 bits, and bounds are of 16 or of 32 bits.
    two = {"encode_values.encode_strings", "runs._first_among", "sifting._sift", "vector.spread_word"}
    assert {name for name, signatures in fresh.items() if signatures > 1} <= two
    assert len(fresh) <= 55
    assert sum(fresh.values()) <= 60
    rooms = {name.partition(".")[0] for name in fresh}
    assert rooms.isdisjoint({"pool", "sieve", "sieve_building", "several", "programs", "documents", "xml", "ordering"})
    # What is mapped is read-only: that compiles nothing of the search again.
    assert {"runs.find_runs", "copying.copy_runs", "columnar.match_codes"} <= set(fresh)
    assert set(loaded) <= {"checksum.sum_of_mixtures", "encode_values.encode_strings"} | two, loaded
    again = run(tmp_path)
    assert json.loads(again.stdout) == [{}, {}]
    assert again.stderr == ""
