import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from pymc_xbart import kernels
from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.evidence import log_evidence
from tests.helpers import inside

PACKAGE = Path(kernels.__file__).parents[1]

SWEEP_ONCE = """
import numpy as np
from pymc_xbart import kernels

rng = np.random.default_rng(1)
design = kernels.encode(rng.standard_normal((20, 2)))
prior = kernels.Prior(0.95, 1.25, 1.0, np.ones(2), 10, 1, 5)
f = np.ones(20)
kernels.forest_values(kernels.stump_forest(3), np.zeros((3, 20), np.int32), f)
assert not f.any()
assert kernels.__file__ == {file!r}, kernels.__file__
cache = getattr(kernels.forest_values, "_cache", None)
print(type(cache).__name__)
"""


EVALUATE_TREES = """
import numpy as np
from pymc_xbart import kernels

f = np.ones(20)
forest = kernels.stump_forest(2)._replace(value=np.array([1.0, 2.0]))
kernels.route_values(forest, np.zeros(2), np.zeros((1, 20)), f)
assert (f == 3).all()
hits = getattr(kernels.route_values, "stats", None)
print(sum(hits.cache_hits.values()) if hits else "plain")
"""


def run(folder, code, **environment):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def installed(tmp_path):
    """The package in a folder of its own, and code that runs a kernel of it."""
    copy = tmp_path / "site" / "pymc_xbart"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "site", SWEEP_ONCE.format(file=str(copy / "kernels" / "__init__.py"))


def test_kernels_run_where_nothing_can_be_cached(installed):
    folder, code = installed
    # A file where a folder should be: nobody can write there, not even the superuser.
    (folder / "pymc_xbart" / "kernels" / "__pycache__").write_text("")
    nowhere = str(folder / "pymc_xbart" / "py.typed" / "nowhere")
    homes = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "IPYTHONDIR"), nowhere)
    result = run(folder, code, PYTHONDONTWRITEBYTECODE="1", **homes)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() in {"NullCache", "NoneType"}  # the latter without compilation


def test_kernels_are_cached_where_they_can_be(installed, tmp_path):
    folder, code = installed
    result = run(folder, code, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() in {"FunctionCache", "NoneType"}
    if not numba.config.DISABLE_JIT:
        assert list((tmp_path / "cache").rglob("*.nbc"))


def test_kernels_from_disk_have_their_inner_kernels_with_them(installed, tmp_path):
    folder, _ = installed
    for hits in ("0", "1"):
        result = run(folder, EVALUATE_TREES, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        assert result.returncode == 0, result.stderr
        assert result.stdout.strip() in {hits, "plain"}


OLD = {
    "own_records": """
from typing import NamedTuple

class Pair(NamedTuple):
    one: int
    other: int
""",
    "own_sums": """
from pymc_xbart.kernels.decorator import inner_kernel

@inner_kernel
def add(pair):
    return pair.one + pair.other
""",
    "own_kernel": """
from pymc_xbart.kernels.decorator import kernel
from pymc_xbart.kernels.own_records import Pair
from pymc_xbart.kernels.own_sums import add

@kernel
def add_pair(pair):
    return add(pair)

def run():
    print(add_pair(Pair(1, 2)))
""",
}
NEW_SUM = {"own_sums": OLD["own_sums"].replace("+", "-")}
NEW_PLACE = {  # `Pair` is elsewhere
    "own_records": "",
    "own_pairs": OLD["own_records"],
    "own_kernel": OLD["own_kernel"].replace("own_records", "own_pairs"),
}


@pytest.mark.parametrize(("change", "expected"), [({}, "3"), (NEW_SUM, "-1"), (NEW_PLACE, "3")])
def test_an_upgrade_does_not_meet_old_machine_code(installed, tmp_path, change, expected):
    folder, _ = installed

    def write_and_run(files):
        for name, text in files.items():
            (folder / "pymc_xbart" / "kernels" / f"{name}.py").write_text(text)
        code = "from pymc_xbart.kernels.own_kernel import run\nrun()"
        # Python's own cache tells versions apart by the second.
        options = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        result = run(folder, code, **options)
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    assert write_and_run(OLD) == "3"
    assert write_and_run(change) == expected


def test_other_errors_of_compilation_are_not_swallowed(monkeypatch):
    def refuse(**_options):
        msg = "something else is wrong"
        raise RuntimeError(msg)

    monkeypatch.setattr(numba, "njit", refuse)
    with pytest.raises(RuntimeError, match="something else"):
        kernel(len)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="without JIT every kernel is a plain function")
def test_an_inner_kernel_refuses_a_call_from_python():
    with pytest.raises(TypeError, match="log_evidence is an inner kernel"):
        log_evidence(1.0, 1.0, 1.0)


def returns_arrays(kind):
    members = kind.types if isinstance(kind, numba.types.BaseTuple) else [kind]
    return any(
        isinstance(member, numba.types.Array)
        or (isinstance(member, numba.types.BaseTuple) and returns_arrays(member))
        for member in members
    )


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="without JIT nothing is counted")
def test_what_only_borrows_arrays_returns_none():
    """A kernel that counts references would release an array that it was merely lent."""
    case = inside.make_case(np.arange(40.0).reshape(20, 2))
    forest, leaf = kernels.draw_prior_forest(case.design, case.prior, 3, np.random.default_rng(0))
    g, h = np.zeros(20), np.ones(20)
    given = (case.design, case.prior, case.work, np.random.default_rng(0))
    forest, leaf, _ = kernels.sweep(forest, leaf, g, h, *given)
    kernels.sweep_as_one(forest, leaf, g, h, *given)
    borrowing = {
        name: value
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("pymc_xbart.kernels.")
        for name, value in vars(module).items()
        if getattr(value, "targetoptions", {}).get("_nrt") is False
    }
    assert len(borrowing) > 30
    lending = {
        name
        for name, each in borrowing.items()
        if any(returns_arrays(signature.return_type) for signature in each.nopython_signatures)
    }
    assert lending <= {"column_of", "own_sums"}  # no kernel that calls these counts references
