"""The wheel as a user installs it: without our constraints, with the newest of what it depends on, and the oldest.

`make test` installs it for the newest Python, without Spark.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harken.spark.java import find_java

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parent.parent.parent
NEWEST = "3.13"
OLDEST = "3.11, and the oldest of all that it needs"
VERSIONS = ("3.11", "3.12", NEWEST, OLDEST)
_SECONDS = 1_200
WITH_SPARK = os.environ.get("HARKEN_LONG") == "1"
EXTRA = "[spark]" if WITH_SPARK else ""

SPARK_MATCH = """\
import harken
from harken.spark import match
from harken.spark.session import local_session

if __name__ == "__main__":
    spark = local_session("wheel")
    events = spark.createDataFrame([("e1", "Toy", 3.5), ("e2", "Toy", 7.0)], "id string, category string, price double")
    texts = [("alice", "category = 'Toy' AND price < 5"), ("bob", "price > 5")]
    subscriptions = spark.createDataFrame(texts, "id string, where string")
    print(sorted(tuple(row) for row in match(events, subscriptions, event_id="id").collect()))
    spark.stop()
"""


def python_of(version: str) -> Path | None:
    """A Python of this version that runs: on the PATH, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    others = sorted(pyenv.glob(f"versions/{version}*/bin/python{version}"))
    for candidate in filter(None, (shutil.which(f"python{version}"), *map(str, others))):
        probe = [candidate, "-c", "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(probe, capture_output=True, text=True, check=False).stdout.strip() == version:
            return Path(candidate)
    return None


def floors() -> Iterator[str]:
    """What pip has to take to get the oldest version of each library that pyproject.toml admits."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for each in (*project["dependencies"], *project["optional-dependencies"]["spark"]):
        name, oldest = re.match(r"([\w-]+)>=([\d.]+)", each).groups()
        yield f"{name}=={oldest}.*"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Harken's, and the laboratory's."""
    folder = tmp_path_factory.mktemp("wheel")
    both = (ROOT, ROOT / "lab")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, *both)
    (product,), (laboratory,) = folder.glob("harken-*.whl"), folder.glob("harken_lab-*.whl")
    return product, laboratory


@pytest.fixture(
    params=[each if each == NEWEST else pytest.param(each, marks=pytest.mark.slow) for each in VERSIONS],
)
def environment(request: pytest.FixtureRequest, wheels: tuple[Path, Path], tmp_path: Path) -> Iterator[Path]:
    """The folder of programs of a fresh environment that has the wheel, and what pip brings for it."""
    version = request.param.partition(",")[0]
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(floors()) if request.param == OLDEST else "")
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    run(python, "-m", "venv", tmp_path / "environment")
    programs = tmp_path / "environment" / "bin"
    run(programs / "python", "-m", "pip", "install", "-q", "--no-compile", "-c", constraints, f"{wheels[0]}{EXTRA}")
    yield programs
    shutil.rmtree(tmp_path / "environment")


def run(*command: object, folder: Path = ROOT, **given: str) -> str:
    """What a command prints. It must succeed, and warn of nothing."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_CONS"))}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment | given,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout


def ten_lines() -> tuple[str, str]:
    """README's first program, and what README says that it prints."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program, printed = re.search(r"```python\n(import harken\n.*?)```\n+```text\n(.*?)```", readme, re.S).groups()
    return program, printed


def test_the_wheel_works_with_all_that_it_needs(environment: Path, wheels: tuple[Path, Path], tmp_path: Path) -> None:
    program, printed = ten_lines()
    assert run(environment / "python", "-W", "error", "-c", program, folder=tmp_path) == printed

    (tmp_path / "events.jsonl").write_text('{"category": "Toy", "price": 3.5}\n')
    (tmp_path / "subscriptions.jsonl").write_text('{"id": "alice", "where": "price < 5"}\n')
    words = ("match", "events.jsonl", "--subscriptions", "subscriptions.jsonl", "--json")
    lines = run(environment / "harken", *words, folder=tmp_path).splitlines()
    assert any("alice" in json.dumps(json.loads(line)) for line in lines)

    python = str(environment / "python")
    if WITH_SPARK:
        (tmp_path / "match.py").write_text(SPARK_MATCH)
        spark = {"JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
        answer = run(python, "match.py", folder=tmp_path, **spark)
        assert answer.splitlines()[-1] == "[('e1', 'alice'), ('e2', 'bob')]"

    # Without the laboratory Harken says what to install, and then it is there.
    rejected = subprocess.run([environment / "harken", "bench"], capture_output=True, text=True, check=False)
    assert rejected.returncode == 2
    assert "No such command 'bench': it is in the laboratory: pip install harken-lab" in rejected.stderr
    asking = "import harken; print(harken.Engine(algorithm='hanson').match({}).ids)"
    rejected = subprocess.run([python, "-c", asking], capture_output=True, text=True, check=False)
    assert rejected.stderr.endswith("hint: it is in the laboratory: pip install harken-lab\n")
    run(python, "-m", "pip", "install", "-q", "--no-compile", wheels[1])
    assert run(python, "-c", asking, folder=tmp_path) == "[]\n"
    assert "Usage: harken bench" in run(environment / "harken", "bench", "--help")
