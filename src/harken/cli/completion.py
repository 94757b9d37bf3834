"""Completion in the shell: names of algorithms and formats. The shell completes files by itself."""

from __future__ import annotations

from collections.abc import Iterable


def algorithm_names(incomplete: str) -> list[str]:
    from harken.matchers.algorithm_registry import ALGORITHMS

    return starting(ALGORITHMS, incomplete)


def document_names(incomplete: str) -> list[str]:
    from harken.matchers.document_algorithms import DOCUMENT_ALGORITHMS

    return starting(DOCUMENT_ALGORITHMS, incomplete)


def format_names(incomplete: str) -> list[str]:
    from harken.events.sources import FORMATS

    return starting(FORMATS, incomplete)


def starting(names: Iterable[str], incomplete: str) -> list[str]:
    """The names that begin with the incomplete word."""
    return [name for name in names if name.startswith(incomplete)]
