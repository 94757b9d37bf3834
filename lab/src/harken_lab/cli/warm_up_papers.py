"""`harken warm-up-papers`: compile the kernels of the papers' algorithms in advance."""

from __future__ import annotations

from harken.cli.command_session import session
from harken.cli.options import Json, Verbose
from harken.cli.warm_up import warming

EXAMPLES = "Example: harken warm-up-papers"


def warm_up_papers(json: Json = False, verbose: Verbose = 0) -> None:
    """Compile the kernels of the papers' algorithms in advance.

    They are kept on disk. It takes about a minute. `harken warm-up` does the same for the default algorithm.
    """
    with session(json, verbose) as screen:
        from harken_lab.papers.warming import KERNELS
        from harken_lab.papers.warming import warm_up_papers as rehearse

        warming(screen, rehearse, KERNELS)
