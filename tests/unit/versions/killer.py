"""A process that publishes versions to a folder, and is killed while it does: `python killer.py FOLDER`.

It reads commands, one a line, and answers each by a line:

    publish N       publish N versions; the answer is the last
    kill SECONDS    publish versions one after the other, in a child that is killed after so long
    step N          publish one version, in a child that ends before its N-th step that reaches the disk

The answer to `kill` and `step` is the last version that the child knows to be published, 0 if it came to none, and for
`step` whether the child came to its N-th step. Children are forked, so that nothing has to be imported anew.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from harken.kernels.checksum import checksum
from harken.versions.folder import Folder

NAMES = ("index", "ids", "texts")
_ROWS = 3_000
_STEPS = ("fsync", "replace", "unlink", "utime", "open")


def publish(folder: Folder) -> int:
    """Publish a version that has its number all over: a mixture of two would show."""
    with folder.publishing() as draft:
        for name in NAMES:
            draft.write(name, {"numbers": np.full(_ROWS, draft.version)}, {"number": draft.version})
        draft.meta["number"] = draft.version
    return draft.version


def check(folder: Folder) -> int:
    """The number of the present version, which must be whole."""
    contents = folder.open()
    assert contents.meta == {"number": contents.version}
    assert set(contents.files) == set(NAMES)
    for file in contents.files.values():
        assert file.meta == {"number": contents.version}
        assert (file.arrays["numbers"] == contents.version).all()
    return contents.version


def killed(folder: Folder, seconds: float) -> int:
    def forever(tell: Callable[[int], None]) -> None:
        while True:
            tell(publish(folder))

    child, answers = forked(forever)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    told, _ = waited(child, answers)
    return told


def ended_at(folder: Folder, step: int) -> tuple[int, bool]:
    def until_then(tell: Callable[[int], None]) -> None:
        left = step

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def instead(*args: Any, **more: Any) -> Any:
                nonlocal left
                left -= 1
                if not left:
                    os._exit(9)
                return function(*args, **more)

            return instead

        for name in _STEPS:
            setattr(os, name, counted(getattr(os, name)))
        tell(publish(folder))

    told, status = waited(*forked(until_then))
    assert os.waitstatus_to_exitcode(status) in (0, 9)
    return told, os.waitstatus_to_exitcode(status) == 9


def forked(work: Callable[[Callable[[int], None]], None]) -> tuple[int, int]:
    """A child that does the work, and a pipe with what it tells."""
    answers, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(lambda version: os.write(tell, struct.pack("<q", version)) and None)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(tell)
    return child, answers


def waited(child: int, answers: int) -> tuple[int, int]:
    _, status = os.waitpid(child, 0)
    told = b""
    while part := os.read(answers, 1 << 16):
        told += part
    os.close(answers)
    return struct.unpack("<q", told[-8:])[0] if told else 0, status


def main(path: str) -> None:
    folder = Folder(path)
    checksum(np.zeros(64, np.uint8))  # so that children need not load what is compiled
    for line in sys.stdin:
        command, argument = line.split()
        if command == "publish":
            for _ in range(int(argument)):
                answer = publish(folder)
            print(answer, flush=True)
        elif command == "kill":
            print(killed(folder, float(argument)), flush=True)
        else:
            print(*ended_at(folder, int(argument)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
