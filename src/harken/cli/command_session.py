"""The frame around a command: logging, and an exit code instead of a traceback."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer

from harken.cli.exits import ExitCode, code_of
from harken.cli.screen import Screen, printable_lines
from harken.errors import HarkenError, SourceError, missing_extra

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


@contextmanager
def session(json: bool, verbose: int) -> Iterator[Screen]:
    """Run a command. Errors are shown, and only `typer.Exit` is raised, or wrong usage, which Typer shows."""
    screen = Screen(json)
    with _logging(screen, verbose):
        try:
            yield screen
            if sys.stdout is not None:
                sys.stdout.flush()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except HarkenError as error:
            show_error(screen, error)
            raise typer.Exit(code_of(error)) from None
        except KeyboardInterrupt:
            screen.aside({"kind": "error", "message": "interrupted"}, "interrupted")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:
            _abandon_output()
            raise typer.Exit(ExitCode.CLOSED_PIPE) from None
        except OSError as error:
            # Files raise SourceError with their name, so this is standard output.
            _abandon_output()
            show_error(screen, SourceError(f"standard output cannot be written: {error.strerror or error}"))
            raise typer.Exit(ExitCode.UNUSABLE) from None
        except Exception as error:
            missing = missing_extra(error)
            if missing is not None:
                show_error(screen, missing)
                raise typer.Exit(code_of(missing)) from None
            _show_bug(screen, error, verbose)
            raise typer.Exit(ExitCode.INTERNAL) from None


def show_error(screen: Screen, error: HarkenError) -> None:
    """Show the error that ends the command: message, place, excerpt and hint."""
    from rich.text import Text

    text = Text.assemble(("error: ", "bold red"), printable_lines(str(error)))
    screen.aside({"kind": "error", **error.to_dict()}, text)


def _show_bug(screen: Screen, error: Exception, verbose: int) -> None:
    what = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
    hint = "" if verbose else " (-v shows where)"
    text = f"internal error: {what}. This is a bug in Harken: please report it{hint}"
    data = {"kind": "error", "error": "InternalError", "message": what}
    if verbose:
        data["traceback"] = traceback.format_exc()
        text += "\n" + data["traceback"]
    screen.aside(data, text)


def _abandon_output() -> None:
    """Discard what is still in the buffer: else Python reports an error on exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class _ScreenHandler(logging.Handler):
    """Logs to the screen, so that log lines do not break a progress bar."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        message, level = self.format(record), record.levelname.lower()
        data = {"kind": "log", "level": level, "logger": record.name, "message": message}
        self._screen.aside(data, f"{level}: {message}")


@contextmanager
def _logging(screen: Screen, verbose: int) -> Iterator[None]:
    logger = logging.getLogger("harken")
    handler = _ScreenHandler(screen)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(_LEVELS[min(verbose, len(_LEVELS) - 1)])
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
