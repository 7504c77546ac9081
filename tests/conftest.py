"""What every test gets: a Numba cache that follows the kernel sources, and a stream of its own."""

import contextlib
import hashlib
import os
import runpy
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
KERNELS = ROOT / "pymc_xbart" / "kernels"
CACHES = ROOT / ".numba_cache"
KEEP_SECONDS = 24 * 3600


def hash_of_kernels() -> str:
    """Version of all kernels, found without importing the package: that would import Numba."""
    return runpy.run_path(str(KERNELS / "cache.py"))["version_of_kernels"]()[:16]


def use_cache_of(kernels_hash: str) -> None:
    """Point Numba, here and in child processes, at the cache of these sources, and drop old ones.

    Numba notices an edit of the file a kernel stands in, not of a kernel that it calls: a cache
    shared between versions of the sources would run old code.
    """
    cache = CACHES / kernels_hash
    cache.mkdir(parents=True, exist_ok=True)
    os.utime(cache)
    os.environ["NUMBA_CACHE_DIR"] = str(cache)
    # Not at once: another run, started before the last edit, may still be compiling into its own.
    for sibling in CACHES.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if time.time() - sibling.stat().st_mtime > KEEP_SECONDS:
                shutil.rmtree(sibling)


# At import of this file, for Numba reads the variable once, when test modules import it.
use_cache_of(hash_of_kernels())
pytest.register_assert_rewrite("tests.helpers")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Generator seeded by the test's own name, so that a new test shifts no other test's stream."""
    digest = hashlib.sha256(request.node.nodeid.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8]))
