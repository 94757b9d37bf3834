"""`harken subscribe`: add one subscription to a server, or many from files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harken.cli.command_session import session
from harken.cli.connecting import DEFAULT_SERVER, ApiKey, Server, connected, kept
from harken.cli.durations import seconds_of, seconds_option
from harken.cli.exits import ExitCode
from harken.cli.options import FILES, Json, Verbose
from harken.cli.screen import Screen, printable

if TYPE_CHECKING:
    from harken.client import Client, Delivery, Ticketed

EXAMPLES = """\b
Examples:
  harken subscribe "category = 'Toy' AND price < 5" --id alice
  harken subscribe "price < 5" --valid-for 7d --label team=toys
  harken subscribe "price < 5" --webhook https://me.example/in --max-delay 1m
  harken subscribe "/order/total > 9" --language xpath --throttle 10/60
  harken subscribe --file subscriptions.jsonl --valid-for 30d
"""
_THROTTLE = re.compile(r"(\d+)\s*/\s*(\S+)")


_WhereArgument = Annotated[
    str | None, typer.Argument(metavar="TEXT", help="The condition that events have to meet.", show_default=False)
]
_FileOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help=f"{FILES}, with the field where, and optionally id, language, owner, labels, valid_for.",
    ),
]
_LabelOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME=TEXT", help="A label to find the subscription by. Repeatable.")
]
_ValidForOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time until it expires unless it is renewed: 30m, 12h, 7d.")
]
_WebhookSecretOption = Annotated[
    str | None,
    typer.Option(
        metavar="SECRET",
        envvar="HARKEN_WEBHOOK_SECRET",
        help="Sign notifications with this; else the server makes one.",
    ),
]
_MaxDelayOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Let notifications wait up to this long, to be sent together.")
]
_ThrottleOption = Annotated[
    str | None, typer.Option(metavar="COUNT/TIME", help="At most COUNT notifications per TIME: 10/60, 1/1h.")
]
_RejectedOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="With --file: write everything rejected to this file, as JSON lines.")
]


def subscribe(
    where: _WhereArgument = None,
    file: _FileOption = None,
    id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The subscription's id. By default the server makes one.")
    ] = None,
    language: Annotated[str, typer.Option(metavar="NAME", help="The language of the text: sql or xpath.")] = "sql",
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="The subscription's owner.")] = None,
    label: _LabelOption = None,
    valid_for: _ValidForOption = None,
    webhook: Annotated[str | None, typer.Option(metavar="URL", help="Post notifications to this URL.")] = None,
    webhook_secret: _WebhookSecretOption = None,
    cloudevents: Annotated[bool, typer.Option("--cloudevents", help="Deliver notifications as CloudEvents.")] = False,
    max_delay: _MaxDelayOption = None,
    throttle: _ThrottleOption = None,
    rejected: _RejectedOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="With --file: exit with 1 if any was rejected.")] = False,
    server: Server = DEFAULT_SERVER,
    api_key: ApiKey = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Subscribe at a server to the events that meet a condition.

    The ticket, by which the subscription is read, renewed and ended, is shown and kept for `harken listen` and the
    other commands.

    With --file, all subscriptions of files. The options are defaults for fields that a subscription lacks; fields of
    other names become labels. A report goes to standard output, a JSON line for each.
    """
    if (where is None) is (not file):
        raise typer.BadParameter("give one of them", param_hint="TEXT or --file")
    if file and id is not None:
        raise typer.BadParameter("only for TEXT: subscriptions of files have their own ids", param_hint="--id")
    delivery = _delivery(webhook, webhook_secret, cloudevents, max_delay, throttle)
    given: dict[str, Any] = {
        "language": language,
        "owner": owner,
        "labels": _labels(label or []),
        "valid_for": seconds_option(valid_for, "--valid-for"),
        "delivery": delivery,
    }
    given = {name: value for name, value in given.items() if value not in (None, {})}
    with session(json, verbose) as screen, connected(server, api_key) as client:
        if where is not None:
            _show(screen, server, client.subscribe(where, id=id, **given))
            return
        _subscribe_files(screen, client, server, file or [], given, rejected, strict)


def _subscribe_files(
    screen: Screen,
    client: Client,
    server: str,
    files: list[str],
    given: dict[str, Any],
    rejected: str | None,
    strict: bool,
) -> None:
    from harken.cli.inputs import event_files
    from harken.cli.subscribing_files import subscribe_files
    from harken.cli.tickets import TicketFile

    named = event_files(files, None)
    try:
        summary = subscribe_files(client, named, given, rejected, screen)
    finally:
        if client.tickets:
            kept(lambda: TicketFile().keep(server, client.tickets))
    screen.aside(summary.to_dict(), str(summary))
    if not summary.accepted:
        raise typer.Exit(ExitCode.UNUSABLE)
    if strict and summary.rejected:
        raise typer.Exit(ExitCode.FAULTS)


def _show(screen: Screen, server: str, made: Ticketed) -> None:
    """Show the new subscription, and keep its ticket."""
    from harken.cli.tickets import TicketFile
    from harken.client.answers import in_text

    file = TicketFile()
    is_kept = kept(lambda: file.keep(server, {made.id: made.ticket}))
    for warning in made.warnings:
        screen.aside({"kind": "warning", "id": made.id, "message": warning}, f"! {printable(warning)}")
    secret = {} if made.webhook_secret is None else {"webhook_secret": made.webhook_secret}
    shown = {"id": made.id, "ticket": made.ticket, "expires_at": in_text(made.expires_at), **secret}
    if not screen.is_table:
        screen.line(shown)
        return
    shown["ticket"] += f"   (kept in {file.path})" if is_kept else ""
    screen.show("\n".join(f"{name.replace('_', ' '):<14} {value}" for name, value in shown.items()))


def _delivery(
    webhook: str | None, secret: str | None, cloudevents: bool, max_delay: str | None, throttle: str | None
) -> Delivery:
    delivery: Delivery = {}
    if webhook is not None:
        delivery["webhook"] = {"url": webhook} if secret is None else {"url": webhook, "secret": secret}
    if cloudevents:
        delivery["format"] = "cloudevents"
    delay = seconds_option(max_delay, "--max-delay")
    if delay is not None:
        delivery["max_delay"] = delay
    if throttle is not None:
        delivery["throttle"] = {"count": _throttle(throttle)[0], "seconds": _throttle(throttle)[1]}
    return delivery


def _throttle(text: str) -> tuple[int, float]:
    try:
        parts = _THROTTLE.fullmatch(text.strip())
        if parts is None:
            raise ValueError(f"{text!r} is not COUNT/TIME, such as 10/60 or 1/1h")
        return int(parts[1]), seconds_of(parts[2])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--throttle") from None


def _labels(given: list[str]) -> dict[str, str]:
    labels = {}
    for each in given:
        name, sign, text = each.partition("=")
        if not sign or not name:
            raise typer.BadParameter(f"{each!r} is not NAME=TEXT", param_hint="--label")
        labels[name] = text
    return labels
