"""Without the extra `spark`: functions and commands say what to install, and call nothing a bug."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = "import sys; sys.modules['pyspark'] = None; "
COMMAND = WITHOUT + "from harken.cli import main; sys.argv[0] = 'harken'; main()"
PIPELINE = """\
[source]
format = "json"
path = "events.jsonl"
event_id = "id"
columns = "id STRING, price DOUBLE"

[subscriptions]
path = "rules.jsonl"

[[sink]]
format = "json"
path = "out"
"""


@pytest.mark.parametrize("name", ["backtest", "check", "match", "profile", "validate", "session.local_session"])
def test_functions(name: str) -> None:
    module, _, function = f"harken.spark.{name}".rpartition(".")
    called = "" if name in ("backtest", "check", "match", "profile", "validate") else f"; {function}()"
    program = WITHOUT + f"from {module} import {function}{called}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "MissingExtraError: this needs pyspark, which is not installed" in ended.stderr
    assert ended.stderr.rstrip().endswith("hint: pip install 'harken[spark]'")


@pytest.mark.seconds
@pytest.mark.parametrize("command", [["demo"], ["run", "pipeline.toml"], ["run", "pipeline.toml", "--dry-run"]])
def test_commands(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    (tmp_path / "events.jsonl").write_text('{"id": "a", "price": 1}\n')
    (tmp_path / "rules.jsonl").write_text('{"id": "cheap", "where": "price < 5"}\n')
    program = [sys.executable, "-c", COMMAND, *command]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.rstrip().endswith("hint: pip install 'harken[spark]'")
    assert "bug" not in ended.stderr


def test_what_needs_no_spark_works_without(tmp_path: Path) -> None:
    program = WITHOUT + (
        f"from harken.spark import Index, build_index; build_index({{'a': 'x = 1'}}, {str(tmp_path)!r}); "
        f"print(Index({str(tmp_path)!r}).versions())"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == "[1]", ended.stderr


def test_help_works_without_and_names_what_can_be_used() -> None:
    program = WITHOUT + (
        "import harken.spark, pydoc; assert 'match(events, subscriptions)' in pydoc.render_doc(harken.spark); "
        "print({'Index', 'build_index'} <= set(dir(harken.spark)), 'match' in dir(harken.spark))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == "True False", ended.stderr
