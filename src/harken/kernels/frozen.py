"""Named tuples of arrays that go to a kernel as one array of words.

A kernel takes about 0.2 µs for each array that it is handed, and an index has some seventy. Frozen, they are addresses
and shapes, written once; the kernel thaws them. Whoever freezes a tuple keeps its arrays alive and where they are.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

from harken.kernels.compile import IS_PLAIN

_Item = TypeVar("_Item", bound=np.generic)
Grid = np.ndarray[tuple[int, int], np.dtype[_Item]]
"""An array of rows and columns. A field of a tuple that is frozen is a Grid, an NDArray (of one dimension), an int or
another tuple."""


def frozen(given: Any) -> Any:
    """A named tuple as words: of each array its address and its shape. Without compilation it stays as it is."""
    if IS_PLAIN:
        return given
    words: list[int] = []
    _freeze(given, words)
    return np.array(words, np.int64)


def thawing(kind: type) -> Any:
    """A function for kernels that makes a named tuple of this kind from its words. It holds no references to arrays."""
    if IS_PLAIN:
        return lambda given: given
    thawed_type = _type_of(kind)

    @intrinsic
    def thawed(typing: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
            places = iter(range(1 << 30))
            return _thaw(context, builder, thawed_type, lambda: builder.load(cgutils.gep(builder, data, next(places))))

        return thawed_type(words), generate

    return thawed


def _freeze(given: Any, words: list[int]) -> None:
    kind: Any = type(given)
    for value, field in zip(given, _fields(kind), strict=True):
        if isinstance(value, np.ndarray):
            if (value.dtype, value.ndim) != field or not value.flags.c_contiguous:
                raise TypeError(f"{kind.__name__} has {value.ndim} × {value.dtype} where {field} is expected")
            words += (value.__array_interface__["data"][0], *value.shape)
        elif isinstance(value, tuple):
            _freeze(value, words)
        else:
            words.append(int(value))


def _thaw(context: Any, builder: Any, kind: Any, following: Any) -> Any:
    """What the next words tell, as a value of this type."""
    if isinstance(kind, types.NamedTuple):
        return context.make_tuple(builder, kind, [_thaw(context, builder, each, following) for each in kind.types])
    if not isinstance(kind, types.Array):
        return following()
    array = context.make_array(kind)(context, builder)
    data = builder.inttoptr(following(), array.data.type)
    shape = [following() for _ in range(kind.ndim)]
    item = context.get_constant(types.intp, kind.dtype.bitwidth // 8 if kind.dtype != types.boolean else 1)
    strides = [item]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=item, meminfo=None)
    return array._getvalue()


@cache
def _fields(kind: type) -> list[Any]:
    """The fields of a named tuple: a type or, of an array, its items and its dimensions."""
    return [_array(hint) if get_args(hint) else hint for hint in get_type_hints(kind).values()]


def _array(hint: Any) -> tuple[np.dtype[Any], int]:
    alias = getattr(hint, "__value__", None)  # NDArray is a `type` statement's alias from NumPy 2.5 on
    shape, item = get_args(hint if alias is None else alias[get_args(hint)])
    return np.dtype(get_args(item)[0]), 2 if get_args(shape) == (int, int) else 1


def _type_of(field: Any) -> Any:
    """The type that Numba has for a field, or for a named tuple."""
    if field is int:
        return types.int64
    if isinstance(field, type):
        return types.NamedTuple([_type_of(each) for each in _fields(field)], field)
    item, dimensions = field
    return types.Array(numba.from_dtype(item), dimensions, "C")
