"""What the shell completes: names of algorithms, workloads and formats. The rest are files, which it knows itself."""

from __future__ import annotations

from collections.abc import Iterable


def algorithm_names(incomplete: str) -> list[str]:
    from harken.matchers.registry import ALGORITHMS

    return _starting(ALGORITHMS, incomplete)


def document_names(incomplete: str) -> list[str]:
    from harken.matchers.document_algorithms import DOCUMENT_ALGORITHMS

    return _starting(DOCUMENT_ALGORITHMS, incomplete)


def workload_names(incomplete: str) -> list[str]:
    from harken.lab.workloads.recipes import WORKLOADS

    return _starting(WORKLOADS, incomplete)


def format_names(incomplete: str) -> list[str]:
    from harken.events.sources import FORMATS

    return _starting(FORMATS, incomplete)


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
