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
    number = whole_number(num_threads, "num_threads")
    if number > num_cores():
        msg = (
            f"num_threads is {number}, but this process may use {num_cores()} of the "
            "machine's cores. Threads beyond that number wait for each other: the results are the "
            "same, but come later."
        )
        warnings.warn(msg, UserWarning, stacklevel=4)  # at whoever calls fit, or makes a step
    return number


def num_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
