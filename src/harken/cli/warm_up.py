"""`harken warm-up`: compile the kernels before they are needed."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from harken.cli.command_session import session
from harken.cli.options import Json, Verbose
from harken.cli.screen import Screen


def warm_up(json: Json = False, verbose: Verbose = 0) -> None:
    """Compile the kernels of matching, once, and keep them on disk.

    It takes about a minute. Otherwise each kernel is compiled when it is first needed. Run it when an image is built.
    The compiled kernels are kept beside the installed package or, if that cannot be written, in the user's cache
    folder; NUMBA_CACHE_DIR names another folder, for this command and for later matching. They fit this kind of
    processor only.
    """
    with session(json, verbose) as screen:
        from harken.rehearsal import kernels
        from harken.rehearsal import warm_up as rehearse

        warming(screen, rehearse, kernels())


def warming(screen: Screen, rehearse: Callable[[Callable[[str], None]], int], kernels: int) -> None:
    """Call `rehearse`, which compiles about `kernels` kernels, and show the progress and where they are kept."""
    from harken.kernels.compile import compiling_silently, kept_in

    started = perf_counter()
    with screen.progress("compiling kernels", kernels) as advance:
        compiling_silently(lambda count: advance(1))
        rehearse(lambda step: screen.aside({"kind": "step", "step": step}, f"warming up {step}"))
    seconds, folder = round(perf_counter() - started, 1), kept_in()
    where = f"kept in {folder}" if folder else "kept nowhere: set NUMBA_CACHE_DIR to a folder that can be written"
    screen.aside({"kind": "summary", "seconds": seconds, "folder": folder}, f"done in {seconds} s, {where}")
