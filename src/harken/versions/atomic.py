"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from harken.errors import SourceError


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A file that takes the path's place when all went well, and leaves no trace if not. Raises SourceError."""
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:  # a named pipe is written to, not replaced; a directory is refused
                yield stream
            return
        scratch = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            with scratch.open("xb") as stream:
                yield stream
                _settle(stream)
            scratch.replace(target)
        finally:
            scratch.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror or error}") from error


def _settle(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())
