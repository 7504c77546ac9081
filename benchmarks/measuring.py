"""Clocks and meters that benchmarks read in their own process."""

import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from typing import Any


class Stopwatch:
    """Seconds in the functions that it watches.

    Exclusive: while a watched function runs, the one that has called it waits. So all of them add
    up to the whole, and none counts twice.
    """

    def __init__(self) -> None:
        self._within = [0.0]  # seconds of watched functions within each that runs
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: defaultdict[str, int] = defaultdict(int)

    def watch(self, owner: Any, name: str, label: str) -> None:
        """Watch a function, as an attribute of the module or class where callers look it up."""
        setattr(owner, name, self.watched(getattr(owner, name), label))

    def watched(self, function: Callable, label: str) -> Callable:
        """The same function under the clock."""

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._within.append(0.0)
            began = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                elapsed = time.perf_counter() - began
                self.seconds[label] += elapsed - self._within.pop()
                self.calls[label] += 1
                self._within[-1] += elapsed

        return timed


def peak_bytes() -> int:
    """Largest resident size of this process so far."""
    kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kibibytes * (1 if sys.platform == "darwin" else 1024)
