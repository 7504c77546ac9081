"""Machine code on disk belongs to one version of all kernels (floor 0: NumPy and Numba only).

Numba keeps it for as long as the file of the kernel that is called from Python stays what it is.
That kernel contains others, from other files. And what is kept of an older version may name classes
that are there no more, which Numba would stumble over before it sees that the file has changed.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def version_of_kernels() -> str:
    """Digest of the sources of all kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def belong_to_version(compiled: Any) -> None:
    """Let a compiled function have nothing to do with machine code of other versions."""
    # The one thing that Numba compares before it reads anything else: its own version. No public
    # interface; without it, machine code is kept as that of all functions.
    file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(file, "_version"):
        file._version = f"{file._version} {version_of_kernels()}"
