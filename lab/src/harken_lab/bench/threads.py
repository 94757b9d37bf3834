"""match_batch with one thread and with two, beside a loop without memory accesses: the most a second thread gains."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy as np
import pyarrow as pa

from harken.engine import Engine
from harken.kernels.compile import kernel
from harken_lab.bench.figures import BenchResult, Key
from harken_lab.harness.result_files import Unavailable
from harken_lab.harness.rounds import Timing, interleaved

TURN = 0.2
"""Seconds a turn should last, about as long as the loop's. In turns a tenth as long, the start of a thread takes a
large share, and even the loop gains only 1.6 times.
"""
ROUNDS = 3
"""Multiple of the usual number of rounds: on a shared machine a second thread has a core of its own in some turns and
a sibling hyper-thread in others.
"""
LEAST_GAIN = 1.5
"""Where the loop gains less than this, the second core is busy and nothing is measured."""


@kernel
def alu_loop(steps: int, seed: int) -> int:
    """Arithmetic in registers (xorshift) that a compiler cannot precompute."""
    state = np.uint64(seed)
    for _ in range(steps):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
    return int(state)


def alu_gain(rounds: int, steps: int) -> list[float]:
    """How many times as many steps two threads do as one in the same time, round by round."""
    with ThreadPoolExecutor(2) as pool:
        timings = interleaved(
            {"one": lambda: alu_loop(steps, 1), "two": lambda: list(pool.map(alu_loop, [steps, steps], [1, 2]))},
            rounds,
        )
    return [2 * each for each in timings["one"].times(timings["two"])]


def measure_threads(
    result: BenchResult, key: Key, engine: Engine | Unavailable, events: pa.Table, rounds: int, steps: int
) -> None:
    """match_batch with one thread and two, beside the loop with one and two, in the same rounds. Raises Unavailable."""
    if isinstance(engine, Unavailable):
        raise engine
    match_batch = engine.match_batch
    result.add(
        key._replace(name="batch"), _in_a_loop(lambda: match_batch(events), rounds).microseconds(events.num_rows)
    )
    with ThreadPoolExecutor(2) as pool:
        timings: dict[str, Timing] = interleaved(
            {
                "one": lambda: match_batch(events, threads=1),
                "two": lambda: match_batch(events, threads=2),
                "loop": lambda: alu_loop(steps, 1),
                "loops": lambda: list(pool.map(alu_loop, [steps, steps], [1, 2])),
            },
            ROUNDS * rounds,
            TURN,
        )
    gain = timings["one"].times(timings["two"])
    most = [2 * each for each in timings["loop"].times(timings["loops"])]
    one, two, loop, loops = (min(timings[name].seconds) for name in ("one", "two", "loop", "loops"))
    gained, share = key._replace(name="thread_gain"), key._replace(name="thread_share")
    quickest = key._replace(name="thread_share_quickest")
    with result.unless_unavailable(gained, share, quickest):
        if median(most) < LEAST_GAIN:
            raise Unavailable(f"a loop gained only {median(most):.2f} times from a second thread: the machine was busy")
        result.add(gained, gain)
        result.add(share, [each / bound for each, bound in zip(gain, most, strict=True)])
        result.add(quickest, one / two / (2 * loop / loops))


def _in_a_loop(match: Callable[[], object], rounds: int) -> Timing:
    """Time batch after batch. Each answer is kept until the next exists, so memory for two answers is in use."""
    last: deque[object] = deque([match()], maxlen=1)
    return interleaved({"": lambda: last.append(match())}, rounds)[""]
