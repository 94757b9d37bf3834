"""Exit codes.

0    all went well
1    the input has faults: with `check`, or with `--strict` if anything was rejected
2    wrong usage: an option or the name of an algorithm
3    a file or a server cannot be used, or nothing in the input can be
70   an internal error, which is a bug
130  stopped by Ctrl-C
141  the reader of our output went away, as with `| head`
143  stopped by a signal to terminate
"""

from __future__ import annotations

from enum import IntEnum

from harken.errors import CapabilityError, HarkenError, MissingExtraError


class ExitCode(IntEnum):
    """The codes, as the module's docstring describes them."""

    OK = 0
    FAULTS = 1
    USAGE = 2
    UNUSABLE = 3
    INTERNAL = 70
    INTERRUPTED = 130
    CLOSED_PIPE = 141
    TERMINATED = 143


# \b keeps the lines as they are.
EXIT_CODES = """\b
Exit codes:
  0    all went well
  1    the input has faults (check; or with --strict)
  2    wrong usage
  3    a file or a server cannot be used, or nothing in the input can be
  70   an internal error, which is a bug
  130  stopped by Ctrl-C
  141  the reader of our output went away, as with | head
  143  stopped by a signal to terminate

\b
Example:
  harken match events.jsonl --subscriptions subscriptions.jsonl
"""


def code_of(error: HarkenError) -> ExitCode:
    """The exit code for an error that ends a command."""
    return ExitCode.USAGE if isinstance(error, CapabilityError | MissingExtraError) else ExitCode.UNUSABLE
