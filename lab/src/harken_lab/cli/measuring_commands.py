"""Shared by `harken bench`, `experiment` and `report`: progress lines, the check of names, and the line about plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter

import typer

from harken.cli.screen import Screen


def progress(screen: Screen) -> Callable[[str], None]:
    """A function that shows a message with the seconds since `progress` was called."""
    started = perf_counter()

    def show(text: str) -> None:
        seconds = perf_counter() - started
        screen.aside({"kind": "progress", "seconds": round(seconds, 1), "message": text}, f"{seconds:6.1f} s  {text}")

    return show


def check_name(option: str, name: str, known: Iterable[str]) -> None:
    """Raise BadParameter unless the value of an option is one of the known names."""
    names = list(known)
    if name not in names:
        raise typer.BadParameter(f"there is no {name}; there are: {', '.join(names)}", param_hint=option)


def show_plots(screen: Screen, paths: Iterable[Path]) -> None:
    """Say which plots were written."""
    names = list(map(str, paths))
    screen.aside({"kind": "plots", "files": names}, f"plots: {', '.join(names) or 'none, for lack of figures'}")
