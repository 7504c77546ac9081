"""Clocks and counters around inner kernels, put there before they are compiled.

Numba resolves the names that a kernel calls when it compiles it. So a kernel that is replaced, in
every module that has imported it, by one that reads the clock, calls it and reads the clock again,
is timed where it really runs: on the nodes, and with the arguments, of a real sweep. Seconds are
exclusive: those in a watched kernel that another one calls count for the former only.

To watch another kernel, or one that has got a new name, edit `WATCHED`: the key is the module
within `pymc_xbart.kernels` and the function. The amount of work is an expression in the kernel's
own parameters, so that the compiler checks it; amounts do not depend on the machine, and show what
an edit has changed where timings are too noisy to. A kernel that is not there is left out and named
in the report, and its time counts for the kernel that calls it.

Watching takes two readings of the clock a call, and keeps LLVM from moving work across calls. The
report has the time of the same sweeps unwatched beside it.

The clock is the processor's time stamp, which x86 processors have. The machine code holds the
address of this process' account: the process needs a `NUMBA_CACHE_DIR` that is thrown away.
"""

import inspect
import platform
import sys
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from pymc_xbart import kernels
from pymc_xbart.kernels.decorator import inner_kernel, returning_kernel


class Watched(NamedTuple):
    """What a kernel is for, and how much there is of it in a call."""

    task: str
    amount: str = "1"  # an expression in the kernel's parameters
    unit: str = "calls"


GATHER, ADD_UP, CUT, SCORE = "gathering rows", "adding up g and h", "listing cuts", "scoring"
DRAW, PARTITION, LEAVES = "drawing a cut", "partitioning rows", "leaves"
BOOKKEEPING, TREES = "f and g", "storing trees"
JOINT_DRAW = "joint draw of leaf values"
CHOICE, HAS_CUTS = "choosing columns", "asking for cuts"

WATCHED = {
    "partition.open_root": Watched(GATHER, "h.size", "rows"),
    "partition.gather_leaves": Watched(GATHER, "leaf.size", "rows"),
    "gradient.take_up": Watched(GATHER, "g.size", "rows"),
    "ordered.mark_members": Watched(GATHER, "stop - start", "rows"),
    "histogram.add_two_columns": Watched(ADD_UP, "2 * (stop - start)", "rows"),
    "histogram.sum_column": Watched(ADD_UP, "stop - start", "rows"),
    "sparse.add_marked": Watched(ADD_UP, "stop - start", "rows"),
    "sparse.gather_marked": Watched(ADD_UP),
    "ordered.list_ordered_cuts": Watched(CUT, "num_rows", "rows"),
    "cuts.list_cuts": Watched(CUT, "last - first + 1", "buckets"),
    "column_scores.weigh_cuts": Watched(SCORE, "num_cuts", "evidences"),
    "column_scores.score_cuts": Watched(SCORE, "num_cuts", "evidences"),
    "draw.log_sum_exp_of_many": Watched(SCORE, "size", "evidences"),
    "score.score_node": Watched(SCORE, "node.stop - node.start", "rows"),
    "score.draw_cut": Watched(DRAW, "node.stop - node.start", "rows"),
    "columns.draw_subset": Watched(CHOICE),
    "cuts.is_varied": Watched(HAS_CUTS),
    "score.has_cuts": Watched(HAS_CUTS, "node.stop - node.start", "rows"),
    "partition.partition_rows": Watched(PARTITION, "stop - start", "rows"),
    "regrow.record_leaves": Watched(LEAVES, "leaf.size", "rows"),
    "tree.sum_leaves": Watched(LEAVES, "leaf.size", "rows"),
    "tree.draw_leaf_values": Watched(LEAVES, "num_nodes", "nodes"),
    "redraw.send_rows": Watched(LEAVES, "node.stop - node.start", "rows"),
    "redraw.is_side_varied": Watched("asking for cuts"),
    "redraw.merge_children": Watched(LEAVES, "leaf.size", "rows"),
    "leaves.redraw_leaves": Watched(JOINT_DRAW),
    "gradient.move_rows": Watched(BOOKKEEPING, "stop - start", "rows"),
    "evidence.read_curvature": Watched("reading h", "h.size", "rows"),
    "tree.load_tree": Watched(TREES),
    "sweep.append_tree": Watched(TREES, "num_nodes", "nodes"),
    "sweep.describe": Watched(TREES, "num_nodes", "nodes"),
    "grow.build_tree": Watched("growing, apart from the above"),
    "redraw.redraw_split": Watched("redrawing, apart from the above"),
}

# Columns of an account; its last line has the ticks of watched kernels within the current one.
TICKS, CALLS, AMOUNT = range(3)
WORD = 8  # bytes

TEMPLATE = """
def {name}({parameters}):
    within_before = load({within})
    store({within}, 0)
    began = ticks()
    result = kernel({parameters})
    elapsed = ticks() - began
    store({ticks}, load({ticks}) + elapsed - load({within}))
    store({calls}, load({calls}) + 1)
    store({amount}, load({amount}) + ({how_much}))
    store({within}, within_before + elapsed)
    return result
"""


@intrinsic
def ticks(_typing_context):
    """Time stamp of the processor."""

    def generate(_context, builder, _signature, _arguments):
        kind = ir.FunctionType(ir.IntType(64), [])
        return builder.call(
            builder.module.declare_intrinsic("llvm.readcyclecounter", fnty=kind), []
        )

    return types.int64(), generate


@intrinsic
def load(_typing_context, _address):
    """Word at an address."""

    def generate(_context, builder, _signature, arguments):
        word = ir.IntType(64)
        return builder.load(builder.inttoptr(arguments[0], word.as_pointer()))

    return types.int64(types.int64), generate


@intrinsic
def store(_typing_context, _address, _value):
    """Write a word to an address."""

    def generate(context, builder, _signature, arguments):
        word = ir.IntType(64)
        builder.store(arguments[1], builder.inttoptr(arguments[0], word.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@njit
def _now():
    return ticks()


class Account:
    """What watched kernels have done since `clear`."""

    def __init__(self, names: list[str], missing: list[str]) -> None:
        self.names = names
        self.missing = missing  # of WATCHED, not in this version of the kernels
        self.lines = np.zeros((len(names) + 1, 3), np.int64)

    def address(self, line: int, column: int = 0) -> int:
        """Where in memory an entry is."""
        return self.lines.ctypes.data + WORD * (3 * line + column)

    def clear(self) -> None:
        """Begin anew."""
        self.lines[:] = 0

    def now(self) -> int:
        """Time stamp of the processor."""
        return _now()

    def read(self, seconds_per_tick: float) -> dict[str, dict[str, float]]:
        """Seconds, calls and amount of work of each watched kernel."""
        return {
            name: {"seconds": line[TICKS] * seconds_per_tick, "calls": int(line[CALLS])}
            | {"amount": int(line[AMOUNT])}
            for name, line in zip(self.names, self.lines[:-1], strict=True)
        }


def watch_kernels() -> Account:
    """Replace the kernels of `WATCHED` by watched ones. Call it before any kernel is compiled."""
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        msg = f"The clock of watched kernels needs an x86 processor; this is {platform.machine()}."
        raise SystemExit(msg)
    found = {name: kernel for name in WATCHED if (kernel := find_kernel(name)) is not None}
    account = Account(list(found), [name for name in WATCHED if name not in found])
    for line, (name, kernel) in enumerate(found.items()):
        replace(kernel, watched(kernel, WATCHED[name].amount, account, line))
    return account


def find_kernel(name: str) -> Any:
    """Kernel by module and name; None if there is none."""
    module, function = name.split(".")
    try:
        return getattr(import_module(f"{kernels.__name__}.{module}"), function, None)
    except ModuleNotFoundError:
        return None


def watched(kernel: Any, how_much: str, account: Account, line: int) -> Any:
    """Compile a kernel that calls another and keeps the account."""
    function = kernel.py_func
    # By source, because Numba would compile a tuple of all arguments, and because the amount can
    # then name the kernel's parameters.
    source = TEMPLATE.format(
        name=function.__name__,
        parameters=", ".join(inspect.signature(function).parameters),
        within=account.address(len(account.names)),
        ticks=account.address(line, TICKS),
        calls=account.address(line, CALLS),
        amount=account.address(line, AMOUNT),
        how_much=how_much,
    )
    scope = {"kernel": kernel, "ticks": ticks, "load": load, "store": store}
    exec(source, scope)
    borrows = kernel.targetoptions.get("_nrt") is False  # as `inner_kernel` has it
    return (inner_kernel if borrows else returning_kernel)(scope[function.__name__])


def replace(kernel: Any, by: Any) -> None:
    """Let every module of kernels that has imported a kernel have another in its place."""
    for name, module in list(sys.modules.items()):
        if name.startswith(kernels.__name__):
            for attribute, value in list(vars(module).items()):
                if value is kernel:
                    setattr(module, attribute, by)
