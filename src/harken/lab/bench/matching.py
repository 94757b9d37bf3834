"""The time that matching takes: every matcher at every size of a workload, and what bounds it, in the same rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harken.kernels.copying import repeat_lines
from harken.kernels.vector import aligned
from harken.lab.bench.answers import refuse_unlike_arrow
from harken.lab.bench.contestants import BASELINE, Ids, Offsets, dictionary_bytes, encode_table
from harken.lab.bench.figures import Key, NotMeasured, Result
from harken.lab.bench.rounds import TURN, Timing, interleaved
from harken.lab.bench.trials import Ready, Trial

_SAME_IDS = 1 << 12
"""What is written over and over to see what writing takes: as much as stays in the first level cache."""
_MATCHES_AS_ARROW = 1 << 22
"""The answers of as many events as match so often become Arrow: of more, most of the time is that of fresh memory."""


class _Timed(NamedTuple):
    """What is timed, and of how many events."""

    run: Callable[[], object]
    events: int


def measure_matching(result: Result, trials: Sequence[Trial], rounds: int) -> None:
    """Time all sizes of a workload together, so that ratios and growth come from the same rounds."""
    for trial in trials:
        trial.verify()
        _note_unable(result, trial)
    timed: dict[Key, _Timed] = {}
    for trial in trials:
        timed |= _timed(trial)
    found = interleaved({key: each.run for key, each in timed.items()}, rounds, TURN)
    for key, timing in found.items():
        result.add(key, timing.microseconds(timed[key].events))
        if key.name == "match":
            result.add(key._replace(name="match_first"), Timing(timing.first).microseconds(timed[key].events))
    for trial in trials:
        _add_ratios(result, trial, found)
        _add_sizes(result, trial)
    for smaller, larger in _growing(trials):
        _add_growth(result, smaller, larger, found)


def _timed(trial: Trial) -> dict[Key, _Timed]:
    """All that is timed of a trial."""
    name, size = trial.workload.name, trial.size
    found = {
        Key("match", name, size, matcher): _Timed(each.find, trial.events) for matcher, each in trial.matchers.items()
    }
    if trial.matchers:
        first = next(iter(trial.matchers.values()))
        found |= {Key(what, name, size): timed for what, timed in _around(trial, first)}
    return found


def _around(trial: Trial, first: Ready) -> Iterator[tuple[str, _Timed]]:
    """What comes before and after matching, on the answers of one matcher."""
    ids, offsets = first.find().copy(), first.offsets.copy()
    target, other, few = np.empty_like(ids), aligned(len(ids), np.int32), aligned(_SAME_IDS, np.int32)
    few[:] = np.arange(_SAME_IDS)  # lines of zeros are written twice as quickly
    yield "copy", _Timed(lambda: np.copyto(target, ids), trial.events)
    yield "write", _Timed(lambda: repeat_lines(few, other), trial.events)
    yield "encode", _Timed(lambda: encode_table(trial.workload.events, first.conjunctions), trial.events)
    some = max(1, int(np.searchsorted(offsets, _MATCHES_AS_ARROW, "right")) - 1)
    few_ids, few_offsets = ids[: offsets[some]], offsets[: some + 1]
    names = external_ids(trial.size)
    refuse_unlike_arrow(few_ids, few_offsets, arrow_ints(few_ids, few_offsets))
    refuse_unlike_arrow(few_ids, few_offsets, arrow_strings(few_ids, few_offsets, names))
    yield "arrow_ints", _Timed(lambda: arrow_ints(few_ids, few_offsets), some)
    yield "arrow_strings", _Timed(lambda: arrow_strings(few_ids, few_offsets, names), some)


def arrow_ints(ids: Ids, offsets: Offsets) -> pa.ListArray:
    """A fresh Arrow list<int32>: the ids are copied, because their buffer is used again."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(ids.copy()))


def arrow_strings(ids: Ids, offsets: Offsets, names: pa.Array) -> pa.ListArray:
    """A fresh Arrow list<string> of external ids."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), names.take(pa.array(ids)))


def external_ids(size: int) -> pa.Array:
    """The ids of a workload's subscriptions: s0, s1, …"""
    return pc.binary_join_element_wise("s", pc.cast(pa.array(np.arange(size)), pa.string()), "")


def _add_ratios(result: Result, trial: Trial, found: dict[Key, Timing]) -> None:
    name, size = trial.workload.name, trial.size
    baseline = found.get(Key("match", name, size, BASELINE))
    if baseline is not None:
        for what in ("copy", "write"):
            result.add(Key(f"{what}_speedup", name, size), baseline.times(found[Key(what, name, size)]))
    for matcher in trial.matchers:
        own = found[Key("match", name, size, matcher)]
        if baseline is not None and matcher != BASELINE:
            result.add(Key("speedup", name, size, matcher), baseline.times(own))
        result.add(Key("to_copy", name, size, matcher), own.times(found[Key("copy", name, size)]))


def _add_sizes(result: Result, trial: Trial) -> None:
    """Matches, candidates, bytes and the time to build."""
    name, size = trial.workload.name, trial.size
    for matcher, each in trial.matchers.items():
        result.add(Key("matches", name, size, matcher), len(each.find()) / trial.events)
        candidates = each.contestant.candidates(each.encoded)
        if candidates is None:
            reason = "this matcher does not count what it looks at"
            result.not_measured.append(NotMeasured(Key("candidates", name, size, matcher), reason))
        else:
            result.add(Key("candidates", name, size, matcher), candidates)
        index, dictionaries = each.contestant.nbytes / size, dictionary_bytes(each.conjunctions) / size
        result.add(Key("index_bytes", name, size, matcher), index)
        result.add(Key("dictionary_bytes", name, size, matcher), dictionaries)
        result.add(Key("bytes", name, size, matcher), index + dictionaries)
        if each.build_seconds:
            result.add(Key("build", name, size, matcher), each.build_seconds)


def _growing(trials: Sequence[Trial]) -> Iterator[tuple[Trial, Trial]]:
    """Pairs of a size and the next larger one."""
    ordered = sorted(trials, key=lambda trial: trial.size)
    return pairwise(ordered)


def _add_growth(result: Result, smaller: Trial, larger: Trial, found: dict[Key, Timing]) -> None:
    name = larger.workload.name
    for matcher in (each for each in larger.matchers if each in smaller.matchers):
        after, before = (found[Key("match", name, trial.size, matcher)] for trial in (larger, smaller))
        # The sizes have the same number of events.
        result.add(Key("growth", name, larger.size, matcher, f"from {smaller.size}"), after.times(before))


def _note_unable(result: Result, trial: Trial) -> None:
    for matcher, reason in trial.unable.items():
        result.not_measured.append(NotMeasured(Key("match", trial.workload.name, trial.size, matcher), reason))
