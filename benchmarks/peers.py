"""The environment of the peers, and one fit in a process of its own.

stochtree, XGBoost and scikit-learn are no dependencies of this project, not even for development:
they live in an environment built from `sys.executable` at first use, in the user's cache folder
(`$XDG_CACHE_HOME`, else `~/.cache`, under `pymc_xbart`), where a fresh checkout finds it again.
Its name holds a hash of what it contains, so that a change of `REQUIREMENTS` builds a new one.

    uv run benchmarks/peers.py     builds it and prints the versions
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# Held to one version each: a table names what it was measured against, and the meaning of
# stochtree's parameters has changed between minor releases.
REQUIREMENTS = ("stochtree==0.4.5", "xgboost==3.4.1", "scikit-learn==1.9.1")

ONE_FIT = Path(__file__).with_name("one_fit.py")

# Every method gets one thread. Variables, because some libraries read nothing else.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)


def peers_python() -> Path:
    """Interpreter of the peers' environment, which is built if it isn't there."""
    content = " ".join((*REQUIREMENTS, sys.version, sys.base_prefix))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "pymc_xbart" / f"peers-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = folder / "ready"  # written last: an interrupted build is begun again
    if not ready.exists():
        print(f"Installing {', '.join(REQUIREMENTS)} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([python, *install, *REQUIREMENTS], check=True)
        ready.touch()
    return python


def peer_versions() -> dict[str, str]:
    """Installed version of each peer."""
    names = [requirement.split("==")[0] for requirement in REQUIREMENTS]
    code = (
        "import json, sys; from importlib.metadata import version; "
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    command = [peers_python(), "-E", "-c", code, *names]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def run_one_fit(method: str, data: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Fit one method to one data set in a fresh process with one thread.

    Parameters
    ----------
    method : str
        A key of `one_fit.METHODS`.
    data : Path
        Folder that `one_fit.save_problem` has filled.
    settings : dict
        What `one_fit.METHODS[method]` reads.

    Returns
    -------
    dict
        `seconds` and `cpu_seconds` of fitting and predicting, `rmse`, and what the method adds.
    """
    # A PYTHONPATH that is meant for this project would reach into the peers' environment: -E.
    python = [sys.executable] if method == "xbart" else [peers_python(), "-E"]
    done = subprocess.run(
        [*python, ONE_FIT, method, data],
        input=json.dumps(settings),
        env=os.environ | ONE_THREAD,
        stdout=subprocess.PIPE,
        text=True,
        check=False,  # the traceback is already on the screen: say what was run, too
    )
    if done.returncode != 0:
        msg = f"{method} with {settings} failed; its error is printed above."
        raise RuntimeError(msg)
    return json.loads(done.stdout.splitlines()[-1])  # libraries may print before


if __name__ == "__main__":
    for name, version in peer_versions().items():
        print(name, version)
