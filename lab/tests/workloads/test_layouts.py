"""Which layouts the default algorithm chooses for the workloads of papers."""

from __future__ import annotations

import pytest

from harken_lab.harness.contestants import Contestant
from harken_lab.workloads import generate


@pytest.mark.seconds
@pytest.mark.parametrize("name", ["w4", "le-subscribe", "stock", "gryphon"])
def test_the_workloads_of_papers_are_not_sieved(name: str) -> None:
    workload = generate(name, 20_000, 300)
    filled = Contestant.of("columnar", small_rows=0, recent_rows=1).fill(workload, workload.events)
    chosen = {group["layout"] for group in filled.matcher.stats()["layers"][0]["groups"]}
    assert "sieve" not in chosen
