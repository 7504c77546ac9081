"""The one way a kernel is compiled (floor 0: NumPy and Numba only)."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

# No fastmath: it assumes that infinities do not occur, and here -inf is the log-weight of what is
# forbidden. nogil, so that chains in threads of one process don't wait for each other.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}

# Type of array positions in loops over rows. With a signed one Numba must ask each time whether it
# counts from the end, which triples the time of adding a row to its bucket.
POSITION_DTYPE = np.uint64


def kernel(function: Callable) -> Callable:
    """Compile `function` with Numba, and keep the machine code on disk where that is possible.

    Numba raises at decoration, that is at import, when neither the package's folder nor the user's
    cache folder can be written (read-only installations, containers without a home). Compiling anew
    in each process is then slow but right.
    """
    try:
        return numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError as error:
        if "locator" not in str(error):
            raise
        return numba.njit(**OPTIONS)(function)
