"""Measurements in a fresh process: peak memory, and the first match.

The process is `python -m harken_lab.bench.child TASK MATCHER FOLDER`, and prints one line of JSON. FOLDER holds what
`pack` wrote.
"""

from __future__ import annotations

import json
import pickle
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from harken.engine import Engine

_PACKED = "packed.pickle"


def pack(folder: Path, size: int, predicates: list[Any], events: Any) -> None:
    """Write what a child needs, normalised arrays and events: drawing them in the child would use memory."""
    with (folder / _PACKED).open("wb") as stream:
        pickle.dump((size, predicates, events), stream, protocol=pickle.HIGHEST_PROTOCOL)


def in_child(task: str, matcher: str, folder: Path) -> dict[str, float]:
    """Run a task in a child process and return its figures. Raises RuntimeError if it fails."""
    command = [sys.executable, "-m", "harken_lab.bench.child", task, matcher, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def peak(matcher: str, folder: Path) -> dict[str, float]:
    """MiB before building, and at the peak of building and matching."""
    from harken_lab.bench.trials import CONTESTANTS

    flat, events = _unpacked(folder)
    before = peak_mib()
    filled = CONTESTANTS[matcher].fill_rows(flat)
    del flat  # an index in use does not keep its rows
    filled.take(events).find()
    return {"start": before, "peak": peak_mib()}


def first_match(matcher: str, folder: Path) -> dict[str, float]:
    """Seconds from `import harken` to the first answer, without reading the arrays and building the index.

    Imports and kernels that only a match needs are included.
    """
    started = perf_counter()
    from harken_lab.bench.trials import CONTESTANTS

    CONTESTANTS[matcher].matcher()  # an empty one, to import its modules
    imported = perf_counter()
    flat, events = _unpacked(folder)
    filled = CONTESTANTS[matcher].fill_rows(flat)
    built = perf_counter()
    filled.take(events).find()
    return {"seconds": perf_counter() - built + imported - started}


def first_match_of_engine(matcher: str, folder: Path) -> dict[str, float]:
    """Seconds from `import harken` to the first answer of an engine with one subscription, all included."""
    started = perf_counter()
    engine = Engine(algorithm=matcher)
    engine.subscribe("cheap toys", "category = 'Toy' AND price < 5")
    ids = engine.match({"category": "Toy", "price": 3.5}).ids
    seconds = perf_counter() - started
    assert ids == ["cheap toys"], ids
    return {"seconds": seconds}


def peak_mib() -> float:
    """The peak of this process's resident memory.

    Read from /proc where there is one: getrusage includes the parent's memory at the time of the fork.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024
    except (OSError, StopIteration):
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return kib / (1024 * 1024 if sys.platform == "darwin" else 1024)


TASKS = {"peak": peak, "first_match": first_match, "first_match_of_engine": first_match_of_engine}


def _unpacked(folder: Path) -> Any:
    """The rows and the events that `pack` wrote."""
    import numpy as np

    from harken.codes.flat import Flat

    with (folder / _PACKED).open("rb") as stream:
        size, predicates, events = pickle.load(stream)
    return Flat.of_predicates(np.arange(size, dtype=np.int32), predicates), events


if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))))
