"""The package's face: names are looked up lazily, and those for models register the step method."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pymc_xbart

ROOT = Path(__file__).parents[1]


def run(code: str) -> str:
    """Return what `code` prints in a fresh interpreter, warnings being errors there too."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_imports_neither_pymc_nor_numba():
    code = "import sys, pymc_xbart; print(*{'pymc', 'pytensor', 'numba', 'numpy'} & {*sys.modules})"
    assert run(code) == ""


def test_the_regressor_does_not_import_pymc():
    code = "import sys, pymc_xbart; pymc_xbart.XBARTRegressor; print(*{*sys.modules})"
    assert not {"pymc", "pytensor", "sklearn", "rich"} & {*run(code).split()}


@pytest.mark.parametrize("name", ["XBARTForest", "XBARTStep"])
def test_first_use_of_either_name_registers_the_step_once(name):
    code = f"""
import pymc_xbart
pymc_xbart.{name}
from pymc.step_methods import STEP_METHODS
from pymc_xbart.plugin.registry import register
register()
print(sum(step is pymc_xbart.XBARTStep for step in STEP_METHODS))
"""
    assert run(code) == "1"


def test_every_public_name_can_be_looked_up():
    for name in pymc_xbart.__all__:
        assert getattr(pymc_xbart, name) is not None


def test_dir_lists_the_public_names_and_no_helpers():
    assert dir(pymc_xbart) == sorted(pymc_xbart.__all__)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(AttributeError, match=r"no attribute 'XBartForest'.*XBARTForest, XBARTReg"):
        _ = pymc_xbart.XBartForest


def test_the_version_is_that_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert pymc_xbart.__version__ == project["version"]
