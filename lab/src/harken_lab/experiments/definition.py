"""Experiments, with parameters by scale, a way to measure, claims to judge and plots to draw; and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from harken.errors import CapabilityError
from harken_lab.experiments.figure_rows import Row, WorkloadRows
from harken_lab.experiments.findings import Finding
from harken_lab.experiments.plotting import Dots, Plot
from harken_lab.harness.environment import environment
from harken_lab.harness.result_files import read_as, to_json

if TYPE_CHECKING:
    from harken_lab.experiments.running import Run

SCALES = ("smoke", "laptop", "full")

TOPSS = "Ashayer, Leung, Jacobsen: Predicate Matching and Subscription Matching in Publish/Subscribe Systems (ToPSS)"
LE_SUBSCRIBE = "Fabret, Llirbat, Pereira, Shasha: Efficient Matching for Content-based Publish/Subscribe Systems"
GRYPHON = "Aguilera, Strom, Sturman, Astley, Chandra: Matching Events in a Content-based Subscription System"
RELATIONAL_XML = (
    "Tian, Reinwald, Pirahesh, Mayr, Myllymaki: Implementing a Scalable XML Publish/Subscribe System Using Relational "
    "Database Systems"
)
OVERLAPPING = (
    "Liu, Parthasarathy, Ranganathan, Yang: Scalable Event Matching for Overlapping Subscriptions in Pub/Sub Systems"
)

Tell = Callable[[str], None]
"""A callback for progress messages."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or a figure of a paper, measured again."""

    name: str
    title: str
    paper: str
    scales: Mapping[str, Mapping[str, Any]]
    """The parameters of each scale."""
    measure: Callable[[Run], Iterable[Row]]
    judge: Callable[[WorkloadRows], Iterable[Finding]]
    plots: tuple[Plot | Dots, ...] = ()
    seeds: int = 1
    """The seeds of all scales but smoke. More than 1 where verdicts depend on times of what was drawn."""

    def run(self, scale: str, seed: int, tell: Tell, **parameters: Any) -> ExperimentResult:
        """Measure, and judge the claims by the figures. `parameters` override those of the scale."""
        from harken_lab.experiments.running import PACES, Run
        from harken_lab.experiments.seeds import merged

        if scale not in self.scales:
            raise CapabilityError(f"there is no scale `{scale}`", hint=f"there are: {', '.join(self.scales)}")
        chosen, where, started = dict(self.scales[scale]) | parameters, environment("numba"), perf_counter()
        seeds = 1 if scale == "smoke" else self.seeds
        runs = [Run(chosen, PACES[scale], seed + place, partial(self._tell, tell)) for place in range(seeds)]
        rows = merged([list(self.measure(run)) for run in runs])
        parts = (self.name, self.title, self.paper, scale, seed, where, chosen, rows)
        return ExperimentResult(*parts, seeds=seeds, seconds=round(perf_counter() - started, 1)).judged(self)

    def _tell(self, tell: Tell, text: str) -> None:
        tell(f"{self.name}: {text}")


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """The rows that an experiment measured, the machine that it ran on, and the findings that follow."""

    experiment: str
    title: str
    paper: str
    scale: str
    seed: int
    environment: dict[str, Any]
    parameters: dict[str, Any]
    rows: list[Row]
    findings: list[Finding] = field(default_factory=list)
    seeds: int = 1
    """How many seeds were measured, from `seed` on."""
    seconds: float | None = None
    """How long it took."""

    @property
    def drawn(self) -> str:
        """The seeds in words."""
        return f"seed {self.seed}" if self.seeds == 1 else f"seeds {self.seed} to {self.seed + self.seeds - 1}"

    def judged(self, experiment: Experiment) -> ExperimentResult:
        """The same measurements with the findings that follow from them."""
        return replace(self, findings=list(experiment.judge(WorkloadRows(self.rows))))

    def to_json(self) -> str:
        return to_json(asdict(self))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ExperimentResult:
        return cls(**{**data, "findings": [Finding(**each) for each in data["findings"]]})


def read_result(path: str | Path) -> ExperimentResult:
    """Read a result from its file. Raises SourceError."""
    return read_as(path, ExperimentResult.from_dict, "is not the result of an experiment")
