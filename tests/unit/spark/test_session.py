"""The settings of a local session that Harken's semantics rest on, and that it leaves no litter."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harken.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_names_are_case_sensitive_zones_are_utc_and_ansi_is_on(spark: SparkSession) -> None:
    row = spark.sql("SELECT a, A, current_timezone() AS zone FROM VALUES (1, 2) AS t(a, A)").first()
    assert row is not None
    assert row.asDict() == {"a": 1, "A": 2, "zone": "UTC"}
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_a_failing_query_raises_and_prints_nothing_of_its_own(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    from pyspark.errors import ArithmeticException

    with pytest.raises(ArithmeticException):
        spark.sql("SELECT 1 / 0").collect()
    assert capfd.readouterr() == ("", "")


def test_workers_run_this_python(spark: SparkSession) -> None:
    import pyarrow as pa

    def report(batches: object) -> object:
        import sys

        yield pa.RecordBatch.from_pydict({"prefix": [sys.prefix]})

    row = spark.range(1).mapInArrow(report, "prefix string").first()  # type: ignore[arg-type]
    assert row is not None
    assert row["prefix"] == sys.prefix


def test_tables_and_scratch_files_stay_out_of_the_working_folder(spark: SparkSession) -> None:
    before = set(os.listdir())
    spark.sql("CREATE TABLE litter USING parquet AS SELECT 1 AS a")
    warehouse = Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:"))
    assert (warehouse / "litter").is_dir()
    assert warehouse.is_relative_to(tempfile.gettempdir())
    spark.sql("DROP TABLE litter")
    assert set(os.listdir()) == before


def test_a_running_session_is_used_again(spark: SparkSession) -> None:
    try:
        again = local_session("another", cores=2, **{"spark.sql.shuffle.partitions": "7"})
        assert again is spark
        assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "1")
