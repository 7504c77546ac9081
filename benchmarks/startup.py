"""How long it takes from nothing to the first sweep, and to the first fit.

    uv run benchmarks/startup.py
    uv run benchmarks/startup.py --reps 1        a look

Numba and PyTensor keep machine code on disk. Each stage is timed in a process of its own, with
caches that are empty ("first") or that an equal process has filled ("second"):

    pymc_alone            a Normal model of one variable, and its log-probability: what a process
                          takes that has nothing to do with this package
    kernels_of_sampling   what `XBARTStep` compiles when it is made, for a Normal likelihood
    every_kernel          all kernels of the package, whatever uses them; compiling alone is timed
    first_sweep           a model, its step, and one exact sweep
    first_fit             a forest and its noise by `pm.sample`, 20 draws after 20

each on 1 000 rows, 10 columns, 50 trees, the import of PyMC included. "Process" is all of it, from
before the interpreter begins to after it has ended.

Python keeps bytecode on disk as well, most installers write it, and nobody needs to wait for it
twice: all processes share a folder of it, which one that is not timed has filled.

Read-only: the package is copied to a folder in which nothing can be written, with NUMBA_CACHE_DIR
unset, once with a home directory and once without. (A file stands where Numba would make its
folder: that stops the superuser, too. PyTensor gets a folder of its own, since it needs one.)
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers import run_alone
from results import Target, describe_machine, keep, number, table, table_of_targets

import pymc_xbart

ONE_START = Path(__file__).with_name("one_start.py")
PACKAGE = Path(pymc_xbart.__file__).parent
FIRST, SECOND = "first", "second"
HOME, NO_HOME = "read-only, first", "read-only, no home"
TWICE = ("pymc_alone", "first_fit", "first_sweep")  # by processes with empty and filled caches
COMMON = ("import", "in all", "process")  # stages that all have

# What this project asks of itself, in seconds.
MAX_KERNELS, MAX_FIT, MAX_SWEEP = 10, 30, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=5)
    args = parser.parse_args()
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as bytecode:
        variables = fill_bytecode(Path(bytecode))
        for replication in range(args.reps):
            for run in start_in_every_way(variables):
                runs.append({"replication": replication, **run})
                print(runs[-1], file=sys.stderr)
    text = report(runs)
    print(text)
    keep("startup", text, runs)


def fill_bytecode(folder: Path) -> dict[str, str]:
    """Put Python's bytecode into a folder. Returns the variables by which it is used."""
    variables = {"PYTHONPYCACHEPREFIX": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    with tempfile.TemporaryDirectory() as machine_code:
        start("every_kernel", FIRST, variables | caches(Path(machine_code)))
    return variables


def start_in_every_way(variables: dict[str, str]) -> Iterator[dict[str, Any]]:
    """All stages, each with caches of its own."""
    for method in ("kernels_of_sampling", "every_kernel", *TWICE):
        with tempfile.TemporaryDirectory() as folder:
            own = variables | caches(Path(folder))
            yield start(method, FIRST, own)
            if method in TWICE:
                yield start(method, SECOND, own)
    with tempfile.TemporaryDirectory() as folder:
        yield from start_read_only(Path(folder), variables)


def caches(folder: Path) -> dict[str, str]:
    """Variables that make a folder hold all machine code."""
    pytensor = f"base_compiledir={folder / 'pytensor'}"
    return {"NUMBA_CACHE_DIR": str(folder / "numba"), "PYTENSOR_FLAGS": pytensor}


def start(method: str, way: str, variables: dict[str, str], package: Path = PACKAGE) -> dict:
    """One process. Returns its stages, in seconds."""
    began = time.perf_counter()
    result = run_alone(ONE_START, method, Path(), {}, None, variables)
    seconds = time.perf_counter() - began
    if Path(result["package"]).parent != package:
        msg = f"The package at {result['package']} was imported, not that in {package}."
        raise RuntimeError(msg)
    return {"method": method, "way": way, **result["stages"], "process": seconds}


def start_read_only(folder: Path, variables: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The first sweep of a package in whose folder nothing can be written."""
    site = folder / "site"
    package = site / PACKAGE.name
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "__pycache__").write_text("")
    for path in package.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    home, nowhere = folder / "home", package / "py.typed" / "nowhere"
    home.mkdir()
    variables = variables | caches(folder) | {"NUMBA_CACHE_DIR": "", "PYTHONPATH": str(site)}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1"}
    for way, place in ((HOME, home), (NO_HOME, nowhere)):
        homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "IPYTHONDIR"), str(place))
        yield start("first_sweep", way, variables | homes, package)
    for path in package.rglob("*"):
        path.chmod(0o755)


def report(runs: list[dict[str, Any]]) -> str:
    kinds = list(dict.fromkeys((run["method"], run["way"]) for run in runs))
    rows = []
    for kind in kinds:
        own = stages_of(runs, kind)
        what = ", ".join(f"{name} {number(own[name])}" for name in own if name not in COMMON)
        rows.append([f"`{kind[0]}`", kind[1], *(number(own[name]) for name in COMMON), what])
    return "\n\n".join(
        [
            "# From nothing to the first fit",
            f"{describe_machine()}. One thread. Seconds, medians of "
            f"{len({run['replication'] for run in runs})} runs.",
            table(["", "caches", "import", "Python", "process", "of it"], rows),
            table_of_targets(targets(runs)),
            "Read-only installations work: their runs are in the table. Without a home, kernels "
            "are compiled in each process.",
        ]
    )


def stages_of(runs: list[dict[str, Any]], kind: tuple[str, str]) -> dict[str, float]:
    """Median of each stage."""
    own = [run for run in runs if (run["method"], run["way"]) == kind]
    names = [name for name in own[0] if name not in ("method", "way", "replication")]
    return {name: statistics.median(run[name] for run in own) for name in names}


def targets(runs: list[dict[str, Any]]) -> Iterator[Target]:
    """What this project asks of itself."""
    every = stages_of(runs, ("every_kernel", FIRST))["every kernel"]
    yield Target("seconds to compile every kernel", "first process", every, high=MAX_KERNELS)
    sampling = stages_of(runs, ("kernels_of_sampling", FIRST))["kernels of sampling"]
    yield Target("those of sampling", "first process", sampling, high=MAX_KERNELS)
    fit = stages_of(runs, ("first_fit", FIRST))["process"]
    yield Target("seconds of the whole first fit", "first process", fit, high=MAX_FIT)
    sweep = stages_of(runs, ("first_sweep", SECOND))
    seconds = sweep["import"] + sweep["first sweep"]
    yield Target("import and first sweep", "second process", seconds, high=MAX_SWEEP)
    yield Target("with making model and step", "second process", sweep["in all"], high=MAX_SWEEP)


if __name__ == "__main__":
    main()
