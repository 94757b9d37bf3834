"""The laboratory's workloads, for tests that need many subscriptions. Without the laboratory these are skipped."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harken_lab.workloads.workload import Workload

needs_laboratory = pytest.mark.skipif(find_spec("harken_lab") is None, reason="the laboratory is not installed")


def generate(*arguments: Any, **named: Any) -> Workload:
    """Subscriptions and events of a workload."""
    workloads = pytest.importorskip("harken_lab.workloads", reason="the laboratory is not installed")
    drawn: Workload = workloads.generate(*arguments, **named)
    return drawn
