"""Named tuples of arrays that go to a kernel as one array of words.

Passing an array to a kernel takes about 0.2 µs, and an index has some seventy. Frozen, they are addresses and shapes,
written once; the kernel thaws them. Code that freezes a tuple must keep its arrays alive and in place.
"""

from __future__ import annotations

from functools import cache, reduce
from typing import Any, TypeVar, get_args, get_type_hints

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np import arrayobj

from harken.kernels.compile import IS_PLAIN

_Item = TypeVar("_Item", bound=np.generic)
Grid = np.ndarray[tuple[int, int], np.dtype[_Item]]
"""An array of rows and columns. A field of a tuple that is frozen is a Grid, an NDArray (of one dimension), an int or
another tuple."""


def frozen(given: Any) -> Any:
    """A named tuple as words: of each array its address and its shape. Without compilation, the tuple itself."""
    if IS_PLAIN:
        return given
    words: list[int] = []
    _freeze(given, words)
    return np.array(words, np.int64)


def thawing(kind: type, *names: str) -> Any:
    """A function for kernels that makes a named tuple of this kind from its words. It holds no references to arrays.

    With names it makes only one of its fields, or a field of that, and so on: the less is thawed, the less is compiled.
    """
    if IS_PLAIN:
        return lambda given: reduce(getattr, names, given)
    field, first = _place(kind, names)
    thawed_type = _type_of(field)

    @intrinsic
    def thawed(typing: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
            places = iter(range(first, 1 << 30))
            return _thaw(context, builder, thawed_type, lambda: builder.load(cgutils.gep(builder, data, next(places))))

        return thawed_type(words), generate

    return thawed


def freezing(item: Any) -> Any:
    """A function for kernels that writes the words of an array: of one dimension, with these items, without gaps.

    It takes a tenth of the time that `frozen` does: for tuples that are frozen often.
    """
    wanted = types.Array(numba.from_dtype(np.dtype(item)), 1, "C")

    @intrinsic
    def written(typing: Any, words: Any, at: Any, array: Any) -> Any:
        if not isinstance(array, types.Array) or (array.dtype, array.ndim, array.layout) != (wanted.dtype, 1, "C"):
            raise TypingError(f"{array} where {wanted} is expected")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            target = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
            given = cgutils.create_struct_proxy(signature.args[2])(context, builder, args[2])
            place = builder.gep(target, [args[1]])
            builder.store(builder.ptrtoint(given.data, context.get_value_type(types.int64)), place)
            builder.store(given.nitems, builder.gep(place, [context.get_constant(types.intp, 1)]))
            return context.get_dummy_value()

        return types.void(words, types.int64, array), generate

    return written


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
    """A value of this type, read from the next words."""
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


def _place(field: Any, names: tuple[str, ...]) -> tuple[Any, int]:
    """The field that the names lead to, and the first of its words."""
    first = 0
    for name in names:
        for each, inner in zip(field._fields, _fields(field), strict=True):
            if each == name:
                field = inner
                break
            first += _words(inner)
    return field, first


def _words(field: Any) -> int:
    """The number of words that a field takes."""
    if field is int:
        return 1
    return sum(map(_words, _fields(field))) if isinstance(field, type) else 1 + field[1]


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
