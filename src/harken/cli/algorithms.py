"""`harken algorithms`: the matching algorithms and what each can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.cli.command_session import session
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH_FOR_NAMES = 150


def algorithms(json: Json = False, verbose: Verbose = 0) -> None:
    """List the matching algorithms and what each can do.

    All of them give the same answers. An algorithm rejects a subscription that it cannot match.
    """
    with session(json, verbose) as screen:
        if json:
            _show_lines(screen)
        else:
            _show_table(screen)


def _show_lines(screen: Screen) -> None:
    from harken.matchers import algorithm_registry as registry
    from harken.matchers.document_algorithms import (
        DEFAULT_DOCUMENTS,
        DOCUMENT_ALGORITHMS,
        document_options,
        document_summary,
    )

    for name in registry.ALGORITHMS:
        screen.line(
            {
                "name": name,
                "summary": registry.algorithm_summary(name),
                "default": name == registry.DEFAULT_ALGORITHM,
                "capabilities": sorted(registry.algorithm_capabilities(name)),
                "traits": sorted(registry.algorithm_traits(name)),
                "options": list(registry.algorithm_options(name)),
                "finds": "attributes",
            }
        )
    for name in DOCUMENT_ALGORITHMS:
        screen.line(
            {
                "name": name,
                "summary": document_summary(name),
                "default": name == DEFAULT_DOCUMENTS,
                "options": list(document_options(name)),
                "finds": "documents",
            }
        )


def _show_table(screen: Screen) -> None:
    from rich.text import Text

    from harken.matchers import Capability, Trait
    from harken.matchers.algorithm_registry import ALGORITHMS, DEFAULT_ALGORITHM, algorithm_summary
    from harken.matchers.document_algorithms import DEFAULT_DOCUMENTS, DOCUMENT_ALGORITHMS, document_summary

    # If the names of all capabilities and traits do not fit, letters stand for them.
    names = [*map(str, Capability), *map(str, Trait)]
    letters = "abcdefghijklmnopqrstuvwxyz"[: len(names)]
    is_wide = screen.out.width >= _WIDTH_FOR_NAMES
    screen.show(_table(names, names if is_wide else list(letters)), wrap=True)
    if not is_wide:
        for letter, name in zip(letters, names, strict=True):
            screen.show(f"  {letter}  {name}")
        screen.show("")
    for name in ALGORITHMS:
        default = " (the default)" if name == DEFAULT_ALGORITHM else ""
        screen.show(Text.assemble((name, "bold"), default, f": {algorithm_summary(name)}"), wrap=True)
    screen.show("\nFor XPath subscriptions to XML documents (`--documents`):")
    for name in DOCUMENT_ALGORITHMS:
        default = " (the default)" if name == DEFAULT_DOCUMENTS else ""
        screen.show(Text.assemble((name, "bold"), default, f": {document_summary(name)}"), wrap=True)


def _table(names: list[str], headings: list[str]) -> Table:
    from rich import box
    from rich.table import Table

    from harken.matchers.algorithm_registry import ALGORITHMS, algorithm_capabilities, algorithm_traits

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("algorithm", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="center")
    for name in ALGORITHMS:
        able = {*algorithm_capabilities(name), *algorithm_traits(name)}
        table.add_row(name, *("✓" if each in able else "" for each in names))
    return table
