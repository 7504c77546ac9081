"""Environments of the peers, and one fit in a process of its own.

The peers are no dependencies of this project, not even for development: they live in environments
built from `sys.executable` at first use, in the user's cache folder (`$XDG_CACHE_HOME`, else
`~/.cache`, under `pymc_xbart`), where a fresh checkout finds them again. The name of an environment
holds a hash of what it contains, so that a change of `ENVIRONMENTS` builds a new one.

    uv run benchmarks/peers.py     builds all of them and prints the versions
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Held to one version each: a table names what it was measured against, and the meaning of
# stochtree's parameters has changed between minor releases.
# pymc-bart and bartz have one to themselves: PyMC and JAX bring many packages that the others would
# have to agree with.
ENVIRONMENTS = {
    "peers": ("stochtree==0.4.5", "xgboost==3.4.1", "scikit-learn==1.9.1"),
    "pymc-bart": ("pymc-bart==0.13.1", "bartrs==0.4.0", "pymc==6.4.0"),
    "bartz": ("bartz==0.13.0", "jax==0.12.0.1"),
}

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


def peers_python(environment: str = "peers") -> Path:
    """Interpreter of an environment, which is built if it isn't there."""
    requirements = ENVIRONMENTS[environment]
    content = " ".join((*requirements, sys.version, sys.base_prefix))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    folder = cache / "pymc_xbart" / f"{environment}-{digest}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = folder / "ready"  # written last: an interrupted build is begun again
    if not ready.exists():
        print(f"Installing {', '.join(requirements)} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([python, *install, *requirements], check=True)
        ready.touch()
    return python


def peer_versions(environment: str = "peers") -> dict[str, str]:
    """Installed version of each peer of an environment."""
    names = [requirement.split("==")[0] for requirement in ENVIRONMENTS[environment]]
    code = (
        "import json, sys; from importlib.metadata import version; "
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    command = [peers_python(environment), "-E", "-c", code, *names]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def describe_peers(packages: dict[str, str]) -> str:
    """Name and version of each package, by the environment that it is in."""
    return ", ".join(
        f"{package} {peer_versions(environment)[package]}"
        for package, environment in packages.items()
    )


def in_turn(methods: Sequence[str], replication: int) -> Sequence[str]:
    """The methods, beginning with another one in each replication."""
    turn = replication % len(methods)
    return methods[turn:] + methods[:turn]


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
        `seconds` and `cpu_seconds` of fitting and predicting, `rmse`, `coverage` if the method
        draws f, and what it adds.
    """
    environment = None if method == "xbart" else "peers"
    return run_alone(ONE_FIT, method, data, settings, environment)


def run_alone(
    script: Path,
    method: str,
    data: Path,
    settings: dict[str, Any],
    environment: str | None,
    variables: dict[str, str] | None = None,
) -> Any:
    """Run a script for one method in a fresh process with one thread.

    Parameters
    ----------
    script : Path
        Is called with `method` and `data`, reads `settings` as JSON from its standard input, and
        prints JSON in its last line.
    method : str
    data : Path
        Folder with the data.
    settings : dict
    environment : str or None
        A key of `ENVIRONMENTS`, or None for that of this project.
    variables : dict, optional
        More variables of the process' environment.

    Returns
    -------
    Any
        What the script has printed, as a rule a dict.
    """
    # A PYTHONPATH that is meant for this project would reach into the peers' environment: -E.
    python = [sys.executable] if environment is None else [peers_python(environment), "-E"]
    done = subprocess.run(
        [*python, script, method, data],
        input=json.dumps(settings),
        env=os.environ | ONE_THREAD | (variables or {}),
        stdout=subprocess.PIPE,
        text=True,
        check=False,  # the traceback is already on the screen: say what was run, too
    )
    if done.returncode != 0:
        msg = f"{method} with {settings} failed; its error is printed above."
        raise RuntimeError(msg)
    return json.loads(done.stdout.splitlines()[-1])  # libraries may print before


if __name__ == "__main__":
    for environment in ENVIRONMENTS:
        for name, version in peer_versions(environment).items():
            print(name, version)
