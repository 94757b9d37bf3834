"""How kernels are compiled and kept: the flags stand here, once.

A kernel is compiled when it is first called, and kept on disk: beside the package, in the user's cache, or where
NUMBA_CACHE_DIR says. Where neither can be written, kernels are kept in a private folder for temporary files.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from pickle import PickleError
from typing import Any

import numba
from numba.core import event

_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False, "no_cfunc_wrapper": True}
IS_PLAIN: bool = getattr(numba.config, "DISABLE_JIT", 0) != 0
"""Whether kernels run as Python, as NUMBA_DISABLE_JIT=1 asks."""
_SOURCES = sorted(Path(__file__).parent.rglob("*.py"))
log = logging.getLogger(__name__)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile to machine code at the first call, and keep it on disk; other threads run meanwhile."""
    if IS_PLAIN:
        return function
    try:
        compiled = numba.njit(cache=True, **_FLAGS)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        folder = _private_folder()
        if folder is None:
            return numba.njit(**_FLAGS)(function)
        setattr(numba.config, "CACHE_DIR", str(folder))  # noqa: B010 - Numba makes its settings at run time
        compiled = numba.njit(cache=True, **_FLAGS)(function)
    kept: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if kept is not None:
        _date(kept)
        _forget_unreadable(kept)
    return compiled


def inlined(function: Callable[..., Any]) -> Any:
    """A part of a kernel: its code becomes part of each kernel that calls it, as if it stood there.

    A call between kernels counts references to each array that it hands on, unless LLVM sees that it need not.
    """
    return function if IS_PLAIN else numba.njit(inline="always", **_FLAGS)(function)


def _private_folder() -> Path | None:
    """A folder for temporary files that belongs to this user alone, or None: machine code is read from it."""
    folder = Path(tempfile.gettempdir(), f"harken-kernels-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    is_private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return folder if is_private and os.access(folder, os.W_OK) else None


class _Announcer(event.Listener):
    """Says, once a process, that kernels are being compiled: it takes long enough to look like a hang."""

    def __init__(self) -> None:
        self.is_silent = False

    def on_start(self, started: Any) -> None:
        compiled = started.data["dispatcher"]
        if self.is_silent or not compiled.py_func.__module__.startswith(__package__):
            return
        self.is_silent = True
        where = _folder_of(compiled)
        if where is None:
            log.warning(
                "compiling kernels for this processor, each when it is first needed: two minutes in all, in every "
                "process, because there is no folder to keep them in. Set NUMBA_CACHE_DIR to one that can be written."
            )
        else:
            log.warning(
                "compiling kernels for this processor, each when it is first needed: two minutes in all. They are "
                "kept in %s. `harken warm-up` compiles all of them beforehand.",
                where,
            )

    def on_end(self, ended: Any) -> None:
        pass


_announcer = _Announcer()
event.register("numba:compile", _announcer)


def _folder_of(compiled: Any) -> str | None:
    """Where the machine code of a kernel is kept."""
    folder: str | None = getattr(getattr(compiled, "_cache", None), "cache_path", None)
    return folder


def kept_in() -> str | None:
    """The folder in which kernels are kept, or None if there is none that can be written."""
    from harken.kernels.checksum import sum_of_mixtures

    return _folder_of(sum_of_mixtures)


def compiling_silently() -> None:
    """Do not say that kernels are being compiled: who calls this says so in its own words."""
    _announcer.is_silent = True


def _date(kept: Any) -> None:
    """Let what is kept on disk be as old as the youngest kernel.

    Numba goes by the file that a kernel stands in, but machine code holds the kernels that it calls as well.
    """
    if hasattr(kept, "_source_stamp"):
        kept._source_stamp = _STAMP


def _forget_unreadable(kept: Any) -> None:
    """Compile anew where what is kept cannot be read, as after an upgrade that moved a type which it names."""
    load = getattr(kept, "_load_index", None)
    if load is None:
        return

    def load_index() -> Any:
        try:
            return load()
        except (AttributeError, EOFError, ImportError, IndexError, TypeError, ValueError, PickleError):
            return {}

    kept._load_index = load_index


def _stamp() -> tuple[float, int]:
    found = [source.stat() for source in _SOURCES]
    return max(each.st_mtime for each in found), sum(each.st_size for each in found)


_STAMP = _stamp()
