"""What a child of `fork()` finds of locks that other threads held."""

from __future__ import annotations

import os
import threading

import pytest

from harken.concurrency.forking import MATCHER, fork_lock
from harken.kernels import stages  # noqa: F401 -- with it come Numba and LLVM


def _locks() -> dict[str, object]:
    from llvmlite.binding import ffi
    from numba.core.compiler_lock import global_compiler_lock

    return {"ours": fork_lock(MATCHER), "compiler": global_compiler_lock, "llvm": ffi.lib._lock._lock}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", ["ours", "compiler", "llvm"])
def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have(name: str) -> None:
    lock = _locks()[name]
    is_held, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:  # type: ignore[attr-defined]
            is_held.set()
            may_go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    threading.Timer(0.2, may_go.set).start()
    child = os.fork()
    if child == 0:
        is_free = threading.Event()

        def take() -> None:
            with lock:  # type: ignore[attr-defined]
                is_free.set()

        threading.Thread(target=take, daemon=True).start()
        os._exit(0 if is_free.wait(30) else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
