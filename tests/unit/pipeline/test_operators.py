"""Pipelines whose subscriptions call operators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.pipeline.batch_planning import plan
from harken.pipeline.config import check_config
from harken.pipeline.run import run

from .project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"id": "toys", "where": "matches(category, '^To') AND price < 5", "owner": "Alice"},
    {"id": "any", "where": "matches(seller, '[29]$')"},
]
OPERATORS = 'operators = ["harken.operators.box:matches"]'


def test_they_are_named_in_its_file(spark: SparkSession, tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("subscriptions.jsonl", SUBSCRIPTIONS)
    config = project.config(match=OPERATORS)
    assert ("operators", "harken.operators.box:matches in the order adaptive") in config.describe()
    assert plan(config).index.subscriptions == 2
    run(config)
    found = {(row["event_id"], row["subscription_id"]) for row in project.rows(spark)}
    assert found == {("A1", "toys"), ("A2", "any"), ("A3", "any")}


def test_what_is_no_operator_is_a_fault_of_the_file(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for written, message in [
        ('operators = "ops:f"', "`operators` is a list of operators, not a text"),
        ("operators = [3]", "`operators` is a list of operators: this is 3"),
        ('order = "quick"', "`order` is one of adaptive"),
    ]:
        _, faults = check_config(project.text(match=written), "pipeline.toml")
        assert any(message in str(fault) for fault in faults), [str(fault) for fault in faults]
