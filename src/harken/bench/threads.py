"""What a second thread gains: in match_batch, and in a loop that touches no memory, which is all there is to gain."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy as np
import pyarrow as pa

from harken.bench.figures import Key, Result, Unavailable
from harken.bench.rounds import Timing, interleaved
from harken.engine import Engine
from harken.kernels.compile import kernel

LEAST_GAIN = 1.5
"""Where a loop gains less than this, the second core is not free, and nothing can be said."""


@kernel
def alu_loop(turns: int, seed: int) -> int:
    """Arithmetic in registers (xorshift), which no compiler can foresee."""
    state = np.uint64(seed)
    for _ in range(turns):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
    return int(state)


def alu_gain(rounds: int, turns: int) -> list[float]:
    """How many times as much two threads do in the same time, round by round."""
    with ThreadPoolExecutor(2) as pool:
        timings = interleaved(
            {"one": lambda: alu_loop(turns, 1), "two": lambda: list(pool.map(alu_loop, [turns, turns], [1, 2]))},
            rounds,
        )
    return [2 * each for each in timings["one"].times(timings["two"])]


def measure_threads(
    result: Result, key: Key, engine: Engine | Unavailable, events: pa.Table, rounds: int, turns: int
) -> None:
    """The gain of match_batch(threads=2) beside that of the loop, in the same rounds. Raises Unavailable."""
    if isinstance(engine, Unavailable):
        raise engine
    match_batch = engine.match_batch
    with ThreadPoolExecutor(2) as pool:
        found: dict[str, Timing] = interleaved(
            {
                "one": lambda: match_batch(events, threads=1),
                "two": lambda: match_batch(events, threads=2),
                "loop": lambda: alu_loop(turns, 1),
                "loops": lambda: list(pool.map(alu_loop, [turns, turns], [1, 2])),
            },
            rounds,
        )
    gain = found["one"].times(found["two"])
    most = [2 * each for each in found["loop"].times(found["loops"])]
    if median(most) < LEAST_GAIN:
        raise Unavailable(f"a loop gained only {median(most):.2f} times from a second thread: the machine was busy")
    result.add(key._replace(name="thread_gain"), gain)
    result.add(key._replace(name="thread_share"), [each / bound for each, bound in zip(gain, most, strict=True)])
