"""`harken run`: faults of the configuration all listed, the plan, and the run as text and as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harken import Engine
from harken.cli.run import _show_report
from harken.cli.screen import Screen
from harken.errors import ParseError

from .conftest import Program, Run, Write, lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """
[source]
format = "json"
path = "events.jsonl"
columns = "order STRING, category STRING, price DOUBLE"
event_id = "order"
[subscriptions]
path = "subscriptions.jsonl"
[[sink]]
format = "json"
path = "out"
"""
FAULTY = """
mode = "bach"
[source]
format = "json"
path = "nowhere.jsonl"
event_idd = "order"
[subscriptions]
path = "subscriptions.jsonl"
[[sink]]
format = "parquet"
"""


@pytest.fixture
def pipeline(write: Write, events: Path, subscriptions: Path) -> Path:
    return write("pipeline.toml", PIPELINE)


def test_every_fault_of_the_configuration_is_listed_before_spark_starts(
    program: Program, write: Write, subscriptions: Path
) -> None:
    path = write("pipeline.toml", FAULTY)
    shown = program("run", path, env={"JAVA_HOME": "/nowhere"})
    assert (shown.returncode, shown.stdout) == (3, "")
    for text in ("`mode` is one of batch, stream", "line 2", "event_idd", "line 6", "`path`", "line 9"):
        assert text in shown.stderr
    assert shown.stderr.count("error: ") == 3
    found = lines(program("run", path, "--json").stderr)
    assert {each["kind"] for each in found} == {"error"}
    assert [each["line"] for each in found] == sorted(each["line"] for each in found)


def test_a_rejected_change_is_told_on_lines_of_its_own(pipeline: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The excerpt with its caret below the text, and what comes from outside without its control codes."""
    from harken.pipeline.config import load_config
    from harken.pipeline.matched_subscriptions import listed
    from harken.pipeline.reports import RefreshReport
    from harken.pipeline.run_metrics import Meter
    from harken.spark.building import SubscriptionFault
    from harken.spark.index_versions import IndexVersion

    with pytest.raises(ParseError) as caught:
        Engine().subscribe("b", "price < 5 ADN sold")
    reason = str(listed([SubscriptionFault("b\x1b", str(caught.value))]))
    told = RefreshReport(IndexVersion("root", "folder", 1, "fingerprint", 1, 1), rejected=reason)
    _show_report(Screen(json=False), lambda text: None, Meter(load_config(pipeline)), told)
    assert capsys.readouterr().err == (
        "a change of the subscriptions is rejected, version 1 stays: a subscription is faulty:\n"
        "  'b\\x1b': unexpected `ADN` (line 1, column 11)\n"
        "      price < 5 ADN sold\n"
        "                ^\n"
        "    hint: did you mean `AND`?\n"
        'hint: `on_fault = "skip"` leaves them out\n'
    )


def test_a_configuration_that_is_not_there(run: Run, tmp_path: Path) -> None:
    result = run("run", tmp_path / "none.toml")
    assert result.exit_code == 3
    assert "none.toml" in result.stderr


def test_help_names_what_there_is(run: Run) -> None:
    result = run("run", "--help")
    assert result.exit_code == 0
    for text in ("--dry-run", "--json", "spark-submit", "dead letters"):
        assert text in result.stdout


def test_a_run(spark: SparkSession, run: Run, pipeline: Path) -> None:
    result = run("run", pipeline)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("pipeline: 3 events · 3 notifications · 1 batch · ")
    assert "batch 0: 3 events · 3 notifications · " in result.stderr
    rows = [
        json.loads(line)
        for file in (pipeline.parent / "out").glob("*/*.json")
        for line in file.read_text().splitlines()
    ]
    assert {(row["event_id"], row["subscription_id"]) for row in rows} == {
        ("A1", "alice"),
        ("A2", "bob"),
        ("A3", "bob"),
    }


def test_a_run_as_data(spark: SparkSession, run: Run, pipeline: Path) -> None:
    result = run("run", pipeline, "--json")
    batch, end = lines(result.stdout)
    assert (batch["kind"], batch["batch"], batch["events"]) == ("batch", 0, 3)
    assert (end["kind"], end["notifications"], end["dead_letters"]) == ("end", 3, {})
    lines(result.stderr)


def test_a_dry_run(spark: SparkSession, run: Run, pipeline: Path) -> None:
    result = run("run", pipeline, "--dry-run")
    assert result.exit_code == 0, result.stderr
    for text in ("chosen strategy", "replicate", "2 subscriptions", "expected cost", "partitions"):
        assert text in result.stdout
    assert "events.jsonl" in "".join(result.stdout.split())  # a long path is folded
    (plan,) = lines(run("run", pipeline, "--dry-run", "--json").stdout)
    assert (plan["subscriptions"], plan["strategy"], plan["partitions"]) == (2, "replicate", 1)
    assert not (pipeline.parent / "out").exists()


def test_subscriptions_that_fit_no_event_are_shown(spark: SparkSession, run: Run, pipeline: Path, write: Write) -> None:
    write("subscriptions.jsonl", [{"id": "typo", "where": "prise > 1"}])
    told = "`prise` is no column: 1 subscription asks for it ('typo'); did you mean `price`?"
    shown = run("run", pipeline).stderr.splitlines()
    assert "version 1 of the subscriptions: 1 of 1 subscription can never match these events:" in shown
    assert f"  {told}" in shown
    assert told in " ".join(run("run", pipeline, "--dry-run").stdout.split())


def test_a_run_that_fails(spark: SparkSession, run: Run, pipeline: Path, write: Write) -> None:
    write("subscriptions.jsonl", [{"id": "x", "where": "price >"}])
    result = run("run", pipeline)
    assert result.exit_code == 3
    assert "error: a subscription is faulty" in result.stderr
    (error,) = lines(run("run", pipeline, "--json").stderr)
    assert error["error"] == "SubscriptionError"
