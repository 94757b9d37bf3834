"""Choose the Python of workers on this machine; on other machines, explain errors about missing modules."""

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
    """Let functions that are passed to Spark in this block run on this Python, if Spark runs on this machine.

    Without PYSPARK_PYTHON, Spark takes the `python3` on the PATH, which may not have Harken. If the user set
    PYSPARK_PYTHON, nothing is changed.
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
    """Wrap a function so that a worker without Harken fails with a message that explains what to set.

    Spark unpickles a function before it calls it, which imports all modules that the function needs. The wrapper needs
    none, and unpickles the function itself.
    """
    from pyspark import cloudpickle

    packed: bytes = cloudpickle.dumps(step)  # type: ignore[no-untyped-call]
    driver = sys.executable

    def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle
        import sys

        try:
            inner = pickle.loads(packed)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"Spark's workers run {sys.executable}, which has no module {error.name!r}: install harken[spark] "
                "there, or set PYSPARK_PYTHON, before Spark starts, to a Python that has it on every machine "
                f"(the driver's is {driver})",
                name=error.name,
            ) from None
        yield from inner(batches)

    unpacked.__name__ = step.__name__
    return unpacked
