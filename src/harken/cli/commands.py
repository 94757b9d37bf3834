"""The commands of `harken`: the built-in ones, and those that installed packages announce."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from harken.announced import LABORATORY, Announced, imported, target_of
from harken.cli.command_session import session
from harken.errors import SourceError

ANNOUNCED: Announced[str] = Announced(
    "harken.commands", {}, target_of, laboratory="bench demo experiment generate report tour warm-up-papers"
)
"""Each as "module:name" of a function with Typer's annotations, or of a `typer.Typer` with several commands. The help
of a function ends with `EXAMPLES` of its module, if there are any. An error that it raises is shown without a
traceback, and ends the command with an exit code."""


FILES, SPARK, SERVER, MORE = "Events and subscriptions in files", "Spark", "The server and its clients", "More"
"""The panels of `harken --help`, in its order."""


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by panel; those without a panel come last."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {}
        arguments: list[tuple[str, str]] = []
        rest: list[tuple[str, str]] = []
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is None:
                continue
            panel = getattr(parameter, "rich_help_panel", None)
            is_argument = parameter.param_type_name == "argument"
            (arguments if is_argument else panels.setdefault(panel, []) if panel else rest).append(row)
        for title, rows in {"Arguments": arguments, **panels, "Options": rest}.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Commands(TyperGroup):
    """A group whose help lists commands by panel, then those of the laboratory and of other packages.

    Commands of packages are imported when they are used, or when help lists all.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        built_in = super().list_commands(ctx)
        return [*built_in, *(name for name in ANNOUNCED if name not in built_in)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        built_in = super().get_command(ctx, cmd_name)
        return _command(cmd_name) if built_in is None and cmd_name in ANNOUNCED else built_in

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        hint = ANNOUNCED.hint(args[0]) if args and self.get_command(ctx, args[0]) is None else None
        if hint is not None:
            ctx.fail(f"No such command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        names: dict[str, list[str]] = {panel: [] for panel in (FILES, SPARK, SERVER, MORE)}
        for name in super().list_commands(ctx):
            names[self.get_command(ctx, name).rich_help_panel].append(name)
        names["Laboratory"] = [name for name in ANNOUNCED if ANNOUNCED.package(name) == LABORATORY]
        names["Of other packages"] = [name for name in ANNOUNCED if all(name not in each for each in names.values())]
        for title, listed in names.items():
            commands = [(name, self.get_command(ctx, name)) for name in listed]
            width = formatter.width - 6 - max(map(len, listed), default=0)
            rows = [(name, each.get_short_help_str(width)) for name, each in commands if not each.hidden]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _command(name: str) -> Any:
    target = imported(ANNOUNCED[name])
    if isinstance(target, typer.Typer):
        command = get_command(target)
        command.name = name
        return command
    examples = getattr(sys.modules[target.__module__], "EXAMPLES", None)
    alone = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    alone.command(name, epilog=examples)(target if ANNOUNCED.package(name) == LABORATORY else _framed(target))
    return get_command(alone)


def _framed(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with its errors shown, and an exit code, as for Harken's own commands."""

    @wraps(command)
    def framed(*arguments: Any, **options: Any) -> Any:
        with session(json=False, verbose=0):
            try:
                return command(*arguments, **options)
            except OSError as error:
                if error.filename is None:
                    raise
                raise SourceError(f"{error.filename}: {error.strerror}") from error

    return framed
