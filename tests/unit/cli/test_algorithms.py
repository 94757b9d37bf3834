"""`harken algorithms`: what the registry says."""

from __future__ import annotations

import pytest

from harken.language.capabilities import Capability
from harken.matchers.algorithm_registry import (
    ALGORITHMS,
    DEFAULT_ALGORITHM,
    algorithm_capabilities,
    algorithm_options,
    algorithm_traits,
)
from harken.matchers.base import Trait
from harken.matchers.document_algorithms import DOCUMENT_ALGORITHMS, document_options

from .conftest import Run, lines


@pytest.mark.parametrize("width", ["80", "200"])
def test_the_table_has_all_algorithms_and_capabilities(run: Run, width: str) -> None:
    result = run("algorithms", env={"COLUMNS": width})
    assert result.exit_code == 0
    assert all(len(line) <= int(width) for line in result.stdout.splitlines())
    for name in ALGORITHMS:
        row = next(line for line in result.stdout.splitlines() if line.strip().startswith(name + " "))
        assert row.count("✓") == len(algorithm_capabilities(name)) + len(algorithm_traits(name))
    words = result.stdout.split()
    assert all(word in words for name in (*Capability, *Trait) for word in name.split())


def test_as_json(run: Run) -> None:
    found = {each["name"]: each for each in lines(run("algorithms", "--json").stdout)}
    assert list(found) == [*ALGORITHMS, *DOCUMENT_ALGORITHMS]
    assert found["xpath"]["summary"] == "Candidates by a rare value, decided by a program over lists of nodes."
    for name in DOCUMENT_ALGORITHMS:
        each = found.pop(name)
        assert (each["finds"], tuple(each["options"])) == ("documents", document_options(name))
        assert each["summary"]
    for name, each in found.items():
        assert set(each["capabilities"]) == {str(able) for able in algorithm_capabilities(name)}
        assert set(each["traits"]) == {str(trait) for trait in algorithm_traits(name)}
        assert tuple(each["options"]) == algorithm_options(name)
        assert each["default"] is (name == DEFAULT_ALGORITHM)
        assert each["summary"]
