"""`harken key`: API keys of a store. No server is needed, so that the first one can be made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from harken.cli.command_session import session
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen, printable
from harken.errors import InvalidValueError, UnknownIdError

if TYPE_CHECKING:
    from rich.table import Table

    from harken.store import ApiKey, Store

EXAMPLES = """\b
Examples:
  harken key create --owner me --scope admin
  harken key create --owner shop --scope publish --name "the till"
  harken key list --store postgresql://user@host/db
  harken key remove 9f86d081884c
"""
_LONGEST = 200


class Scope(StrEnum):
    """What a key allows."""

    publish = "publish"
    subscribe = "subscribe"
    admin = "admin"


StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="STORE",
        envvar="HARKEN_STORE",
        help="A file for SQLite, or a postgresql:// URL.",
        show_envvar=True,
    ),
]

app = typer.Typer(
    name="key",
    help="Make, list and remove the API keys of a store.",
    rich_markup_mode=None,
    no_args_is_help=True,
    epilog=EXAMPLES,
)


@app.command(epilog="Example: harken key create --owner me --scope admin")
def create(
    owner: Annotated[str, typer.Option(metavar="NAME", help="The owner of the key.", show_default=False)],
    scope: Annotated[
        list[Scope],
        typer.Option(metavar="SCOPE", help="publish, subscribe or admin. Repeatable.", show_default=False),
    ],
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="A name for people to know the key by.")] = None,
    store: StoreOption = "harken.db",
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Make a key, and print it: it is not shown again.

    A running server with --api-keys accepts it within seconds.
    """
    with session(json, verbose) as screen:
        from harken.server.api_keys import made_key, shown_key
        from harken.server.credentials import hashed

        for text in (owner, name or owner):
            if not text or len(text) > _LONGEST or not text.isprintable():
                raise InvalidValueError(f"owner and name have 1 to {_LONGEST} characters that can be printed")
        with _opened(store, create=True) as opened:
            key, word = made_key(owner, [each.value for each in scope], name)
            with opened.writing() as writing:
                writing.add_key(key, hashed(word))
        if json:
            screen.line({**shown_key(key), "key": word})
        else:
            screen.aside(
                {}, f"key {key.id} for {owner}: {', '.join(sorted(key.scopes))}. Keep it: it is not shown again."
            )
            screen.show(word)


@app.command("list", epilog="Example: harken key list --json")
def list_keys(store: StoreOption = "harken.db", json: Json = False, verbose: Verbose = 0) -> None:
    """List the keys by id, owner and scopes. The keys themselves are not kept."""
    with session(json, verbose) as screen, _opened(store) as opened:
        _show(screen, opened.keys())


@app.command(epilog="Example: harken key remove 9f86d081884c")
def remove(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Keys, by their ids.", show_default=False)],
    store: StoreOption = "harken.db",
    json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Remove keys. A running server rejects them within seconds."""
    with session(json, verbose) as screen, _opened(store) as opened:
        keys = opened.keys()
        unknown = set(ids) - {each.id for each in keys}
        if unknown:
            raise UnknownIdError(f"there is no key {min(unknown)!r:.40}", hint="`harken key list` lists them")
        with opened.writing() as writing:
            for id in ids:
                writing.remove_key(id)
        for id in ids:
            screen.aside({"kind": "removed", "id": id}, f"{printable(id)} is removed")


@contextmanager
def _opened(place: str, *, create: bool = False) -> Iterator[Store]:
    """The store at a place. Raises StoreError."""
    from harken.store import open_store

    with closing(open_store(place, create=create)) as store:
        yield store


def _show(screen: Screen, keys: list[ApiKey]) -> None:
    from harken.server.api_keys import shown_key

    if screen.json:
        for each in keys:
            screen.line(shown_key(each))
    elif keys:
        screen.show(_table(keys), wrap=True)
    else:
        screen.aside({}, "there are no keys")


def _table(keys: list[ApiKey]) -> Table:
    from rich import box
    from rich.table import Table

    from harken.server.api_keys import shown_key

    table = Table("id", "owner", "scopes", "name", "created", box=box.SIMPLE_HEAD)
    for each in map(shown_key, keys):
        name = printable(each["name"] or "")
        table.add_row(each["id"], printable(each["owner"]), " ".join(each["scopes"]), name, each["created_at"][:16])
    return table
