"""Arrays that begin where a line of the cache does: 64 bytes that are read at once are then in one line, not two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LINE = 64


def aligned(size: int, kind: type[np.generic]) -> NDArray[Any]:
    """An array that is yet to be filled."""
    item = np.dtype(kind).itemsize
    room = np.empty(size * item + _LINE, np.uint8)
    begin = -room.ctypes.data % _LINE
    return room[begin : begin + size * item].view(kind)
