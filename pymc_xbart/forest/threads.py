"""How many threads a chain may have (floor 1)."""

import os
import warnings
from typing import Any

from pymc_xbart.forest.prior import whole_number


def check_num_threads(num_threads: Any) -> int:
    """Refuse a number of threads that is none, and warn of one that the machine has no cores for.

    Warns
    -----
    UserWarning
        If this process may use fewer cores.
    """
    num_threads = whole_number(num_threads, "num_threads")
    if num_threads > num_cores():
        msg = (
            f"num_threads is {num_threads}, but this process may use {num_cores()} of the "
            "machine's cores. Threads beyond that number wait for each other: the results are the "
            "same, but come later."
        )
        warnings.warn(msg, UserWarning, stacklevel=4)  # at whoever calls fit, or makes a step
    return num_threads


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        cores: set[int] = os.sched_getaffinity(0)
        return len(cores)
    return os.cpu_count() or 1
