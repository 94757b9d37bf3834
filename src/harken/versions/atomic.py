"""Files and folders that appear whole or not at all, even if the writer is killed."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from harken.errors import SourceError


@contextmanager
def replacing(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a file that replaces the one at the path when the block ends; an error leaves the old file and no trace.

    The old file is not written to, because others may have it mapped. A power cut leaves the old or the new file; with
    `durable`, the new file survives one once the block has ended. Raises OSError.
    """
    scratch = beside(path)
    try:
        with scratch.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(scratch, path)
    except BaseException:
        with suppress(OSError):
            scratch.unlink()
        raise
    if durable:
        sync_folder(path.parent)


@contextmanager
def output_file(path: str) -> Iterator[BinaryIO]:
    """Open an output file that a user named, as `replacing` does. Follows links and writes to pipes.

    Raises SourceError for any OSError but BrokenPipeError.
    """
    target = Path(os.path.realpath(path))
    try:
        is_special = target.exists() and not target.is_file()  # a named pipe; a directory fails to open
        with target.open("wb") if is_special else replacing(target) as stream:
            yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def placing_folder(place: Path) -> Iterator[Path]:
    """Yield a path where the block creates a folder, which is moved to `place` at the end; an error leaves no trace.

    Raises OSError if `place` is a folder that is not empty.
    """
    scratch = beside(place)
    try:
        yield scratch
        scratch.rename(place)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def remove_folder(place: Path) -> None:
    """Remove a folder if it exists. It is renamed first, so that no reader sees a part of it."""
    scratch = beside(place)
    with suppress(FileNotFoundError):
        place.rename(scratch)
    shutil.rmtree(scratch, ignore_errors=True)


def sync_folder(path: Path) -> None:
    """Flush the entries of a folder to disk."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def beside(path: Path) -> Path:
    """A unique hidden name in the same folder, for files that are unfinished or being removed."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
