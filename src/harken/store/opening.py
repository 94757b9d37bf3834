"""Open a store by its name: a path for SQLite, a URL for PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harken.databases.connection import is_postgres
from harken.errors import StoreError
from harken.store.database import StoreDatabase
from harken.store.migrations import migrate
from harken.store.sealing import Sealing
from harken.store.store import Store


def open_store(place: str, *, create: bool = True, secrets_keys: Sequence[str] = ()) -> Store:
    """Open the store at a path or URL, and bring its tables up to date. A new store is made if `create` is True.

    Secrets are encrypted with the first of `secrets_keys`, and decrypted with any of them. Raises StoreError, and
    ConfigError for an invalid key.
    """
    sealing = Sealing(secrets_keys)
    if is_postgres(place):
        from harken.store.postgres import PostgresDatabase

        return _migrated(PostgresDatabase(place), create, sealing, is_shared=True)
    if "://" in place:
        scheme = place.partition("://")[0]
        raise StoreError(f"`{scheme}` names no store", hint="write a path for SQLite, or postgresql://host/database")
    if not create and not Path(place).exists():
        raise StoreError(f"there is no store at {place}")
    if not Path(place).absolute().parent.is_dir():
        raise StoreError(f"there is no folder for the store {place}")
    if Path(place).is_dir():
        raise StoreError(f"the store {place} is a folder", hint=f"name a file in it: {Path(place) / 'harken.db'}")
    from harken.store.sqlite import SqliteDatabase

    return _migrated(SqliteDatabase(place), create, sealing, is_shared=False)


def _migrated(database: StoreDatabase, create: bool, sealing: Sealing, *, is_shared: bool) -> Store:
    try:
        migrate(database, create=create)
        return Store(database, is_shared=is_shared, sealing=sealing)
    except BaseException:
        database.close()
        raise
