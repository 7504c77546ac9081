"""Numba's compiler, without what it would do in vain (floor 0: NumPy and Numba only).

Four things together halve the time in which the kernels of a sweep are compiled:

Numba compiles a function completely, down to machine code, before it compiles one that calls it,
and then once more as part of that one. With inner kernels called by inner kernels, ten levels deep,
most of the time went into code that nobody runs. A `Part` stops half-way: LLVM gets to know it, and
optimises and translates it only within a kernel that can be called from Python.

For each use of a built-in function, Numba looks up a dozen candidates by the options that it
compiles with, and each time collects all of these one by one. `QuickFlags` compares those that are
set.

Two of Numba's passes look for closures and for arithmetic on whole arrays, of which kernels have
none (`NOT_NEEDED`).

Compiling makes millions of objects that refer to each other, and hardly any garbage. Python's
collector would look through all of them, and through PyMC's, again and again.

One more thing lets kernels run faster, on small nodes by a tenth. Nobody but the kernel that
contains a part can call it, which LLVM is told (`Whole`). So it leaves out what a part does not
need of its arguments, most of the seven numbers by which an array is handed over, and copies a part
that is called in one place to there.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import PassManager

# What is overridden or called here is no public interface. Where a Numba has it no more, kernels
# are compiled as all functions are, which takes longer and is right, too.
IS_KNOWN = (
    all(
        hasattr(JITCodeLibrary, name)
        for name in (
            "_optimize_final_module",
            "_finalize_final_module",
            "_finalize_dynamic_globals",
            "_ensure_finalized",
            "get_pointer_to_function",
            "add_ir_module",
            "enable_object_caching",
        )
    )
    and hasattr(Compiler, "compile_extra")
    and hasattr(Flags(), "_values")
    and hasattr(PassManager("any"), "passes")
)

# Names of passes that find nothing in a kernel. A kernel with closures would not compile without
# the first. Without the second, arithmetic on whole arrays would make an array for each operation.
NOT_NEEDED = {"InlineClosureLikes", "NopythonRewrites"}


class QuickFlags(Flags):
    """Options of the compiler, found quickly among others."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(frozenset(self._values))  # names of options; nearly all of them are the same

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuickFlags) and self._values == other._values


class Part(JITCodeLibrary):
    """Code of one function that is never run by itself.

    Overrides what Numba does to a function once those that it calls are linked to it.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
        """Return a null pointer: there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """Who stores the address of Python objects in machine code: here, nobody needs to."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing, see `codegen`."""

    def names(self) -> set[str]:
        """Return the names of all functions that it has, and of those that they call."""
        return {function.name for function in self._final_module.functions}


class SeparatePart(Part):
    """Code of one function that LLVM shall not copy into those that call it."""

    def add_ir_module(self, module: Any) -> None:
        """Take over what Numba has made of a function."""
        for function in module.functions:
            if not function.is_declaration:
                function.attributes.add("noinline")
        super().add_ir_module(module)


class Whole(JITCodeLibrary):
    """Code of a function that can be called from Python, with all parts that it calls."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.enable_object_caching()  # as Numba does with its own

    def _optimize_final_module(self) -> None:
        parts = [each for each in self._linking_libraries if isinstance(each, Part)]
        names = set().union(*(part.names() for part in parts))
        for function in self._final_module.functions:
            if function.name in names and not function.is_declaration:
                function.linkage = "internal"
        super()._optimize_final_module()


class KernelCompiler(Compiler):
    """Compiler of kernels that can be called from Python."""

    library: type[JITCodeLibrary] = Whole

    def compile_extra(self, func: Any) -> Any:
        """Compile a function."""
        self.state.flags = QuickFlags(self.state.flags)
        with _without_collector():
            return super().compile_extra(func)

    def define_pipelines(self) -> Any:
        """Return Numba's own passes, as far as they are needed."""
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            passes = pipeline.passes
            pipeline.passes = [each for each in passes if each[0].__name__ not in NOT_NEEDED]
        return pipelines


class PartCompiler(KernelCompiler):
    """Compiler of inner kernels."""

    library = Part


class SeparatePartCompiler(KernelCompiler):
    """Compiler of inner kernels that stay functions of their own."""

    library = SeparatePart


@contextmanager
def _without_collector() -> Iterator[None]:
    if not gc.isenabled():  # a user's choice, or a kernel within another one
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
