"""Inner kernels as parts of the kernels that call them (floor 0: NumPy and Numba only).

Numba compiles a function completely, down to machine code, before it compiles one that calls it,
and then once more as part of that one. With inner kernels called by inner kernels, ten levels deep,
most of the time went into code that nobody runs. A part stops half-way: LLVM gets to know it, and
optimises and translates it only within a kernel that can be called from Python.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

# What a `Part` overrides or calls is no public interface. Where a Numba has it no more, inner
# kernels are compiled as all functions are, which takes twice as long and is right, too.
IS_KNOWN = all(
    hasattr(JITCodeLibrary, name)
    for name in (
        "_optimize_final_module",
        "_finalize_final_module",
        "_finalize_dynamic_globals",
        "_ensure_finalized",
        "get_pointer_to_function",
    )
)


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


class PartCompiler(Compiler):
    """Numba's compiler, with a `Part` to put code into."""

    def define_pipelines(self) -> Any:
        """Return Numba's own passes."""
        state = self.state
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()
