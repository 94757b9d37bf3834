"""Adding and removing subscriptions: the cost of a change, and of matching while changes go on."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter, process_time, sleep

import numpy as np
import pyarrow as pa

from harken_lab.bench.figures import BenchResult, Key
from harken_lab.harness.live import LiveMatcher
from harken_lab.harness.result_files import Unavailable

RATE = 1_000
"""Updates a second, while matching goes on."""
_MERGER = "harken-merge"
"""The name of the columnar matcher's merge thread."""
_FEWEST_REACHED = 0.9
"""The least share of `RATE` that counts as measured under updates."""


def measure_updates(result: BenchResult, key: Key, live: LiveMatcher, size: int, events: pa.Table, rounds: int) -> None:
    """Remove a tenth of all subscriptions, or 10,000, one by one, then add them again.

    The time is that of the calls, of the background work that they start, and the extra time of the next match.
    """
    one = events.slice(0, 1)
    rng = np.random.default_rng(0)
    count = max(1, len(live.entries) if size >= 10 * len(live.entries) else size // 10)
    times: dict[str, list[float]] = {name: [] for name in ("delete", "delete_cpu", "insert", "insert_cpu")}
    for number in range(rounds + 1):
        chosen = [live.entries[each] for each in rng.choice(len(live.entries), count, replace=False)]
        settle(live, one)
        rest = _at_rest(live, one)
        for name, change in (("delete", live.remove), ("insert", live.add)):
            called = _seconds(partial(change, chosen))
            settled = _seconds(partial(settle, live, one))
            if number:
                longer = [max(0.0, after - before) for after, before in zip(settled, rest, strict=True)]
                times[name].append((called[0] + longer[0]) / count * 1e6)
                times[f"{name}_cpu"].append((called[1] + longer[1]) / count * 1e6)
    for name, values in times.items():
        result.add(key._replace(name=name), values)


def measure_under_updates(
    result: BenchResult, key: Key, live: LiveMatcher, events: pa.Table, rounds: int, window: float = 1.0
) -> None:
    """Match for a window at rest, then for one with updates from another thread, in turns. Raises Unavailable."""
    settle(live, events)
    ratios = []
    for number in range(rounds + 1):
        rest = _seconds_a_match(live, events, window)
        with_updates, rate = _while_updating(Updater(live), lambda: _seconds_a_match(live, events, window))
        if rate < _FEWEST_REACHED * RATE:
            raise Unavailable(f"only {rate:,.0f} updates a second were reached while matching, not {RATE:,}")
        if number:
            ratios.append(with_updates / rest)
    result.add(key, ratios)


class Updater(threading.Thread):
    """Makes `rate` changes a second: removes a subscription, adds back one removed earlier, and so on."""

    def __init__(self, live: LiveMatcher, rate: int = RATE) -> None:
        super().__init__(daemon=True)
        self._live = live
        self._rate = rate
        self._stopping = threading.Event()
        self._removed = [live.entries[0]]
        self._next = 1
        self.done = 0
        self.error: Exception | None = None

    def run(self) -> None:
        started = perf_counter()
        try:
            self._live.remove(self._removed)
            while not self._stopping.is_set():
                due = int((perf_counter() - started) * self._rate)
                while self.done < due and not self._stopping.is_set():
                    self._update()
                sleep(0.5 / self._rate)
            self._live.add(self._removed)
        except Exception as error:
            self.error = error

    def stop(self) -> None:
        self._stopping.set()
        self.join()
        if self.error is not None:
            raise self.error

    def _update(self) -> None:
        entries = self._live.entries
        if self.done % 2:
            self._live.add([self._removed.pop(0)])
        else:
            entry = entries[self._next % len(entries)]
            self._next += 1
            self._live.remove([entry])
            self._removed.append(entry)
        self.done += 1


def settle(live: LiveMatcher, events: pa.Table) -> None:
    """Match, so that postponed work is done, and wait for background merges."""
    live.match(events)
    wait_for_merges()


def wait_for_merges() -> None:
    """Wait until no index is merged in the background."""
    for thread in threading.enumerate():
        if thread.name == _MERGER and thread.is_alive():  # one that has not started is awaited by the next merge
            thread.join()


def _seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Wall-clock time and processor time of a run."""
    started, started_cpu = perf_counter(), process_time()
    run()
    return perf_counter() - started, process_time() - started_cpu


def _at_rest(live: LiveMatcher, events: pa.Table) -> tuple[float, float]:
    times = [_seconds(lambda: settle(live, events)) for _ in range(5)]
    return median(wall for wall, _ in times), median(cpu for _, cpu in times)


def _seconds_a_match(live: LiveMatcher, events: pa.Table, window: float) -> float:
    gc.collect()
    started = perf_counter()
    count = 0
    while perf_counter() - started < window:
        live.match(events)
        count += 1
    return (perf_counter() - started) / count


def _while_updating(updater: Updater, run: Callable[[], float]) -> tuple[float, float]:
    """The seconds that the run returns, and the rate of updates during it."""
    started = perf_counter()
    updater.start()
    try:
        seconds = run()
        rate = updater.done / (perf_counter() - started)
    finally:
        updater.stop()
    return seconds, rate
