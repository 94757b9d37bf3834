"""Standard output for results, standard error for everything else; as text or as JSON lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harken.cli.json_output import to_json
from harken.concurrency.caching import cached_property

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Screen:
    """Standard output and standard error of a command."""

    def __init__(self, json: bool) -> None:
        self.json = json

    @cached_property
    def out(self) -> Console:
        return _console(stderr=False)

    @cached_property
    def err(self) -> Console:
        return _console(stderr=True)

    @property
    def is_table(self) -> bool:
        """Whether standard output is a terminal and tables are wanted."""
        return not self.json and _is_terminal(sys.stdout)

    def line(self, data: Mapping[str, Any]) -> None:
        """Print a result as a JSON line."""
        print(to_json(data))

    def show(self, shown: RenderableType, *, wrap: bool = False) -> None:
        """Print a result for people. Long lines, except those of tables, are not wrapped unless `wrap` is set."""
        self.out.print(shown, soft_wrap=not wrap)

    def aside(self, data: Mapping[str, Any], text: RenderableType) -> None:
        """Print what is not a result: `data`, whose `kind` says what it is, with --json, else `text`."""
        if self.json and sys.stderr is not None:
            print(to_json(data), file=sys.stderr)
        elif not self.json:
            self.err.print(text, soft_wrap=True)

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A progress bar, if standard error is a terminal; the yielded function advances it, to about `total`."""
        if self.json or not _is_terminal(sys.stderr):
            yield lambda count: None
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        done = "{task.completed:,}" if total is None else "{task.completed:,} of about {task.total:,}"
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(done), TimeElapsedColumn())
        with Progress(*columns, console=self.err, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda count: bar.advance(task, count)


def printable(text: str) -> str:
    """The text on one line without control codes: input from outside must not control the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def printable_lines(text: str) -> str:
    """The lines of the text, without control codes."""
    return "\n".join(map(printable, text.split("\n")))


def counted(count: int, noun: str) -> str:
    """A number and what it counts, in the plural unless it is one."""
    ending = "es" if noun.endswith("ch") else "s"
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}{ending}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    class Quiet(Console):
        """Rich would exit by itself on a closed pipe; the session decides the exit code."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Quiet(stderr=stderr, markup=False, emoji=False, highlight=False)
