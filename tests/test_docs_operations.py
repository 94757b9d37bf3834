"""The sizes in docs/operations.md follow from the committed results; the metrics and settings that it names exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SIZES = (10_000, 100_000, 1_000_000)
RATES = (1_000, 10_000, 100_000, 1_000_000)
BUSY = 0.5
"""How busy a core, a server or an executor is to be at most."""
TEXT_BYTES = 200


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))


def gib(mebibytes: float) -> str:
    """A size, rounded up to a tenth."""
    return f"{ceil(mebibytes / 1024 * 10) / 10:.1f} GiB"


def cores(rate: int, microseconds: float) -> int:
    return ceil(rate * microseconds / 1e6 / BUSY)


def server(rate: int, per_second: dict[str, Any]) -> str:
    if rate <= BUSY * per_second["single"]["median"]:
        return "single events"
    return "batches of 1,000" if rate <= BUSY * per_second["batch"]["median"] else "–"


def sizing_rows() -> Iterator[str]:
    resident = {
        each["size"]: each["median"]
        for each in results("matching.json")["figures"]
        if (each["name"], each.get("workload"), each.get("matcher")) == ("peak_rss", "stock", "columnar")
    }
    per_event = {each["subscriptions"]: each["us_per_event"] for each in results("user.json")["sizes"]}
    per_second = results("server.json")["per_second"]
    executor = results("spark.json")["found"]["stock_pairs"]["2 cores"]["events_per_second"]["median"]
    taking_bytes = results("shape_cache.json")["load"]["bytes_a_text"]
    for size in SIZES:
        loaded = resident[size] + size * TEXT_BYTES / 2**20
        taking = loaded + size * taking_bytes / 2**20
        for rate in RATES:
            dicts, arrow = (cores(rate, per_event[size][name]["median"]) for name in ("fresh_batch", "reloaded_arrow"))
            executors = ceil(rate / (BUSY * executor))
            yield (
                f"| {size:,} | {rate:,} | {gib(loaded)} | {gib(taking)} | {dicts} | {arrow} "
                f"| {server(rate, per_second)} | {executors} |"
            )


def document_rows() -> Iterator[str]:
    for row in results("documents.json")["sizes"]:
        rate = row["documents_per_second"]["reloaded_batch"]["median"]
        index = row["bytes_per_subscription"] * row["subscriptions"] / 2**20
        yield f"| {row['subscriptions']:,} | {round(rate, -2):,.0f} | {ceil(index):,} MiB |"


def sentences() -> Iterator[str]:
    spark = {name: each.get("2 cores") for name, each in results("spark.json")["found"].items()}
    yield f"{spark['stock_pairs']['events_per_second']['median']:,.0f} events a second"
    yield f"{spark['le_subscribe_pairs']['pairs_per_second']['median'] / 1e6:.1f} million pairs a second"
    yield f"{spark['worker_memory']['full_mb']:.0f} MB of its own"
    yield f"{spark['build']['seconds']['median']:.0f} s on two cores"
    many = {each["workload"]: each["us_per_event"] for each in results("user.json")["workloads"]}
    some, more = (many[name]["arrow_ids"]["median"] for name in ("le-subscribe", "gryphon"))
    lists = many["le-subscribe"]["ids"]["median"] / 1e3
    yield f"{lists:.0f} ms as Python lists, and {some:.0f} to {more:.0f} µs as `arrow_ids()`"
    found = results("server.json")
    rates = {name: each["median"] for name, each in found["per_second"].items()}
    yield f"{rates['single']:,.0f} single events and {rates['batch']:,.0f} in batches"
    ended, killed = found["restart_seconds"], found["restart_after_kill_seconds"]
    yield f"ready again after {ended:.1f} s, after a kill {killed:.1f} s"


def test_the_sizes_follow_from_the_results() -> None:
    table = PAGE.partition("\n## How large\n")[2].partition("\n## ")[0]
    wanted = [*sizing_rows(), *document_rows()]
    missing = [row for row in wanted if row not in table]
    assert missing == [], "docs/operations.md does not have these rows:\n" + "\n".join(missing)
    assert sorted(re.findall(r"^\| \d.*\|$", table, re.MULTILINE)) == sorted(wanted), "rows that no result has"
    words = " ".join(table.split())
    assert [each for each in sentences() if each not in words] == []
    assert f"{TEXT_BYTES} bytes" in words
    assert f"{results('shape_cache.json')['load']['bytes_a_text']:,} bytes" in words


def test_the_metrics_that_it_names_exist() -> None:
    pytest.importorskip("prometheus_client")
    package = ROOT / "src" / "harken"
    server = (package / "server" / "metrics.py").read_text("utf-8")
    pipeline = (package / "pipeline" / "run_metrics.py").read_text("utf-8")
    known = set(re.findall(r'"(harken_\w+)"', server))
    known |= {f"{name}_total" for name in known} | {f"{name}_bucket" for name in known}
    known |= {f"harken_pipeline_{name}" for name in re.findall(r'\.add\(\s*"(\w+)"', pipeline)}
    named = set(re.findall(r"\bharken_(?!kernels)[a-z_]+\b", PAGE.partition("\n## Monitoring\n")[2]))
    assert named
    assert named - known == set()


def test_the_settings_that_it_names_exist() -> None:
    settings = (ROOT / "src" / "harken" / "server" / "settings.py").read_text("utf-8")
    named = set(re.findall(r"--set (\w+)=", PAGE)) | set(re.findall(r"`(max_\w+|journal_\w+|webhook_\w+)`", PAGE))
    assert named
    assert [each for each in sorted(named) if f"    {each}: " not in settings] == []


def test_the_manifest_is_yaml() -> None:
    yaml = pytest.importorskip("yaml")
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    documents = list(yaml.safe_load_all(text))
    assert [each["kind"] for each in documents] == ["Secret", "StatefulSet", "Service"]
    (container,) = documents[1]["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
