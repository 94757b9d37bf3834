"""Figures of other engines, measured elsewhere, and where such data of the benchmarks stand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harken.errors import SourceError
from harken.lab.bench.figures import read_json

BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
"""In a clone. Where Harken was installed without its sources, there is no such folder."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The time that a peer took for an event."""

    peer: str
    workload: str
    size: int | None
    """None where none was told."""
    us_per_event: float
    prototype: bool = False
    """An earlier attempt at this engine, which is no peer to be ahead of."""


def read_peers(path: str | Path = BENCHMARKS / "peers.json") -> list[Peer]:
    """The figures in a file. Raises SourceError."""
    try:
        return [Peer(**each) for each in read_json(path)["peers"]]
    except (KeyError, TypeError) as error:
        raise SourceError(f"{path} does not hold figures of peers: {error}") from error
