"""What `harken bench` and `harken experiment` share: progress, refusals of unknown names, and plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter

import typer

from harken.cli.screen import Screen


def progress(screen: Screen) -> Callable[[str], None]:
    """Tells a message with the seconds since now."""
    started = perf_counter()

    def tell(text: str) -> None:
        seconds = perf_counter() - started
        screen.aside({"kind": "progress", "seconds": round(seconds, 1), "message": text}, f"{seconds:6.1f} s  {text}")

    return tell


def refuse_unknown(option: str, name: str, known: Iterable[str]) -> None:
    """Raise BadParameter unless the name is known."""
    names = list(known)
    if name not in names:
        raise typer.BadParameter(f"there is no {name}; there are: {', '.join(names)}", param_hint=option)


def tell_drawn(screen: Screen, paths: Iterable[Path]) -> None:
    names = list(map(str, paths))
    screen.aside({"kind": "plots", "files": names}, f"drawn: {', '.join(names) or 'nothing, for lack of figures'}")
