"""`harken algorithms`: which matching algorithms there are, and what each can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen
from harken.cli.session import session

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH_FOR_NAMES = 150


def algorithms(json: Json = False, verbose: Verbose = 0) -> None:
    """List the matching algorithms and what each can do.

    All of them give the same answers. One that cannot do what a subscription asks for refuses it.
    """
    with session(json, verbose) as screen:
        if json:
            _show_lines(screen)
        else:
            _show_table(screen)


def _show_lines(screen: Screen) -> None:
    from harken.matchers.registry import ALGORITHMS, DEFAULT_ALGORITHM, algorithm_capabilities, algorithm_summary

    for name in ALGORITHMS:
        capabilities = sorted(algorithm_capabilities(name))
        is_default = name == DEFAULT_ALGORITHM
        data = {"name": name, "summary": algorithm_summary(name), "default": is_default, "capabilities": capabilities}
        screen.line(data)


def _show_table(screen: Screen) -> None:
    from rich.text import Text

    from harken.matchers.base import Capability
    from harken.matchers.registry import ALGORITHMS, DEFAULT_ALGORITHM, algorithm_summary

    # If the names of all capabilities do not fit, letters stand for them.
    letters = "abcdefghijklmnopqrstuvwxyz"[: len(Capability)]
    is_wide = screen.out.width >= _WIDTH_FOR_NAMES
    screen.show(_table([str(each) for each in Capability] if is_wide else list(letters)), wrap=True)
    if not is_wide:
        for letter, capability in zip(letters, Capability, strict=True):
            screen.show(f"  {letter}  {capability}")
        screen.show("")
    for name in ALGORITHMS:
        default = " (the default)" if name == DEFAULT_ALGORITHM else ""
        screen.show(Text.assemble((name, "bold"), default, f": {algorithm_summary(name)}"), wrap=True)


def _table(headings: list[str]) -> Table:
    from rich import box
    from rich.table import Table

    from harken.matchers.base import Capability
    from harken.matchers.registry import ALGORITHMS, algorithm_capabilities

    table = Table("algorithm", box=box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading, justify="center")
    for name in ALGORITHMS:
        able = algorithm_capabilities(name)
        table.add_row(name, *("✓" if capability in able else "" for capability in Capability))
    return table
