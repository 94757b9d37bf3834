"""How kernels are compiled and kept, with one set of flags.

A kernel is compiled when it is first called, and kept on disk: beside the package, in the user's cache, or where
NUMBA_CACHE_DIR says. Where neither can be written, kernels are kept in a private folder for temporary files. Of several
processes that need a kernel one compiles it.
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
from numba.core.compiler_lock import global_compiler_lock

from harken.kernels.announcing import Announcer
from harken.kernels.compile_lock import CompileLock

_FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False, "no_cfunc_wrapper": True}
IS_PLAIN: bool = getattr(numba.config, "DISABLE_JIT", 0) != 0
"""Whether kernels run as Python, as NUMBA_DISABLE_JIT=1 asks."""
_NAMED: str = getattr(numba.config, "CACHE_DIR", "")
"""The folder in NUMBA_CACHE_DIR, or ''."""
_SOURCES = sorted(Path(__file__).parent.rglob("*.py"))

log = logging.getLogger(__name__)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call, and keep the machine code on disk. It runs without the GIL."""
    return _compiled(function, _FLAGS)


def _compiled(function: Callable[..., Any], flags: dict[str, Any]) -> Any:
    if IS_PLAIN:
        return function
    try:
        compiled = numba.njit(cache=True, **flags)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        folder = _private_folder()
        if folder is None:
            return numba.njit(**flags)(function)
        setattr(numba.config, "CACHE_DIR", str(folder))  # noqa: B010 - Numba makes its settings at run time
        compiled = numba.njit(cache=True, **flags)(function)
    kept: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if kept is not None:
        _date(kept)
        _forget_unreadable(kept)
        _compile_once(compiled, compiled._cache)
    return compiled


def inner(function: Callable[..., Any]) -> Any:
    """A kernel that only other kernels call.

    It has no entry for Python, which takes long to compile where there are many arrays to hand over.
    """
    compiled = _compiled(function, {**_FLAGS, "no_cpython_wrapper": True})
    if IS_PLAIN:
        return compiled

    def reject(*given: Any, **named: Any) -> Any:
        raise TypeError(f"{function.__name__} is an inner kernel: only kernels can call it")

    # Without this, Numba would call an entry that is not there.
    compiled._insert = lambda *given, **named: None
    compiled._compile_for_args = reject
    return compiled


def compiled_for(kernel: Any, signature: Any) -> Any:
    """The compiled kernel for arguments of these types, compiled now unless it is kept."""
    kernel.compile(signature)
    return kernel.overloads[signature.args]


def inlined(function: Callable[..., Any]) -> Any:
    """A function whose code becomes part of each kernel that calls it.

    A call between kernels counts references to each array that it hands on, unless LLVM sees that it need not.
    """
    return function if IS_PLAIN else numba.njit(inline="always", **_FLAGS)(function)


def _private_folder() -> Path | None:
    """A temporary folder that only this user can access, or None: machine code is loaded from it."""
    folder = Path(tempfile.gettempdir(), f"harken-kernels-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if is_private and os.access(folder, os.W_OK) else None


def _folder_of(compiled: Any) -> str | None:
    """Where the machine code of a kernel is kept."""
    folder: str | None = getattr(getattr(compiled, "_cache", None), "cache_path", None)
    return folder


def kept_in() -> str | None:
    """The folder in which kernels are kept, or None if there is none that can be written."""
    from harken.kernels.checksum import sum_of_mixtures

    return _folder_of(sum_of_mixtures)


_lock = CompileLock()
_announcer = Announcer(kept_in, _lock)
event.register("numba:compile", _announcer)


def compiling_silently(watcher: Callable[[int], None] | None = None) -> None:
    """Do not announce compilation: for callers that do it themselves, or that have no user to tell.

    `watcher` is called after each compiled kernel, with the number that this process has compiled so far.
    """
    _announcer.is_silent = True
    _announcer.watcher = watcher


def _compile_once(compiled: Any, cache: Any) -> None:
    """Compile this kernel in one process at a time: others wait, and then read what is kept.

    If NUMBA_CACHE_DIR is read-only, its kernels are used, and only the others are kept in another folder.
    """
    compile, load, save = compiled.compile, cache.load_overload, cache.save_overload
    writable, read_only = cache._cache_file, _read_only(cache)

    def load_kept(signature: Any, context: Any) -> Any:
        if read_only is not None:
            cache._cache_file = read_only
            try:
                kept = load(signature, context)
            finally:
                cache._cache_file = writable
            if kept is not None:
                return kept
        return load(signature, context)

    def load_overload(signature: Any, context: Any) -> Any:
        kept = load_kept(signature, context)
        if kept is None:
            folder = _shared_folder(compiled)
            if _lock.take(folder):
                kept = load_kept(signature, context)
            is_first = read_only is None and not any(Path(folder).glob("*.nbi"))
            _announcer.kernel_is_missing(kept is None and is_first)
        return kept

    def save_overload(signature: Any, overload: Any) -> None:
        try:
            save(signature, overload)
        except OSError as error:  # a full disk, or a folder that is gone: the next process compiles the kernel again
            log.debug("%s is not kept: %s", compiled.py_func.__qualname__, error)

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock, _lock.released_after():
            return compile(signature)

    cache.load_overload, cache.save_overload, compiled.compile = load_overload, save_overload, compile_once


def _read_only(cache: Any) -> Any:
    """The cache file of a kernel in NUMBA_CACHE_DIR, if Numba uses another folder because that one is read-only."""
    if not _NAMED or Path(cache.cache_path).is_relative_to(_NAMED):
        return None
    locator = cache._impl.locator
    source = getattr(locator, "_py_file", None)
    if source is None:
        return None
    folder = Path(_NAMED, locator.get_suitable_cache_subpath(source))
    if not folder.is_dir():
        return None
    file = type(cache._cache_file)(str(folder), cache._impl.filename_base, None)
    _date(file)
    _forget_unreadable(file)
    return file


def _shared_folder(compiled: Any) -> str:
    """The folder of the lock: one for all kernels of Harken, wherever they are kept."""
    is_ours = compiled.py_func.__module__.startswith(f"{__package__}.")
    return (kept_in() if is_ours else None) or compiled._cache.cache_path


def _date(kept: Any) -> None:
    """Give a cache file the stamp of all kernels' sources.

    Numba stamps it by the kernel's own source, but its machine code holds the kernels that it calls as well.
    """
    if hasattr(kept, "_source_stamp"):
        kept._source_stamp = _STAMP


def _forget_unreadable(kept: Any) -> None:
    """Treat a cache file that cannot be read as empty, as after an upgrade that moved a type that it names."""
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
    files = [source.stat() for source in _SOURCES]
    return max(each.st_mtime for each in files), sum(each.st_size for each in files)


_STAMP = _stamp()
