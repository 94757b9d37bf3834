"""The saved index of a server, which the next start loads if it is complete and matches the store's change log."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from harken.engine import Engine
from harken.errors import HarkenError
from harken.server.settings import ServerSettings
from harken.store import Store
from harken.versions.atomic import replacing

log = logging.getLogger(__name__)


class SavedSnapshot:
    """A folder with a version of the index, and beside it a mark file with the version, its store and its last change.

    The mark also has the process that made the change: a store that was restored from a backup may get other changes
    with the same numbers.
    """

    def __init__(self, store: Store, settings: ServerSettings) -> None:
        self._store = store
        self._operators = settings.operators
        self._folder = _folder(store, settings)
        self._mark = self._folder.with_name(f"{self._folder.name}.json")

    def load(self) -> Engine | None:
        """Load the saved index; None if there is none that can be used."""
        if not self._folder.is_dir():
            return None
        began = time.perf_counter()
        try:
            engine = Engine.load(self._folder, operators=self._operators)
            is_ours = self._is_ours(engine)
        except (HarkenError, OSError, ValueError, LookupError, TypeError) as error:
            log.warning("the snapshot in %s cannot be used: %s", self._folder, error)
            return None
        if not is_ours:
            log.warning("the snapshot in %s is not of this store, or too old: the index is rebuilt", self._folder)
            self._discard()
            return None
        log.info("%s subscriptions loaded in %.2f s", f"{len(engine):,}", time.perf_counter() - began)
        return engine

    def save(self, engine: Engine, sequence: int) -> None:
        """Save an index that has all changes up to `sequence`. Raises HarkenError and OSError."""
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        if engine.version is None:
            self._discard()
        origin = self._store.origin_of(sequence)
        version = engine.save(self._folder)
        # If the process ends before this, the version has no mark and is not used.
        mark = {"store": self._store.name, "version": version, "sequence": sequence, "origin": origin}
        with replacing(self._mark) as stream:
            stream.write(json.dumps(mark).encode())

    def _is_ours(self, engine: Engine) -> bool:
        """Whether the store's log has the last change of the index, made by the same process, and all later changes."""
        mark: dict[str, Any] = json.loads(self._mark.read_bytes())
        return (
            mark["store"] == self._store.name
            and mark["version"] == engine.version
            and engine.sequence is not None
            and mark["sequence"] <= engine.sequence
            and mark["origin"] == self._store.origin_of(mark["sequence"])
            and self._store.changes(engine.sequence, 1) is not None
        )

    def _discard(self) -> None:
        """Remove the snapshot. If kept, a restored log could reach its sequence number later with other changes."""
        with suppress(OSError):
            self._mark.unlink()
        if self._folder.exists():
            shutil.rmtree(self._folder, ignore_errors=True)


def _folder(store: Store, settings: ServerSettings) -> Path:
    """The folder for snapshots of this store."""
    if settings.snapshot is not None:
        root = Path(settings.snapshot)
    elif store.is_shared:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        root = Path(cache) / "harken"
    else:
        root = Path(f"{settings.store}.index")
    return root / hashlib.sha256(store.name.encode()).hexdigest()[:16]
