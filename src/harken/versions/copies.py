"""Local copies of remote folders, one per machine: one process copies, the others wait, and all map the same files.

A copy is named after the fingerprint of its folder's manifest.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from harken.errors import HarkenError, SegmentError
from harken.versions.atomic import placing_folder, remove_folder
from harken.versions.folder import fingerprint_of
from harken.versions.locks import locked

CACHE = "HARKEN_CACHE"
"""Environment variable with the folder for copies; default: the folder for temporary files."""
_DAY = 86_400
_COPY = re.compile(r"[0-9a-f]{32}")
_UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.[0-9a-f]{8}(\.tmp)?")
"""Names of copies whose process was killed while making or removing them."""


def copied(fingerprint: str, source: str, fetch: Callable[[Path], None], again: bool = False) -> Path:
    """The local copy of a folder. Fetches it if there is none, if its manifest differs, or on request.

    `source` goes into the log of copies.
    """
    cache = _cache()
    place = cache / fingerprint
    with locked(cache / f"{fingerprint}.lock") as log:
        if again or fingerprint_of(place) != fingerprint:
            _remove_old(cache)
            try:
                with placing_folder(place) as unfinished:
                    fetch(unfinished)
                    remove_folder(place)
                log.write(f"{datetime.now(UTC).isoformat()} copied by process {os.getpid()} from {source}\n")
            except OSError as error:
                raise SegmentError(f"the index cannot be copied to {cache}: {error.strerror or error}") from error
        os.utime(place)
    return place


def _cache() -> Path:
    """The folder of this user's copies. Nothing outside it is ever removed."""
    cache = Path(os.environ.get(CACHE) or tempfile.gettempdir()) / f"harken-{os.getuid()}"
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.mkdir(mode=0o700, exist_ok=True)
        if cache.stat().st_uid != os.getuid():
            raise PermissionError(f"{cache} belongs to another user")
    except OSError as error:
        hint = f"set {CACHE} to a folder that can be written to"
        raise HarkenError(f"copies of an index cannot be stored: {error}", hint=hint) from error
    return cache


def _remove_old(cache: Path) -> None:
    """Remove copies that were not opened for a day. Processes that have them mapped can keep using them."""
    for each in cache.iterdir():
        with suppress(OSError):
            if each.is_dir() and each.stat().st_mtime < time.time() - _DAY:
                if _COPY.fullmatch(each.name):
                    remove_folder(each)
                elif _UNFINISHED.fullmatch(each.name):
                    shutil.rmtree(each, ignore_errors=True)
