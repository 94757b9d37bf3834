"""Reads text 32 bytes at a time, as vectors; with NUMBA_DISABLE_JIT=1, byte by byte.

Callers make sure that 32 bytes are there.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from harken.kernels.compile import IS_PLAIN

WIDTH = 32
HAS_RETURN, HAS_HIGH, HAS_CONTROL = 1 << 16, 1 << 17, 1 << 18
"""Bits of a tally: some byte is a carriage return, is not ASCII, or is a control character that XML does not have."""

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_VECTOR, _MASK = ir.VectorType(_BYTE, WIDTH), ir.IntType(WIDTH)


def _at(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    """The address of 32 bytes of an array."""
    data = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())


def _loaded(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    return builder.load(_at(context, builder, array_type, array, at), align=1)


def _splat(byte: int) -> Any:
    return ir.Constant(_VECTOR, [ir.Constant(_BYTE, byte)] * WIDTH)


def _is_one_of(builder: Any, chunk: Any, sought: bytes) -> Any:
    """A bit for each byte: whether it is one of those sought."""
    mask: Any = None
    for byte in sought:
        is_equal = builder.icmp_unsigned("==", chunk, _splat(byte))
        mask = is_equal if mask is None else builder.or_(mask, is_equal)
    return builder.bitcast(mask, _MASK)


def _first_bit(builder: Any, mask: Any) -> Any:
    wide = builder.or_(builder.zext(mask, _WORD), ir.Constant(_WORD, 1 << WIDTH))
    return builder.cttz(wide, ir.Constant(ir.IntType(1), 1))


def finder(sought: bytes) -> Any:
    """A function for kernels: the number of bytes, of 32 at a place, before the first that is one of those sought."""
    if IS_PLAIN:
        return lambda data, at: next((place for place in range(WIDTH) if data[at + place] in sought), WIDTH)

    @intrinsic
    def bytes_before(typing: Any, data: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            chunk = _loaded(context, builder, signature.args[0], args[0], args[1])
            return _first_bit(builder, _is_one_of(builder, chunk, sought))

        return types.int64(data, types.int64), generate

    return bytes_before


@intrinsic
def _same_bytes(typing: Any, left: Any, at: Any, right: Any, other: Any) -> Any:
    """The number of equal bytes at two places before the first difference, at most 32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        one = _loaded(context, builder, signature.args[0], args[0], args[1])
        two = _loaded(context, builder, signature.args[2], args[2], args[3])
        return _first_bit(builder, builder.bitcast(builder.icmp_unsigned("!=", one, two), _MASK))

    return types.int64(left, types.int64, right, types.int64), generate


@intrinsic
def _copy_bytes(typing: Any, source: Any, at: Any, target: Any, to: Any) -> Any:
    """Copy 32 bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chunk = _loaded(context, builder, signature.args[0], args[0], args[1])
        builder.store(chunk, _at(context, builder, signature.args[2], args[2], args[3]), align=1)
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), generate


@intrinsic
def _tally(typing: Any, data: Any, at: Any) -> Any:
    """The number of `<` in 32 bytes, plus 256 times the number of `=`, and the HAS_ bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chunk = _loaded(context, builder, signature.args[0], args[0], args[1])

        def count(sought: bytes) -> Any:
            return builder.zext(builder.ctpop(_is_one_of(builder, chunk, sought)), _WORD)

        def flag(mask: Any, bit: int) -> Any:
            is_there = builder.icmp_unsigned("!=", mask, ir.Constant(_MASK, 0))
            return builder.select(is_there, ir.Constant(_WORD, bit), ir.Constant(_WORD, 0))

        controls = builder.bitcast(builder.icmp_unsigned("<", chunk, _splat(32)), _MASK)
        allowed = _is_one_of(builder, chunk, b"\t\n\r")
        parts = [
            builder.shl(count(b"="), ir.Constant(_WORD, 8)),
            flag(_is_one_of(builder, chunk, b"\r"), HAS_RETURN),
            flag(builder.bitcast(builder.icmp_unsigned(">=", chunk, _splat(128)), _MASK), HAS_HIGH),
            flag(builder.and_(controls, builder.not_(allowed)), HAS_CONTROL),
        ]
        answer = count(b"<")
        for part in parts:
            answer = builder.or_(answer, part)
        return answer

    return types.int64(data, types.int64), generate


def _same_bytes_plain(left: Any, at: int, right: Any, other: int) -> int:
    return next((place for place in range(WIDTH) if left[at + place] != right[other + place]), WIDTH)


def _copy_bytes_plain(source: Any, at: int, target: Any, to: int) -> None:
    target[to : to + WIDTH] = source[at : at + WIDTH]


def _tally_plain(data: Any, at: int) -> int:
    chunk = bytes(data[at : at + WIDTH])
    controls = any(byte < 32 and byte not in b"\t\n\r" for byte in chunk)
    flags = (b"\r" in chunk) * HAS_RETURN | (not chunk.isascii()) * HAS_HIGH | controls * HAS_CONTROL
    return chunk.count(b"<") | chunk.count(b"=") << 8 | flags


same_bytes = _same_bytes_plain if IS_PLAIN else _same_bytes
copy_bytes = _copy_bytes_plain if IS_PLAIN else _copy_bytes
tally = _tally_plain if IS_PLAIN else _tally
