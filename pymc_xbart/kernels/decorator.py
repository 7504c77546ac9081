"""The one way a kernel is compiled (floor 0: NumPy and Numba only)."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from pymc_xbart.kernels import compiler
from pymc_xbart.kernels.cache import belong_to_version

# No fastmath: it assumes that infinities do not occur, and here -inf is the log-weight of what is
# forbidden. nogil, so that chains in threads of one process don't wait for each other. No wrapper
# for C, since nobody takes the address of a kernel. Without a word on inlining, a kernel would take
# over what `inlined_kernel` asks for one that calls it.
OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,
    "forceinline": False,
}

# Type of array positions in loops over rows. With a signed one Numba must ask each time whether it
# counts from the end, which triples the time of adding a row to its bucket.
POSITION_DTYPE = np.uint64


def kernel(function: Callable) -> Any:
    """Compile `function` with Numba, and keep the machine code on disk where that is possible.

    Numba raises at decoration, that is at import, when neither the package's folder nor the user's
    cache folder can be written (read-only installations, containers without a home). Compiling anew
    in each process is then slow but right.
    """
    options = _compiled_by(compiler.KernelCompiler)
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "locator" not in str(error):
            raise
        return numba.njit(**options)(function)
    belong_to_version(compiled)
    return compiled


def inner_kernel(function: Callable) -> Callable:
    """Compile a function that only other kernels call.

    It does without the code that takes arguments from Python and hands results back, which for
    records of arrays costs more to compile than most kernels themselves. Called from Python, it
    raises TypeError. (With `NUMBA_DISABLE_JIT=1` it is the plain function.) Nor is it translated to
    machine code, or kept on disk, by itself: the kernels that call it contain it, see `compiler`.

    It only borrows the arrays that it is given: Numba would count references to each of them, in
    every call, which in small nodes took two thirds of the time. So it may neither allocate arrays
    (Numba refuses to compile that) nor return them to kernels that count (see `returning_kernel`).
    """
    return _compile_inner(function, _nrt=False)


def returning_kernel(function: Callable) -> Callable:
    """Compile an inner kernel that allocates arrays, or returns some."""
    return _compile_inner(function)


def inlined_kernel(function: Callable) -> Callable:
    """Compile an inner kernel that becomes part of every kernel that calls it.

    For one that is called in few places, but often: handing over records of arrays, dozens of
    numbers each, can take longer than what is done with them.
    """
    return _compile_inner(function, _nrt=False, forceinline=True)


def separate_kernel(function: Callable) -> Callable:
    """Compile an inner kernel that never becomes part of those that call it.

    For a loop over rows that takes all registers of a processor: within a large kernel LLVM finds
    none free, and then reads where its arrays are from memory, row by row.
    """
    return _compile_inner(function, compiler.SeparatePartCompiler, _nrt=False)


def contracting_kernel(function: Callable) -> Callable:
    """Compile an inner kernel in which a product and a sum may be rounded once instead of twice.

    Many processors have one instruction for both. Infinities and NaN are what they are elsewhere.
    """
    return _compile_inner(function, _nrt=False, fastmath={"contract"})


def _compile_inner(function: Callable, own: type = compiler.PartCompiler, **more: Any) -> Callable:
    options = _compiled_by(own) | {"no_cpython_wrapper": True} | more
    compiled: Any = numba.njit(**options)(function)
    if compiled is not function:
        compiled.__class__ = _inner_class(type(compiled))
    return compiled


def _compiled_by(own: type) -> dict[str, Any]:
    return OPTIONS | ({"pipeline_class": own} if compiler.IS_KNOWN else {})


def _inner_class(dispatcher: type) -> type:
    """Class of dispatchers that refuse calls from Python: Numba would follow a null pointer."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ARG001
        msg = f"{self.__name__} is an inner kernel: only other kernels can call it."
        raise TypeError(msg)

    return type("InnerKernel", (dispatcher,), {"__call__": refuse})
