"""Intrinsics for the processor's vector unit, as LLVM's own vectors, which work on any processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_ROWS = 64
_LANES = 16
_BOOLEAN, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (1, 16, 32, 64))
_WIDE = ir.VectorType(_I32, _LANES)


def _data(context: Any, builder: Any, array_type: Any, array: Any, at: Any) -> Any:
    """A pointer to the element `at` of an array or behind a pointer. Taking it does not count a reference."""
    if isinstance(array_type, types.CPointer):
        return builder.gep(array, [at])
    return builder.gep(cgutils.create_struct_proxy(array_type)(context, builder, array).data, [at])


def _tested(test: Callable[[Any, Any, Any, Any], Any]) -> Any:
    """A test of one code against two columns of bounds, 64 rows at a time: a bit for each row that passes.

    `test` gets a builder, the code in every lane, and the rows' two bounds, all as wide as the columns' elements.
    """

    @intrinsic
    def tested(typing: Any, columns: Any, first_at: Any, second_at: Any, code: Any) -> Any:
        bits = columns.dtype.bitwidth
        vector = ir.VectorType(ir.IntType(bits), _ROWS)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def loaded(at: Any) -> Any:
                pointer = _data(context, builder, signature.args[0], args[0], at)
                return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=bits // 8)

            element = builder.trunc(args[3], vector.element)
            first = builder.insert_element(ir.Constant(vector, ir.Undefined), element, ir.Constant(_I64, 0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), _ROWS), [0] * _ROWS)
            spread = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)
            return builder.bitcast(test(builder, spread, loaded(args[1]), loaded(args[2])), _I64)

        return types.uint64(columns, types.int64, types.int64, types.uint64), generate

    return tested


def _is_within(builder: Any, code: Any, low: Any, span: Any) -> Any:
    return builder.icmp_unsigned("<=", builder.sub(code, low), span)


def _is_unlike(builder: Any, code: Any, other: Any, _: Any) -> Any:
    return builder.icmp_unsigned("!=", code, other)


def _is_below(builder: Any, code: Any, bound: Any, _: Any) -> Any:
    return builder.icmp_unsigned("<", bound, code)


def _is_at_an_end(builder: Any, code: Any, low: Any, span: Any) -> Any:
    return builder.or_(
        builder.icmp_unsigned("==", code, low), builder.icmp_unsigned("==", builder.sub(code, low), span)
    )


def _is_admitted(builder: Any, code: Any, end: Any, _: Any) -> Any:
    is_from = builder.trunc(end, ir.VectorType(_BOOLEAN, _ROWS))
    return builder.xor(builder.icmp_unsigned("<=", code, end), is_from)


def _is_level(builder: Any, code: Any, end: Any, _: Any) -> Any:
    one = ir.Constant(code.type, [1] * _ROWS)
    return builder.icmp_unsigned("==", builder.or_(code, one), builder.or_(end, one))


@intrinsic
def trailing_zeros(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(_BOOLEAN, 1))

    return types.int64(types.uint64), generate


@intrinsic
def ones(typing: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


def _compress(builder: Any, values: Any, chosen: Any) -> Any:
    """Move the chosen ones of 16 values to the front."""
    kind = ir.FunctionType(values.type, [values.type, chosen.type, values.type])
    compress = cgutils.get_or_insert_function(builder.module, kind, "llvm.experimental.vector.compress.v16i32")
    return builder.call(compress, [values, chosen, ir.Constant(values.type, ir.Undefined)])


def _write_ids(builder: Any, source: Any, bits: Any, target: Any) -> Any:
    """Write those of the 16 ids at the source whose bits are set. Returns their number."""
    loaded = builder.load(builder.bitcast(source, _WIDE.as_pointer()), align=4)
    packed = _compress(builder, loaded, builder.bitcast(bits, ir.VectorType(_BOOLEAN, _LANES)))
    builder.store(packed, builder.bitcast(target, _WIDE.as_pointer()), align=4)
    return builder.zext(builder.ctpop(bits), _I64)


@intrinsic
def compressed(typing: Any, ids: Any, at: Any, word: Any, out: Any, end: Any) -> Any:
    """Write the ids of the word's bits, four vectors of 16; up to 64 elements behind `end` may be overwritten."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        position = args[4]
        for lane in range(0, _ROWS, _LANES):
            bits = builder.trunc(builder.lshr(args[2], ir.Constant(_I64, lane)), _I16)
            source = _data(context, builder, signature.args[0], args[0], builder.add(args[1], ir.Constant(_I64, lane)))
            target = _data(context, builder, signature.args[3], args[3], position)
            position = builder.add(position, _write_ids(builder, source, bits, target))
        return position

    return types.int64(ids, types.int64, types.uint64, out, types.int64), generate


@intrinsic
def compressed_piece(typing: Any, ids: Any, at: Any, piece: Any, out: Any, end: Any) -> Any:
    """Write the ids of a piece's 16 lowest bits; up to 16 elements behind `end` may be overwritten."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = _data(context, builder, signature.args[0], args[0], args[1])
        target = _data(context, builder, signature.args[3], args[3], args[4])
        return builder.add(args[4], _write_ids(builder, source, builder.trunc(args[2], _I16), target))

    return types.int64(ids, types.int64, types.uint32, out, types.int64), generate


@intrinsic
def compressed_pieces(typing: Any, words: Any, number: Any, pieces: Any, end: Any) -> Any:
    """Write the pieces of words[:8] that are not empty, two vectors of 16; up to 32 elements may be overwritten."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nothing = ir.Constant(_WIDE, [0] * _LANES)
        number = builder.shl(builder.trunc(args[1], _I32), ir.Constant(_I32, _LANES))
        first = builder.insert_element(ir.Constant(_WIDE, ir.Undefined), number, ir.Constant(_I32, 0))
        numbers = builder.shuffle_vector(first, ir.Constant(_WIDE, ir.Undefined), nothing)
        position = args[3]
        for half in range(2):
            source = _data(context, builder, signature.args[0], args[0], ir.Constant(_I64, 4 * half))
            narrow = builder.load(builder.bitcast(source, ir.VectorType(_I16, _LANES).as_pointer()), align=8)
            bits = builder.zext(narrow, _WIDE)
            steps = ir.Constant(_WIDE, [half * _LANES + lane << _LANES for lane in range(_LANES)])
            some = builder.icmp_unsigned("!=", bits, nothing)
            packed = _compress(builder, builder.or_(bits, builder.add(numbers, steps)), some)
            target = _data(context, builder, signature.args[2], args[2], position)
            builder.store(packed, builder.bitcast(target, _WIDE.as_pointer()), align=4)
            kept = builder.ctpop(builder.bitcast(some, _I16))
            position = builder.add(position, builder.zext(kept, _I64))
        return position

    return types.int64(words, types.int64, pieces, types.int64), generate


@intrinsic
def borrowed(typing: Any, array: Any) -> Any:
    """The same array without its owner, so that no reference is counted when it is handed on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        proxy = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0])
        proxy.meminfo = cgutils.get_null_value(proxy.meminfo.type)
        proxy.parent = cgutils.get_null_value(proxy.parent.type)
        return proxy._getvalue()

    return array(array), generate


@intrinsic
def pointer(typing: Any, array: Any) -> Any:
    """A pointer to the first element of an array, which the caller keeps alive.

    Access through a pointer is a few instructions for Numba to compile, not some thirty as for an array, and counts no
    references. A pointer has no size and no negative indices.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), generate


@intrinsic
def row_pointer(typing: Any, array: Any, row: Any) -> Any:
    """A pointer to the first element of a row of an array in C order."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        proxy = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0])
        columns = cgutils.unpack_tuple(builder, proxy.shape, 2)[1]
        return builder.gep(proxy.data, [builder.mul(args[1], columns)])

    return types.CPointer(array.dtype)(array, types.int64), generate


@intrinsic
def and_bitmaps(
    typing: Any, words: Any, bitmaps: Any, places: Any, columns: Any, chosen: Any, begin: Any, end: Any
) -> Any:
    """words[:8] &= bitmaps[at:at + 8] for each at = places[j] + chosen[columns[j]], j in begin:end.

    Returns how many bits are left. The loop is written out because the eight words then stay in one register.
    """
    vector = ir.VectorType(_I64, 8)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def element(array: int, at: Any) -> Any:
            return _data(context, builder, signature.args[array], args[array], at)

        target = builder.bitcast(element(0, ir.Constant(_I64, 0)), vector.as_pointer())
        combined = cgutils.alloca_once_value(builder, builder.load(target, align=8))
        with cgutils.for_range_slice(builder, args[5], args[6], ir.Constant(_I64, 1), _I64) as (at, _):
            column = builder.zext(builder.load(element(3, at)), _I64)
            choice = builder.zext(builder.load(element(4, column)), _I64)
            place = builder.add(builder.load(element(2, at)), choice)
            bitmap = builder.load(builder.bitcast(element(1, place), vector.as_pointer()), align=8)
            builder.store(builder.and_(builder.load(combined), bitmap), combined)
        result = builder.load(combined)
        builder.store(result, target, align=8)
        count = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector]), "llvm.ctpop.v8i64")
        total = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_I64, [vector]), "llvm.vector.reduce.add.v8i64"
        )
        return builder.call(total, [builder.call(count, [result])])

    return types.int64(words, bitmaps, places, columns, chosen, types.int64, types.int64), generate


def _prefetch(locality: int) -> Any:
    @intrinsic
    def prefetch(typing: Any, array: Any, at: Any) -> Any:
        """Prefetch the line of array[at], which may lie beyond the array."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _data(context, builder, signature.args[0], args[0], args[1])
            place = ir.PointerType(ir.IntType(8))
            kind = ir.FunctionType(ir.VoidType(), [place, *[_I32] * 3])
            fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            reads, keep, data = (ir.Constant(_I32, value) for value in (0, locality, 1))
            builder.call(fetch, [builder.bitcast(pointer, place), reads, keep, data])
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

    return prefetch


@intrinsic
def stream_line(typing: Any, source: Any, at: Any, target: Any, to: Any) -> Any:
    """target[to:to + 16] = source[at:at + 16], past the cache. The target has to be at the start of a line."""
    vector = ir.VectorType(ir.IntType(32), _LANES)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        begin = _data(context, builder, signature.args[0], args[0], args[1])
        end = _data(context, builder, signature.args[2], args[2], args[3])
        loaded = builder.load(builder.bitcast(begin, vector.as_pointer()), align=4)
        stored = builder.store(loaded, builder.bitcast(end, vector.as_pointer()), align=4 * _LANES)
        stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64), generate


def _copy(bits: int) -> Any:
    @intrinsic
    def copy(typing: Any, source: Any, at: Any, target: Any, to: Any) -> Any:
        """target[to:to + 16] = source[at:at + 16], wherever they lie."""
        vector = ir.VectorType(ir.IntType(bits), _LANES)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            begin = _data(context, builder, signature.args[0], args[0], args[1])
            end = _data(context, builder, signature.args[2], args[2], args[3])
            loaded = builder.load(builder.bitcast(begin, vector.as_pointer()), align=bits // 8)
            builder.store(loaded, builder.bitcast(end, vector.as_pointer()), align=bits // 8)
            return context.get_dummy_value()

        return types.void(source, types.int64, target, types.int64), generate

    return copy


@intrinsic
def line_offset(typing: Any, array: Any, at: Any) -> Any:
    """The distance of array[at] from the start of its line, in elements of four bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = builder.ptrtoint(_data(context, builder, signature.args[0], args[0], args[1]), _I64)
        return builder.and_(builder.lshr(address, ir.Constant(_I64, 2)), ir.Constant(_I64, _LANES - 1))

    return types.int64(array, types.int64), generate


@intrinsic
def fill_block(typing: Any, words: Any) -> Any:
    """Set all bits of words[:8]."""
    vector = ir.VectorType(_I64, 8)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = _data(context, builder, signature.args[0], args[0], ir.Constant(_I64, 0))
        builder.store(ir.Constant(vector, [-1] * 8), builder.bitcast(target, vector.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(words), generate


def can_compress() -> bool:
    """Whether this LLVM knows how to compress a vector (19 and later), and this processor does it in one step."""
    return binding.llvm_version_info[0] >= 19 and bool(binding.get_host_cpu_features().get("avx512f"))


within, unlike, below = _tested(_is_within), _tested(_is_unlike), _tested(_is_below)
at_an_end, admitted_by_end, level_with_end = _tested(_is_at_an_end), _tested(_is_admitted), _tested(_is_level)
copy_16, copy_line = _copy(8), _copy(32)
prefetch_read, prefetch_later = _prefetch(3), _prefetch(2)
"""Prefetch into the first-level cache, to be read at once; into the second, to be read soon."""
