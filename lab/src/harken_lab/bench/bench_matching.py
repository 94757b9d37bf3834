"""Matching time: every matcher at every size of a workload, beside copying and writing its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harken.events import validate
from harken.kernels.copying import repeat_lines
from harken.kernels.vector import aligned
from harken_lab.bench.figures import BenchResult, Key, NotMeasured
from harken_lab.bench.trials import BASELINE, Trial
from harken_lab.harness.rounds import TURN, Timing, interleaved
from harken_lab.harness.verified_answers import Numbers, Offsets, verify, verify_arrow

_REPEATED = 1 << 12
"""Numbers that `write` writes over and over: few enough to stay in the first-level cache."""
_MATCHES_AS_ARROW = 1 << 22
"""Most matches that are converted to Arrow: with more, most of the time goes into allocating memory."""


class _Timed(NamedTuple):
    """A run to time, and its number of events."""

    run: Callable[[], object]
    events: int


def measure_matching(result: BenchResult, trials: Sequence[Trial], rounds: int) -> None:
    """Time all sizes of a workload together, so that ratios and growth come from the same rounds."""
    for trial in trials:
        verify(trial.workload, trial.matchers)
        _note_unable(result, trial)
    timed: dict[Key, _Timed] = {}
    for trial in trials:
        timed |= _timed(trial)
    timings = interleaved({key: each.run for key, each in timed.items()}, rounds, TURN)
    for key, timing in timings.items():
        result.add(key, timing.microseconds(timed[key].events))
        if key.name == "match":
            result.add(key._replace(name="match_first"), Timing(timing.first).microseconds(timed[key].events))
    for trial in trials:
        _add_ratios(result, trial, timings)
        _add_sizes(result, trial)
    for smaller, larger in _growing(trials):
        _add_growth(result, smaller, larger, timings)


def _timed(trial: Trial) -> dict[Key, _Timed]:
    """The runs of a trial, by figure."""
    name, size = trial.workload.name, trial.size
    runs = {
        Key("match", name, size, matcher): _Timed(each.find, trial.events) for matcher, each in trial.matchers.items()
    }
    if trial.matchers:
        runs |= {Key(what, name, size): timed for what, timed in _around(trial)}
    return runs


def _around(trial: Trial) -> Iterator[tuple[str, _Timed]]:
    """The steps before and after matching: encoding, copying, writing and converting the answers of one matcher."""
    matcher, events = trial.first.matcher, trial.workload.events
    offsets, numbers = trial.first.matches()
    offsets, numbers = offsets.copy(), numbers.copy()
    target, other, few = np.empty_like(numbers), aligned(len(numbers), np.int32), aligned(_REPEATED, np.int32)
    few[:] = np.arange(_REPEATED)  # no zeros: lines of zeros are written twice as quickly
    yield "copy", _Timed(lambda: np.copyto(target, numbers), trial.events)
    yield "write", _Timed(lambda: repeat_lines(few, other), trial.events)
    yield "encode", _Timed(lambda: matcher.encode(validate(events).batch), trial.events)
    some = max(1, int(np.searchsorted(offsets, _MATCHES_AS_ARROW, "right")) - 1)
    few_numbers, few_offsets = numbers[: offsets[some]], offsets[: some + 1]
    ids = ids_of(trial.size)
    verify_arrow(few_numbers, few_offsets, arrow_ints(few_numbers, few_offsets))
    verify_arrow(few_numbers, few_offsets, arrow_strings(few_numbers, few_offsets, ids))
    yield "arrow_ints", _Timed(lambda: arrow_ints(few_numbers, few_offsets), some)
    yield "arrow_strings", _Timed(lambda: arrow_strings(few_numbers, few_offsets, ids), some)


def arrow_ints(numbers: Numbers, offsets: Offsets) -> pa.ListArray:
    """A fresh Arrow list<int32>. The numbers are copied, because the matcher reuses their buffer."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(numbers.copy()))


def arrow_strings(numbers: Numbers, offsets: Offsets, ids: pa.Array) -> pa.ListArray:
    """A fresh Arrow list<string> of ids."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), ids.take(pa.array(numbers)))


def ids_of(size: int) -> pa.Array:
    """The ids of a workload's subscriptions: s0, s1, …"""
    return pc.binary_join_element_wise("s", pc.cast(pa.array(np.arange(size)), pa.string()), "")


def _add_ratios(result: BenchResult, trial: Trial, timings: dict[Key, Timing]) -> None:
    name, size = trial.workload.name, trial.size
    baseline = timings.get(Key("match", name, size, BASELINE))
    if baseline is not None:
        for what in ("copy", "write"):
            result.add(Key(f"{what}_speedup", name, size), baseline.times(timings[Key(what, name, size)]))
    for matcher in trial.matchers:
        own = timings[Key("match", name, size, matcher)]
        if baseline is not None and matcher != BASELINE:
            result.add(Key("speedup", name, size, matcher), baseline.times(own))
        result.add(Key("to_copy", name, size, matcher), own.times(timings[Key("copy", name, size)]))


def _add_sizes(result: BenchResult, trial: Trial) -> None:
    """Add matches, candidates, bytes and the time to build."""
    name, size = trial.workload.name, trial.size
    for matcher, each in trial.matchers.items():
        labels, index = each.memory()["labels"], each.index_bytes()
        figures = {
            "matches": int(each.find()[0][-1]) / trial.events,
            "candidates": each.examined(trial.events),
            "index_bytes": index / size,
            "dictionary_bytes": labels / size,
            "bytes": (index + labels) / size,
            "build": trial.build_seconds[matcher] or None,
        }
        for figure, value in figures.items():
            if value is not None:
                result.add(Key(figure, name, size, matcher), value)


def _growing(trials: Sequence[Trial]) -> Iterator[tuple[Trial, Trial]]:
    """Pairs of a trial and the one with the next larger size."""
    return pairwise(sorted(trials, key=lambda trial: trial.size))


def _add_growth(result: BenchResult, smaller: Trial, larger: Trial, timings: dict[Key, Timing]) -> None:
    name = larger.workload.name
    for matcher in (each for each in larger.matchers if each in smaller.matchers):
        after, before = (timings[Key("match", name, trial.size, matcher)] for trial in (larger, smaller))
        result.add(Key("growth", name, larger.size, matcher, f"from {smaller.size}"), after.times(before))


def _note_unable(result: BenchResult, trial: Trial) -> None:
    for matcher, reason in trial.unable.items():
        result.not_measured.append(NotMeasured(Key("match", trial.workload.name, trial.size, matcher), reason))
