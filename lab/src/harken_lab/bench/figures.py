"""The result of a benchmark: figures with their spread, and those that could not be measured, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from harken.errors import SourceError
from harken_lab.harness.result_files import Unavailable, read_as, to_json

FORMAT = 1
"""The version of the JSON that docs/benchmarks.md describes."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The unit of a figure, what it measures, and in which direction it is better."""

    unit: str
    text: str
    better: str = "less"
    """`less`, `more`, or `same` if a difference means that something else was measured."""


MEANINGS: dict[str, Meaning] = {
    "match": Meaning("µs/event", "codes in, ids of every match in a reused buffer"),
    "match_first": Meaning("µs/event", "the same for the first run of a turn, with other matchers' data in the caches"),
    "speedup": Meaning("times", "how many times quicker than counting_lists, round by round", "more"),
    "copy": Meaning("µs/event", "copying the ids of the result into another buffer"),
    "copy_speedup": Meaning("times", "how many times quicker than counting_lists copying alone is", "same"),
    "write": Meaning("µs/event", "writing as many ids past the cache, always the same ones"),
    "write_speedup": Meaning("times", "how many times quicker than counting_lists writing alone is: the limit", "same"),
    "to_copy": Meaning("times", "match as a multiple of copy, round by round"),
    "growth": Meaning("times", "match as a multiple of match at the size that `part` names, round by round"),
    "matches": Meaning("per event", "subscriptions that match", "same"),
    "candidates": Meaning("per event", "slots that the index examined"),
    "encode": Meaning("µs/event", "from an Arrow table to codes"),
    "arrow_ints": Meaning("µs/event", "from the buffer to a fresh Arrow list<int32>"),
    "arrow_strings": Meaning("µs/event", "from the buffer to a fresh Arrow list<string> of external ids"),
    "index_bytes": Meaning("B/sub", "the arrays of the index"),
    "dictionary_bytes": Meaning("B/sub", "the dictionaries of constants"),
    "bytes": Meaning("B/sub", "index and dictionaries together"),
    "peak_rss": Meaning("MiB", "peak of resident memory of a process that builds and matches"),
    "start_rss": Meaning("MiB", "the part of `peak_rss` before building: Python, libraries, the arrays to build from"),
    "build": Meaning("s", "from normalised arrays (ColumnPredicates) to an index that is ready"),
    "load": Meaning("ms", "opening a saved index"),
    "insert": Meaning("µs", "adding a normalised subscription, with the work that it adds to the next match"),
    "insert_cpu": Meaning("µs", "the same in processor time, so that background work counts"),
    "delete": Meaning("µs", "removing a subscription, with the work that it adds to the next match"),
    "delete_cpu": Meaning("µs", "the same in processor time"),
    "under_updates": Meaning("times", "matching while 1,000 updates a second go on, as a multiple of matching at rest"),
    "latency_p50": Meaning("µs", "one event at a time: median"),
    "latency_p99": Meaning("µs", "one event at a time: 99th percentile"),
    "first_match": Meaning("s", "first match in a fresh process, kernels cached: after import, building left out"),
    "to_alone": Meaning("times", "events of one kind in the mixed index, as a multiple of its quarter alone"),
    "alone": Meaning("µs/event", "events of one kind against their quarter alone"),
    "in_mixture": Meaning("µs/event", "events of one kind against the mixed index"),
    "to_codes": Meaning("µs/event", "from the form that `part` names to codes, events of 10 attributes in batches"),
    "batch": Meaning("µs/event", "match_batch of an Arrow table, while the previous answer is still in use"),
    "thread_gain": Meaning("times", "how many times quicker match_batch is with a second thread", "more"),
    "alu_gain": Meaning("times", "how many times quicker a loop in registers is with a second thread", "more"),
    "thread_share": Meaning("of alu_gain", "thread_gain as a share of alu_gain", "more"),
    "thread_share_quickest": Meaning("of alu_gain", "the same by the quickest turn of each", "more"),
}


class Key(NamedTuple):
    """Identifies a figure. Fields that do not apply are None."""

    name: str
    workload: str | None = None
    size: int | None = None
    matcher: str | None = None
    part: str | None = None

    def __str__(self) -> str:
        size = None if self.size is None else f"{self.size:,}"
        return " ".join(each for each in (self.name, self.workload, size, self.matcher, self.part) if each)


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure, with one value per round."""

    key: Key
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.key.name not in MEANINGS:
            raise ValueError(f"there is no figure `{self.key.name}`")
        if not self.values:
            raise ValueError(f"{self.key} was never measured")

    @property
    def meaning(self) -> Meaning:
        return MEANINGS[self.key.name]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def least(self) -> float:
        return min(self.values)

    @property
    def most(self) -> float:
        return max(self.values)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The lower and the upper quartile."""
        if len(self.values) == 1:
            return self.values[0], self.values[0]
        lower, _, upper = quantiles(self.values, n=4, method="inclusive")
        return lower, upper

    def to_dict(self) -> dict[str, Any]:
        lower, upper = self.quartiles
        spread = {"median": self.median, "least": self.least, "lower": lower, "upper": upper, "most": self.most}
        return {
            **_named(self.key),
            "unit": self.meaning.unit,
            **{name: _rounded(value) for name, value in spread.items()},
            "values": list(self.values),
        }


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A figure that could not be measured, and why."""

    key: Key
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {**_named(self.key), "reason": self.reason}


@dataclass(slots=True)
class BenchResult:
    """The figures of a run, with its settings and environment."""

    settings: dict[str, Any]
    environment: dict[str, Any]
    figures: list[Figure] = field(default_factory=list)
    not_measured: list[NotMeasured] = field(default_factory=list)

    def add(self, key: Key, values: Sequence[float] | float) -> None:
        """Add a figure, measured once or several times."""
        rounds = tuple(values) if isinstance(values, Sequence) else (values,)
        self.figures.append(Figure(key, tuple(map(_rounded, rounds))))

    @contextmanager
    def unless_unavailable(self, *keys: Key) -> Iterator[None]:
        """Catch Unavailable and note the figures of these keys as not measured; every other error is fatal."""
        try:
            yield
        except Unavailable as reason:
            self.not_measured.extend(NotMeasured(key, str(reason)) for key in keys)

    def find(self, key: Key) -> Figure | None:
        return next((figure for figure in self.figures if figure.key == key), None)

    def missing_reason(self, key: Key) -> str:
        """Why the result has no figure of this key."""
        return next((each.reason for each in self.not_measured if each.key == key), "this run did not include it")

    def named(self, name: str) -> list[Figure]:
        return [figure for figure in self.figures if figure.key.name == name]

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "what": "matching events against subscriptions; docs/benchmarks.md says what is timed and how",
            "settings": self.settings,
            "environment": self.environment,
            "figures": [figure.to_dict() for figure in self.figures],
            "not_measured": [each.to_dict() for each in self.not_measured],
        }

    def to_json(self) -> str:
        return to_json(self.to_dict())


def read_result(path: str | Path) -> BenchResult:
    """Read a saved result. Raises SourceError if the file is none."""

    def result(data: Any) -> BenchResult:
        if data["format"] != FORMAT:
            raise SourceError(f"{path} has format {data['format']!r}, and this version reads {FORMAT}")
        return BenchResult(
            data["settings"],
            data["environment"],
            [Figure(_key(each), tuple(each["values"])) for each in data["figures"]],
            [NotMeasured(_key(each), each["reason"]) for each in data["not_measured"]],
        )

    return read_as(path, result, "is not the result of a benchmark", "`harken bench --output FILE` writes one")


def _named(key: Key) -> dict[str, Any]:
    return {name: value for name, value in key._asdict().items() if value is not None}


def _key(data: dict[str, Any]) -> Key:
    return Key(data["name"], *(data.get(name) for name in Key._fields[1:]))


def _rounded(value: float) -> float:
    """Round to six digits: more than any clock resolves."""
    return float(f"{value:.6g}")
