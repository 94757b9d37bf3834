"""The environment of a measurement, as it is written beside the result."""

from __future__ import annotations

import json
import os
import platform
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from harken_lab.harness.environment import environment
from harken_lab.harness.source_state import source_state


def test_it_tells_machine_system_and_versions() -> None:
    found = environment()
    machine = {"processor", "cores", "memory_gib", "system", "python", "packages"}
    assert set(found) == {*machine, "commit", "sources", "date", "load"}
    assert (found["commit"], found["sources"]) == source_state()
    assert datetime.fromisoformat(found["date"]).utcoffset() == timedelta(0)
    assert found["load"] >= 0
    assert found["python"] == platform.python_version()
    assert found["cores"] >= 1
    assert found["memory_gib"] > 0
    assert found["system"] == f"{platform.system()} {platform.machine()}"


def test_memory_is_in_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**20 + 2**16}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    assert environment()["memory_gib"] == 4.2


def test_it_is_json() -> None:
    found = environment("pytest")
    assert json.loads(json.dumps(found)) == found


def test_it_has_the_versions_of_what_harken_stands_on() -> None:
    packages = environment()["packages"]
    assert {"harken", "numba", "numpy", "pyarrow"} <= set(packages)
    assert packages["pyarrow"] == version("pyarrow")


def test_more_packages_can_be_asked_for() -> None:
    assert environment("pytest")["packages"]["pytest"] == version("pytest")


def test_a_package_that_is_not_installed_has_no_version() -> None:
    assert environment("there-is-no-such-package")["packages"]["there-is-no-such-package"] is None


def give(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    """Have /proc/cpuinfo hold this, or be missing."""

    read = Path.read_text

    def read_text(path: Path, *arguments: Any, **options: Any) -> str:
        if str(path) != "/proc/cpuinfo":
            return read(path, *arguments, **options)
        if text is None:
            raise FileNotFoundError(path)
        return text

    monkeypatch.setattr(Path, "read_text", read_text)


def test_the_processor_is_the_first_that_the_system_names(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, "processor\t: 0\nmodel name\t: Acme 9000\n\nprocessor\t: 1\nmodel name\t: Other\n")
    assert environment()["processor"] == "Acme 9000"


@pytest.mark.parametrize("text", [None, "", "processor\t: 0\nBogoMIPS\t: 50.00\n"])
@pytest.mark.parametrize(("known", "told"), [("Acme", "Acme"), ("", "unknown")])
def test_where_the_system_does_not_name_it_python_is_asked(
    monkeypatch: pytest.MonkeyPatch, text: str | None, known: str, told: str
) -> None:
    give(monkeypatch, text)
    monkeypatch.setattr(platform, "processor", lambda: known)
    assert environment()["processor"] == told
