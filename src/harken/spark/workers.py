"""The Python of Spark's workers: this one on one machine; elsewhere, an error says what to set if Harken is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harken.spark.session_facts import is_local

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    Step = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_NAMED_BY_USER = "PYSPARK_PYTHON"


@contextmanager
def workers_with_harken(spark: SparkSession) -> Iterator[None]:
    """Run functions that are given to Spark in this block on this Python, if Spark runs on this machine.

    Without PYSPARK_PYTHON, Spark takes the `python3` on the PATH, which may not have Harken. A Python that the user
    named is left alone.
    """
    if _NAMED_BY_USER in os.environ or not sys.executable or not is_local(spark):
        yield
        return
    context = spark.sparkContext
    before = context.pythonExec
    context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


def explaining_missing_modules(step: Step) -> Step:
    """The function, wrapped so that a worker without Harken fails with one line that says what to set.

    Spark unpickles a function, which imports every module that it needs, before it calls it. The wrapper needs none,
    and unpickles the function itself.
    """
    from pyspark import cloudpickle

    packed: bytes = cloudpickle.dumps(step)  # type: ignore[no-untyped-call]
    driver = sys.executable

    def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle
        import sys

        try:
            found = pickle.loads(packed)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"Spark's workers run {sys.executable}, which has no module {error.name!r}: install harken[spark] "
                "there, or set PYSPARK_PYTHON, before Spark starts, to a Python that has it on every machine "
                f"(the driver's is {driver})",
                name=error.name,
            ) from None
        yield from found(batches)

    unpacked.__name__ = step.__name__
    return unpacked
