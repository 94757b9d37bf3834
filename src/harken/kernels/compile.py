"""How kernels are compiled: the flags stand here, once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from pickle import PickleError
from typing import Any

import numba

_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
IS_PLAIN: bool = getattr(numba.config, "DISABLE_JIT", 0) != 0
"""Whether kernels run as Python, as NUMBA_DISABLE_JIT=1 asks."""
_SOURCES = sorted(Path(__file__).parent.glob("*.py"))


def kernel(function: Callable[..., Any]) -> Any:
    """Compile to machine code at the first call, and keep it on disk; other threads run meanwhile."""
    if IS_PLAIN:
        return function
    try:
        compiled = numba.njit(cache=True, **_FLAGS)(function)
    except RuntimeError:  # nowhere to keep it: neither the package's folder nor the user's can be written
        return numba.njit(**_FLAGS)(function)
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
