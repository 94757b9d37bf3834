"""Python programs in a process and a Spark of their own, given the jars of connectors that the suite's Spark lacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harken.spark.java import find_java
from services.maven import jars_for


@contextmanager
def spark_environment(formats: Iterable[str] = ()) -> Iterator[dict[str, str]]:
    """The environment of a process whose Spark is to have these formats (harken.pipeline.connectors).

    The jars are in a spark-defaults.conf, as an administrator would have it: a session made in any way has them.
    Skips the test if they cannot be had.
    """
    jars = ",".join(map(str, jars_for(formats)))
    with tempfile.TemporaryDirectory(prefix="harken-spark-conf-") as folder:
        Path(folder, "spark-defaults.conf").write_text(f"spark.jars {jars}\n" if jars else "")
        yield dict(os.environ) | {
            "JAVA_HOME": str(find_java().home),
            "SPARK_CONF_DIR": folder,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }


def run_spark_script(
    script: str | Path, *arguments: str, formats: Iterable[str] = (), timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a file, or a program given as text, and wait for it. It may have failed: see returncode."""
    what = [str(script)] if isinstance(script, Path) else ["-c", script]
    return _run([*what, *arguments], formats, timeout)


def run_harken(*arguments: str, formats: Iterable[str] = (), timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run the command line of Harken, and wait for it. It may have failed: see returncode."""
    return _run(["-m", "harken", *arguments], formats, timeout)


def _run(arguments: list[str], formats: Iterable[str], timeout: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    with (
        spark_environment(formats) as environment,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            output, errors = process.communicate(timeout=timeout)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # its Java too
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
