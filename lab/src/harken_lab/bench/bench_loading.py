"""The time to load a saved engine."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import pyarrow as pa

from harken.engine import Engine
from harken_lab.bench.figures import BenchResult, Key
from harken_lab.harness.result_files import WrongAnswerError


def measure_load(result: BenchResult, key: Key, engine: Engine, events: pa.Table, rounds: int) -> None:
    """Time loading a saved engine, which maps its files into memory. Raises WrongAnswerError if its answers changed."""
    some = events.slice(0, 8)
    milliseconds = []
    with TemporaryDirectory(prefix="harken-bench-") as folder:
        path = str(Path(folder, "engine"))
        engine.save(path)
        for _ in range(rounds + 1):
            started = perf_counter()
            loaded = Engine.load(path)
            milliseconds.append((perf_counter() - started) * 1e3)
        if list(map(set, loaded.match_batch(some).ids)) != list(map(set, engine.match_batch(some).ids)):
            raise WrongAnswerError("an engine that was saved and loaded gives other answers")
    result.add(key, milliseconds[1:])
