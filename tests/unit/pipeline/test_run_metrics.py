"""Metrics: JSON lines and Prometheus's text, what they say, and that a run does not end for want of them."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from harken.errors import SourceError
from harken.pipeline.config import Config, MetricsConfig
from harken.pipeline.counts import Counts
from harken.pipeline.progress import running_text, span, text_of
from harken.pipeline.reports import BatchReport, RefreshReport
from harken.pipeline.run_metrics import Meter, prometheus_text
from harken.spark.index_versions import IndexVersion

from .project import Project

TIME = datetime(2024, 5, 1, 12, tzinfo=UTC)
NEWEST = datetime(2024, 5, 1, 11, 59, 30, tzinfo=UTC)
VERSION = IndexVersion("/index", "version-00000003-aaaaaaaa", 3, "f", 1_000, 50_000)
FIRST = BatchReport(0, VERSION, TIME, Counts(10, 5, {"decode": 2, "match": 1}, 3, 1, NEWEST), 2.0)
SECOND = BatchReport(1, replace(VERSION, version=4), TIME, Counts(20, 0), 0.5, is_replay=True)
REJECTED = RefreshReport(VERSION, rejected="it is faulty")

_SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (-?[0-9.]+)')


@pytest.fixture
def config(tmp_path: Path) -> Config:
    metrics = MetricsConfig(json=str(tmp_path / "told" / "metrics.jsonl"), prometheus=str(tmp_path / "metrics.prom"))
    return replace(Project(tmp_path).config(), metrics=metrics)


def samples(text: str) -> dict[str, float]:
    """The values of a text, by name and labels. A line that is not in Prometheus's format fails."""
    found: dict[str, float] = {}
    kinds: dict[str, str] = {}
    helped = set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped.add(line.split()[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds
            kinds[name] = kind
        else:
            match = _SAMPLE.fullmatch(line)
            assert match is not None, line
            assert match[1] in helped
            assert (kinds[match[1]] == "counter") == match[1].endswith("_total")
            found[f"{match[1].removeprefix('harken_pipeline_')}{{{match[2]}}}"] = float(match[3])
    assert text.endswith("\n")
    return found


def lines(path: str | None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path or "").read_text().splitlines()]


def test_a_line_for_everything_that_is_told(config: Config) -> None:
    meter = Meter(config)
    for each in (FIRST, REJECTED, SECOND):
        meter.take(each)
    meter.end()
    first, change, second, end = lines(config.metrics.json)
    assert [each["kind"] for each in (first, change, second, end)] == ["batch", "change", "batch", "end"]
    assert {each["pipeline"] for each in (first, change, second, end)} == {"pipeline"}
    assert first["dead_letters"] == {"decode": 2, "match": 1}
    assert (first["events"], first["notifications"], first["duplicates"], first["late"]) == (10, 5, 3, 1)
    assert (first["lag_seconds"], second["lag_seconds"]) == (32.0, None)
    assert (first["index_version"], second["index_version"], second["replay"]) == (3, 4, True)
    assert change["rejected"] == "it is faulty"
    assert (end["events"], end["notifications"], end["batches"], end["error"]) == (30, 5, 2, None)


def test_odd_values_are_told_by_attribute(config: Config) -> None:
    counts = Counts(10, 5, {"decode": 2, "type": 3}, odd_values={"delta": 2, "a.b": 1})
    meter = Meter(config)
    for each in (FIRST, replace(FIRST, counts=counts), replace(FIRST, counts=counts)):
        meter.take(each)
    assert lines(config.metrics.json)[-1]["odd_values"] == {"delta": 2, "a.b": 1}
    found = samples(Path(config.metrics.prometheus or "").read_text())
    assert found['odd_values_total{pipeline="pipeline",attribute="delta"}'] == 4
    assert found['dead_letters_total{pipeline="pipeline",stage="type"}'] == 6
    told = text_of(replace(FIRST, counts=counts))
    assert "2 dead letters · 3 odd values (delta 2, a.b 1) · " in told, "what is odd is no dead letter of an event"
    assert Counts.from_dict(json.loads(json.dumps(counts.to_dict()))) == counts


def test_a_run_that_fails_says_so(config: Config) -> None:
    meter = Meter(config)
    meter.end("no more")
    assert lines(config.metrics.json)[-1]["error"] == "no more"
    assert samples(Path(config.metrics.prometheus or "").read_text())['succeeded{pipeline="pipeline"}'] == 0


def test_the_next_run_adds_to_the_lines(config: Config) -> None:
    for _ in range(2):
        Meter(config).end()
    assert len(lines(config.metrics.json)) == 2


def test_prometheus(config: Config) -> None:
    meter = Meter(config)
    for each in (FIRST, REJECTED, SECOND):
        meter.take(each)
    found = samples(Path(config.metrics.prometheus or "").read_text())
    own = '{pipeline="pipeline"}'
    assert found["events_total" + own] == 30
    assert found["notifications_total" + own] == 5
    assert found["batches_total" + own] == 2
    assert found["rejected_changes_total" + own] == 1
    assert found["index_version" + own] == 4
    assert found['dead_letters_total{pipeline="pipeline",stage="decode"}'] == 2
    assert found['dead_letters_total{pipeline="pipeline",stage="late"}'] == 0
    assert "succeeded" + own not in found, "it has not ended"
    meter.end()
    assert samples(Path(config.metrics.prometheus or "").read_text())["succeeded" + own] == 1


def test_labels_are_escaped(config: Config) -> None:
    text = prometheus_text(Meter(replace(config, name='a "b" \\ c\nd')))
    assert 'harken_pipeline_events_total{pipeline="a \\"b\\" \\\\ c\\nd"} 0' in text
    assert samples(text)


def test_a_place_that_cannot_be_written_is_told_at_once(config: Config, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for metrics in (
        MetricsConfig(json=str(tmp_path / "file" / "m")),
        MetricsConfig(prometheus=str(tmp_path / "file" / "m")),
    ):
        with pytest.raises(SourceError, match="cannot be written"):
            Meter(replace(config, metrics=metrics))


def test_a_disk_that_is_full_does_not_stop_a_run(config: Config, caplog: pytest.LogCaptureFixture) -> None:
    meter = Meter(replace(config, metrics=MetricsConfig(json="/dev/full")))
    with caplog.at_level(logging.WARNING):
        meter.take(FIRST)
        meter.end()
    assert "/dev/full cannot be written: No space left on device" in caplog.text
    assert meter.counts.events == 10


def test_counts_add_up_and_survive_being_written() -> None:
    whole = FIRST.counts + SECOND.counts + Counts(dead_letters={"late": 4}, max_event_time=TIME)
    assert whole == Counts(30, 5, {"decode": 2, "late": 4, "match": 1}, 3, 1, TIME)
    assert whole.dead_letter_count == 7
    assert Counts.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole
    assert Counts.from_dict(Counts().to_dict()) == Counts()


def test_lines_for_people(config: Config) -> None:
    assert text_of(FIRST) == (
        "batch 0: 10 events · 5 notifications · 3 duplicates · 1 late event · 3 dead letters · 2.0 s · 5 events/s"
        " · lag 32.0 s · index version 3"
    )
    assert text_of(SECOND) == "batch 1 (again): 20 events · 0 notifications · 0.5 s · 40 events/s · index version 4"
    assert text_of(REJECTED).endswith("version 3 stays: it is faulty")
    meter = Meter(config)
    meter.take(FIRST)
    assert re.fullmatch(
        r"10 events · 5 notifications · 3 duplicates · 1 late event · 3 dead letters"
        r" · [\d,]+ events/s · batch 0 · lag 32\.0 s",
        running_text(meter),
    )


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (119, "119.0 s"), (7_200, "2.0 h"), (864_000, "10.0 d")]
)
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text
