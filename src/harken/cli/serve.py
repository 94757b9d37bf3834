"""`harken serve`: run the match server, on SQLite or PostgreSQL."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
from contextlib import suppress
from types import FrameType
from typing import Annotated

import typer

from harken.cli.command_session import session
from harken.cli.exits import ExitCode
from harken.cli.options import Json, SchemaFile, Verbose
from harken.cli.screen import Screen, printable
from harken.errors import ConfigError, HarkenError, SourceError

EXAMPLES = """\b
Examples:
  harken serve
  harken serve --port 8080 --store harken.db
  harken serve --host 0.0.0.0 --allowed-host rules.example.org --api-keys
  harken serve --store postgresql://user@host/db
  curl localhost:8080/subscriptions -d '{"where": "price < 5"}'
"""
_BACKLOG = 4_096
"""At most this many connections wait to be accepted."""
_MOST_UNSENT = 1 << 17
"""At most this many unsent bytes are buffered by the system for one client."""


_StoreOption = Annotated[
    str,
    typer.Option(
        metavar="STORE", envvar="HARKEN_STORE", help="A file for SQLite, or a postgresql:// URL.", show_envvar=True
    ),
]
_SnapshotOption = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="Where the index is saved.  [default: beside the store]")
]
_ApiKeysOption = Annotated[bool, typer.Option("--api-keys", help="Require API keys: `harken key` makes the first.")]
_SecretsKeyOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Keys that encrypt the secrets of webhooks in the store: the first encrypts, all decrypt.  "
        "[default: those in HARKEN_SECRETS_KEY]",
    ),
]
_OperatorsOption = Annotated[
    list[str] | None,
    typer.Option(metavar="MODULE:NAME", help="Operators that subscriptions may call. Repeatable."),
]
_SettingOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A limit or period: `--set help` lists them."),
]
_AllowWebhooksToOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NETWORK", help="A private network that webhooks may be in, as 10.0.0.0/8."),
]
_CorsOption = Annotated[list[str] | None, typer.Option(metavar="ORIGIN", help="An origin whose pages may use the API.")]
_AllowedHostOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        envvar="HARKEN_ALLOWED_HOSTS",
        show_envvar=True,
        help="A name or address in the URLs of clients, as rules.example.org, or * for any. "
        "Needed unless only this machine can reach the server.",
    ),
]


def serve(
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="The port to listen on.")] = 8080,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    store: _StoreOption = "harken.db",
    snapshot: _SnapshotOption = None,
    schema: SchemaFile = None,
    api_keys: _ApiKeysOption = False,
    secrets_key: _SecretsKeyOption = None,
    operators: _OperatorsOption = None,
    setting: _SettingOption = None,
    allow_webhooks_to: _AllowWebhooksToOption = None,
    cors: _CorsOption = None,
    allowed_host: _AllowedHostOption = None,
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Serve subscriptions, events and notifications over HTTP.

    There is a page to look at them, too. Everything that was answered with 2xx is on disk. On Ctrl-C or SIGTERM the
    server finishes running requests and stops.
    """
    with session(json, verbose) as screen:
        from harken.server.configuring import describe_settings, secrets_keys, settings_of
        from harken.server.host_names import is_loopback

        if setting and "help" in setting:
            screen.show(describe_settings())
            return
        names = tuple(allowed_host or ())
        if is_loopback(host):
            names = (*names, host)
        elif not names:
            hint = "--allowed-host NAME for each name in the clients' URLs; '*' takes any, also that of a hostile page"
            raise ConfigError(f"other machines can reach {host}: the allowed names are missing", hint=hint)
        settings = settings_of(
            setting or (),
            store=store,
            snapshot=snapshot,
            schema=schema,
            secrets_keys=secrets_keys(secrets_key, os.environ),
            api_keys=api_keys,
            operators=tuple(operators or ()),
            webhook_networks=tuple(allow_webhooks_to or ()),
            cors_origins=tuple(cors or ()),
            allowed_hosts=names,
        )
        _run(screen, settings, host, port, verbose)


def _run(screen: Screen, settings: object, host: str, port: int, verbose: int) -> None:
    import uvicorn

    from harken.server.app import create_app
    from harken.server.connections import protocol_for
    from harken.server.logs import log_to_standard_error
    from harken.server.settings import ServerSettings

    assert isinstance(settings, ServerSettings)
    os.umask(0o077)  # the store, and the lock and the index beside it, are for their owner alone
    level = logging.DEBUG if verbose > 1 else logging.INFO if verbose or screen.json else logging.WARNING
    log_to_standard_error(as_json=screen.json, level=level)
    app = create_app(settings)
    service = app.state.service

    class Server(uvicorn.Server):
        """On a signal, ends the service's streams first: uvicorn waits for them, and they never end by themselves."""

        ended_by: int | None = None

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            self.ended_by = sig
            service.reject_more()
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        app,
        http=protocol_for(settings),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=math.ceil(settings.keep_alive),
        timeout_graceful_shutdown=math.ceil(settings.drain_timeout),
        backlog=_BACKLOG,
    )
    _allow_many_connections()
    with _listening(host, port) as listener:
        _bound_silent_clients(listener, settings.stream_timeout)
        place = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        screen.aside({"kind": "serving", "url": place}, f"Harken listens on {printable(place)}; Ctrl-C stops it.")
        server = Server(config)
        try:
            server.run(sockets=[listener])
            # uvicorn raises the signal again inside its loop, where asyncio may only cancel what has ended by then; and
            # a process started to ignore the signal, as by `&` in a script, would not stop.
            if server.ended_by == signal.SIGINT:
                raise KeyboardInterrupt
            if server.ended_by is not None:
                raise typer.Exit(ExitCode.TERMINATED)
        finally:
            if service.problem is not None:
                raise HarkenError(service.problem)


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket. Raises SourceError if the port is taken, or the address is not one of this machine."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = error if error.errno is None else os.strerror(error.errno)
        raise SourceError(f"cannot listen on {host}, port {port}: {reason}") from None


def _bound_silent_clients(listener: socket.socket, seconds: float) -> None:
    """Limit what the system buffers for clients that do not read, and drop their connections after `seconds`.

    Closing a connection instead would wait until its client has read everything.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, math.ceil(seconds * 1_000))
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _MOST_UNSENT)


def _allow_many_connections() -> None:
    """Raise the limit of open files to the highest that is allowed: every stream is one."""
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
