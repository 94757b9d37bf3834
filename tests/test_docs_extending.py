"""docs/extending.md: the package that it shows works as soon as it is installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "extending.md").read_text(encoding="utf-8")
PROGRAM = """
from harken import Engine
from harken.errors import HarkenError

engine = Engine(algorithm="one_by_one")
engine.subscribe("alice", "Toy below 5", language="price_alerts")
engine.subscribe("bob", "price > 3")
events = [{"category": "Toy", "price": 4}, {"category": "Toy", "price": 2}, {"category": "Lamp", "price": 9}]
print([sorted(ids) for ids in engine.match_batch(events).ids])
print(engine.explain("alice", events[2]))
engine.subscribe("bob", "price > 8", replace=True)
engine.unsubscribe("alice")
print([sorted(ids) for ids in engine.match_batch(events).ids])
try:
    engine.subscribe("carol", "cheap toys", language="price_alerts")
except HarkenError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, as pip would lay it out."""
    folder = tmp_path_factory.mktemp("site-packages")
    (folder / "shop_rules").mkdir()
    (folder / "shop_rules" / "__init__.py").touch()
    for name, code in re.findall(r"^`shop_rules/(\w+\.py)`.*?^```python\n(.*?)^```", PAGE, re.M | re.S):
        assert len([line for line in code.splitlines() if line]) <= 32
        (folder / "shop_rules" / name).write_text(code, encoding="utf-8")
    (toml,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)
    groups = tomllib.loads(toml)["project"]["entry-points"]
    info = folder / "shop_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "".join(f"[{group}]\n" + "".join(f"{n} = {t}\n" for n, t in each.items()) for group, each in groups.items())
    )
    return folder


def run(installed: Path, *words: str, code: int = 0) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])}
    ended = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == code, ended.stderr
    return ended.stderr if code else ended.stdout


def test_a_matcher_and_a_language(installed: Path) -> None:
    assert run(installed, "-c", PROGRAM).splitlines() == [
        "[['alice', 'bob'], ['alice'], ['bob']]",
        "does not match",
        "✗ AND",
        "  ✗ category = 'Toy'   (category is 'Lamp')",
        "  ✗ price < 5   (price is 9)",
        "[[], [], ['bob']]",
        "'cheap toys' is no price alert",
        "hint: write: Toy below 5",
    ]
    listed = [json.loads(line) for line in run(installed, "-m", "harken", "algorithms", "--json").splitlines()]
    assert "one_by_one" in [each["name"] for each in listed]


def test_a_command(installed: Path, tmp_path: Path) -> None:
    file = tmp_path / "alerts.jsonl"
    file.write_text('{"id": 1, "where": "price < 5"}\n{"id": 2, "where": "price <"}\n', encoding="utf-8")
    assert run(installed, "-m", "harken", "count", str(file)) == "1 are good, 1 are not\n"
    assert run(installed, "-m", "harken", "count", "nofile", code=3) == "error: nofile: No such file or directory\n"
    file.write_text("junk", encoding="utf-8")
    assert run(installed, "-m", "harken", "count", str(file), code=70).startswith("internal error: JSONDecodeError")
    ours, _, theirs = run(installed, "-m", "harken", "--help").partition("\nOf other packages:\n")
    assert "  count  Count the subscriptions of a file that have no fault.\n" in theirs
    assert "  match " in ours
    assert "harken count alerts.jsonl" in run(installed, "-m", "harken", "count", "--help")
