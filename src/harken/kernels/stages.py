"""Stages of a search: kernels that another kernel calls by their address.

Numba optimises and emits a kernel again within each kernel that calls it by name. A stage is compiled once, by itself,
and only when an index needs it: one without pools never compiles what searches them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from harken.kernels.compile import IS_PLAIN, compiled_for, kernel
from harken.kernels.frozen import freezing, frozen

_WORDS = types.Array(types.int64, 1, "C")
_SIGNATURE = signature(
    types.int64,
    *(_WORDS, _WORDS, _WORDS),
    types.Array(types.uint32, 2, "C"),
    types.Array(types.int32, 1, "C"),
    *(types.int64, types.int64),
)
"""Every stage takes its arrays, the deleted slots and the batch, all frozen; codes; room for ids; the first event, and
the number of events."""


class Batch(NamedTuple):
    """Events, and where their ids go."""

    has_value: NDArray[np.bool_]
    """By column: whether any event may have a value there."""
    skipped: NDArray[np.bool_]
    reserved: NDArray[np.int64]
    """By event: the number of places in front of its ids to fill later."""
    offsets: NDArray[np.int64]
    """Where each event's ids end. One more than there are events: the first is where the first event's ids begin."""
    candidates: NDArray[np.int64]
    """By event: the slots examined."""


_write_flags, _write_numbers = freezing(np.bool_), freezing(np.int64)


def frozen_batch(batch: Batch) -> Any:
    """A batch as words, as `frozen` makes them."""
    if IS_PLAIN:
        return batch
    words = np.empty(2 * len(batch), np.int64)
    _freeze_batch(*batch, words)
    return words


@kernel
def _freeze_batch(has_value, skipped, reserved, offsets, candidates, words):
    _write_flags(words, 0, has_value)
    _write_flags(words, 2, skipped)
    _write_numbers(words, 4, reserved)
    _write_numbers(words, 6, offsets)
    _write_numbers(words, 8, candidates)


class Stage(NamedTuple):
    """A kernel, and its arrays in an index."""

    address: int
    """0 if the index does not need this stage."""
    words: NDArray[np.int64]
    """A frozen named tuple, whose arrays the maker of the stage keeps alive."""


NO_STAGE = Stage(0, np.empty(0, np.int64))


def stage(step: Any, needed: Any) -> Stage:
    """A stage, compiled now unless it is kept. Without compilation its address is the kernel itself."""
    if IS_PLAIN:
        return Stage(step, needed)
    compiled = compiled_for(step, _SIGNATURE)
    return Stage(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name), frozen(needed))


@intrinsic
def _call_stage(
    typing: Any, stage: Any, deleted: Any, batch: Any, codes: Any, out: Any, first: Any, events: Any
) -> Any:
    """Call a stage."""

    def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
        convention = context.call_conv
        address, words = cgutils.unpack_tuple(builder, args[0], len(Stage._fields))
        pointer = builder.inttoptr(address, convention.get_function_type(types.int64, _SIGNATURE.args).as_pointer())
        status, result = convention.call_function(builder, pointer, types.int64, _SIGNATURE.args, [words, *args[1:]])
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return result

    return types.int64(stage, *_SIGNATURE.args[1:]), generate


def _call_plain(stage: Any, *given: Any) -> Any:
    return stage.address(stage.words, *given)


call_stage = _call_plain if IS_PLAIN else _call_stage
