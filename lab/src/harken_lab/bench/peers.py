"""Figures of other engines, measured elsewhere, and the folder that holds such data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harken_lab.harness.result_files import read_as

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
"""The folder of benchmark data in a clone. An installation without the sources has none."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The time a peer takes for an event."""

    peer: str
    workload: str
    size: int | None
    """None where the source does not say."""
    us_per_event: float
    prototype: bool = False
    """Whether it is an earlier attempt at this engine, which is no target."""


def read_peers(path: str | Path = BENCHMARKS / "peers.json") -> list[Peer]:
    """The figures in a file. Raises SourceError."""
    return read_as(path, lambda data: [Peer(**each) for each in data["peers"]], "does not hold figures of peers")
