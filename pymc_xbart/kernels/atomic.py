"""Whole numbers that several threads read and write at once (floor 0: NumPy and Numba only).

What a thread has written before it stores or adds to such a number, another that has read it sees.
Without Numba, whoever calls these is the only thread that does.
"""

import os
import platform
from typing import Any

import numpy as np
from numba import types
from numba.core.cgutils import ir  # type: ignore[attr-defined]
from numba.extending import intrinsic, overload

from pymc_xbart.kernels.decorator import inner_kernel

LINE = 8  # numbers in a cache line: neighbours in one would slow each other down
SPINS = 100  # turns of waiting, some microseconds, before others may have the processor


def make_numbers(size: int) -> np.ndarray:
    """Allocate numbers to share, all 0, (size, LINE): the first of each line is used."""
    return np.zeros((size, LINE), np.int64)


def load(numbers: Any, k: int) -> int:
    """Read number k."""
    return int(numbers[k, 0])


def store(numbers: Any, k: int, value: int) -> None:
    """Write number k."""
    numbers[k, 0] = value


def add(numbers: Any, k: int, value: int) -> int:
    """Add to number k, in one with reading it. Returns what it was before."""
    before = int(numbers[k, 0])
    numbers[k, 0] = before + value
    return before


@inner_kernel
def rest(turn):
    """Let some time pass, as a thread does that waits, counting its turns from 0."""
    if turn < SPINS:
        pause()
    else:
        give_way()


def pause() -> None:
    """Tell the processor that this thread has nothing to do for a moment."""


def give_way() -> None:
    """Let another thread have the processor, if one waits for it."""


# Numba calls what follows by its own signatures.


def _address(context, builder, array_type, array, k):
    data = context.make_array(array_type)(context, builder, array).data
    bytes_of_line = context.get_constant(types.intp, 8 * LINE)
    start = builder.ptrtoint(data, bytes_of_line.type)
    place = builder.add(start, builder.mul(k, bytes_of_line))
    return builder.inttoptr(place, data.type)


@intrinsic
def _load(_typing_context, numbers, _k):
    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments)
        return builder.load_atomic(address, "acquire", 8)

    return types.int64(numbers, types.intp), generate


@intrinsic
def _store(_typing_context, numbers, _k, _value):
    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments[:2])
        builder.store_atomic(arguments[2], address, "release", 8)
        return context.get_dummy_value()

    return types.void(numbers, types.intp, types.int64), generate


@intrinsic
def _add(_typing_context, numbers, _k, _value):
    def generate(context, builder, signature, arguments):
        address = _address(context, builder, signature.args[0], *arguments[:2])
        return builder.atomic_rmw("add", address, arguments[2], "acq_rel")

    return types.int64(numbers, types.intp, types.int64), generate


@overload(load)
def _load_of_compiled(numbers, k):  # noqa: ARG001
    return lambda numbers, k: _load(numbers, k)


@overload(store)
def _store_of_compiled(numbers, k, value):  # noqa: ARG001
    return lambda numbers, k, value: _store(numbers, k, value)


@overload(add)
def _add_of_compiled(numbers, k, value):  # noqa: ARG001
    return lambda numbers, k, value: _add(numbers, k, value)


@intrinsic
def _pause(_typing_context):
    def generate(context, builder, _signature, _arguments):
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", fnty=kind), [])
        return context.get_dummy_value()

    return types.void(), generate


@overload(pause)
def _pause_of_compiled():
    is_x86 = platform.machine().lower() in {"x86_64", "amd64"}
    return (lambda: _pause()) if is_x86 else (lambda: None)


_sched_yield = types.ExternalFunction("sched_yield", types.int32())


@overload(give_way)
def _give_way_of_compiled():
    # Without it, waiting takes time from other threads, and is right, too.
    return (lambda: _sched_yield()) if hasattr(os, "sched_yield") else (lambda: pause())
