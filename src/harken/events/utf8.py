"""Arrow strings as one array of bytes, with offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


def utf8_of(strings: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of an Arrow array of strings, and the offset of each string, with the end of the last."""
    import numpy as np
    import pyarrow as pa

    _, offsets, data = strings.buffers()
    width: type[np.signedinteger[Any]] = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    if offsets is None or not len(strings):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    places = np.frombuffer(offsets, width)[strings.offset : strings.offset + len(strings) + 1]
    return np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8), places
