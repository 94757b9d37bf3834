"""Writes the metrics of a run: JSON lines that are appended to a file, and a text file for Prometheus that is replaced.

There is a JSON line for every batch (`kind` is "batch"), one for every change of the subscriptions ("change"), and one
at the end ("end").
"""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.errors import SourceError
from harken.live.notifications import STAGES
from harken.pipeline.counts import Counts
from harken.pipeline.reports import BatchReport, Report
from harken.versions.files import LocalFiles

if TYPE_CHECKING:
    from harken.pipeline.config import Config


_log = logging.getLogger(__name__)


class Meter:
    """Adds up the reports of a run, and keeps the metrics files up to date.

    Raises SourceError if a file cannot be written at the start. Later failures are logged: metrics never stop a run.
    """

    def __init__(self, config: Config) -> None:
        self.name = config.name
        self.mode = config.mode
        self.counts = Counts()
        self.batches = 0
        self.rejected_changes = 0
        self.last: BatchReport | None = None
        self._started = time.monotonic()
        self._json = None if config.metrics.json is None else Path(config.metrics.json)
        self._prometheus = None if config.metrics.prometheus is None else Path(config.metrics.prometheus)
        self._append("")
        self._replace()

    @property
    def seconds(self) -> float:
        """The time since the run began."""
        return time.monotonic() - self._started

    def take(self, report: Report) -> None:
        """Add a report."""
        if isinstance(report, BatchReport):
            self.batches += 1
            self.counts += report.counts
            self.last = report
        else:
            self.rejected_changes += report.rejected is not None
        self._line(line_of(report))
        self._update()

    def end(self, error: str | None = None) -> None:
        """Write the metrics of the finished run. `error` is the reason if it failed."""
        run = {"mode": self.mode, "batches": self.batches, "seconds": round(self.seconds, 3)}
        self._line({"kind": "end", **run, **self.counts.to_dict(), "error": error})
        self._update(succeeded=error is None)

    def _line(self, data: dict[str, Any]) -> None:
        line = {"kind": data["kind"], "pipeline": self.name, "time": datetime.now(UTC).isoformat(), **data}
        try:
            self._append(json.dumps(line, ensure_ascii=False) + "\n")
        except SourceError as error:
            _log.warning("%s", error)

    def _update(self, succeeded: bool | None = None) -> None:
        try:
            self._replace(succeeded)
        except SourceError as error:
            _log.warning("%s", error)

    def _append(self, text: str) -> None:
        if self._json is None:
            return
        try:
            self._json.parent.mkdir(parents=True, exist_ok=True)
            with self._json.open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
        except OSError as error:
            raise SourceError(f"{self._json} cannot be written: {error.strerror or error}") from error

    def _replace(self, succeeded: bool | None = None) -> None:
        if self._prometheus is not None:
            text = prometheus_text(self, succeeded).encode("utf-8", "backslashreplace")
            LocalFiles(self._prometheus.parent).write(self._prometheus.name, text)


def line_of(report: Report) -> dict[str, Any]:
    """A report as the data of a JSON line."""
    if isinstance(report, BatchReport):
        return _batch_line(report)
    line = {
        "kind": "change",
        "index_version": report.version.version,
        "added": report.added,
        "replaced": report.replaced,
        "removed": report.removed,
        "left_out": len(report.faults),
        "rejected": report.rejected,
    }
    return line | ({"mismatches": report.mismatches.to_dict()} if report.mismatches else {})


def _batch_line(report: BatchReport) -> dict[str, Any]:
    return {
        "kind": "batch",
        "batch": report.batch,
        "index_version": report.version.version,
        "subscriptions": report.version.subscriptions,
        "match_time": report.time.isoformat(),
        "seconds": round(report.seconds, 3),
        "replay": report.is_replay,
        **report.counts.to_dict(),
        "lag_seconds": lag_of(report),
    }


def lag_of(report: BatchReport) -> float | None:
    """The age of the newest event when the batch was done, in seconds; None if events have no time."""
    newest = report.counts.max_event_time
    return None if newest is None else round(report.time.timestamp() + report.seconds - newest.timestamp(), 3)


def prometheus_text(meter: Meter, succeeded: bool | None = None) -> str:
    """The metrics in Prometheus's text format. `succeeded` is None until the run has ended."""
    counts, last = meter.counts, meter.last
    text = _Text(meter.name)
    text.add("events_total", "counter", "Events that were read.", counts.events)
    text.add("notifications_total", "counter", "Matching pairs of an event and a subscription.", counts.notifications)
    text.add("duplicates_total", "counter", "Events dropped because an earlier event had their id.", counts.duplicates)
    text.add("late_total", "counter", "Events that came late.", counts.late)
    stages = [(counts.dead_letters.get(stage, 0), {"stage": stage}) for stage in STAGES]
    text.add("dead_letters_total", "counter", "Dead letters, by stage.", *stages)
    odd = [(count, {"attribute": attribute}) for attribute, count in counts.odd_values.items()]
    text.add("odd_values_total", "counter", "Values of another kind than subscriptions compare with.", *odd)
    text.add("batches_total", "counter", "Batches that are done.", meter.batches)
    text.add(
        "rejected_changes_total", "counter", "Changes of the subscriptions that were rejected.", meter.rejected_changes
    )
    text.add("run_seconds", "gauge", "Time since the run began.", round(meter.seconds, 3))
    if last is not None:
        text.add("index_version", "gauge", "Version of the index that the last batch used.", last.version.version)
        text.add("subscriptions", "gauge", "Subscriptions in that version.", last.version.subscriptions)
        text.add("last_batch", "gauge", "Number of the last batch.", last.batch)
        text.add("last_batch_seconds", "gauge", "Time that the last batch took.", round(last.seconds, 3))
        text.add("last_batch_events", "gauge", "Events of the last batch.", last.counts.events)
        lag = lag_of(last)
        if lag is not None:
            text.add("lag_seconds", "gauge", "Age of the newest event when the last batch was done.", lag)
    if succeeded is not None:
        text.add("succeeded", "gauge", "1 if the run ended without an error, else 0.", int(succeeded))
    return str(text)


class _Text:
    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._lines: list[str] = []

    def add(self, name: str, kind: str, help: str, *values: float | tuple[float, dict[str, str]]) -> None:
        """Add a metric with its values, each alone or with labels."""
        metric = f"harken_pipeline_{name}"
        self._lines += [f"# HELP {metric} {help}", f"# TYPE {metric} {kind}"]
        for each in values:
            value, labels = each if isinstance(each, tuple) else (each, {})
            all_labels = {"pipeline": self._pipeline, **labels}
            label_text = ",".join(f'{label}="{_escaped(text)}"' for label, text in all_labels.items())
            self._lines.append(f"{metric}{{{label_text}}} {value}")

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
