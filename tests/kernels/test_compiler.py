import gc
import re

import numba
import pytest
from numba.core import typed_passes, untyped_passes

from pymc_xbart.kernels import compiler
from pymc_xbart.kernels.decorator import inner_kernel, kernel, separate_kernel

compiled = pytest.mark.skipif(
    numba.config.DISABLE_JIT, reason="without JIT there is nothing to compile"
)


@compiled
def test_this_numba_has_what_is_overridden():
    assert compiler.IS_KNOWN
    known = {
        each.__name__
        for each in (*vars(untyped_passes).values(), *vars(typed_passes).values())
        if isinstance(each, type)
    }
    assert known >= compiler.NOT_NEEDED


@compiled
def test_flags_are_found_by_what_is_set():
    flags = [compiler.QuickFlags() for _ in range(3)]
    for each, is_set in zip(flags, (True, True, False), strict=True):
        each.nrt = is_set
    same, again, other = flags
    assert same == again == same.copy()
    assert hash(same) == hash(again)
    assert same != other
    assert same != compiler.Flags(same)  # made by other means, so looked up by other means


@compiled
@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_collector_rests_while_a_kernel_is_compiled(is_enabled):
    states = []

    def seen_by_the_compiler():
        raise NotImplementedError

    @numba.extending.overload(seen_by_the_compiler)
    def type_it():
        states.append(gc.isenabled())
        return lambda: None

    was_enabled = gc.isenabled()
    try:
        (gc.enable if is_enabled else gc.disable)()
        numba.njit(pipeline_class=compiler.KernelCompiler)(lambda: seen_by_the_compiler())()
        assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert states
    assert not any(states)


def add_one(x):
    return x + 1


@compiled
@pytest.mark.parametrize("decorator", [inner_kernel, separate_kernel])
def test_only_a_separate_kernel_stays_a_function_of_its_own(decorator):
    part = decorator(add_one)
    whole = kernel(lambda x: part(x) * 2)
    assert whole(3) == 8
    (code,) = whole.inspect_asm().values()
    is_there = re.search(r"^\S*add_one\S*:$", code, re.MULTILINE) is not None
    assert is_there is (decorator is separate_kernel)


@compiled
@pytest.mark.parametrize("is_part", [True, False])
def test_nobody_else_can_call_a_part(is_part):
    """So that LLVM may change how it is called."""
    part = (separate_kernel if is_part else numba.njit(forceinline=False))(add_one)
    whole = kernel(lambda x: part(x) + part(2 * x))
    assert whole(3) == 11
    (code,) = whole.inspect_llvm().values()
    linkage = re.findall(r"^define (\S+) .*add_one", code, re.MULTILINE)
    assert all(("internal" in each) is is_part for each in linkage)
    assert linkage or not is_part


@compiled
def test_the_collector_is_back_where_a_kernel_cannot_be_compiled():
    with pytest.raises(numba.TypingError):
        kernel(lambda value: value.nothing)(1.0)
    assert gc.isenabled()
