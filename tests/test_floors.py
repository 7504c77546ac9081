"""Imports only point down: each folder of the package may import what its floor names, and no more.

The sources are parsed, not run, so that imports inside functions are seen too. Three rules:

1. A module imports the standard library, the libraries of its floor, and the folders below it.
2. Inside functions it may also import the libraries that its floor uses if they are installed.
3. Under `if TYPE_CHECKING:` any library goes, since none is loaded. Folders above stay forbidden:
   a type from above is a dependence on what is above.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "pymc_xbart"


class Floor(NamedTuple):
    """What a folder may import."""

    libraries: set[str]
    folders: set[str]  # of this package, beside its own
    lazily: frozenset[str] = frozenset()  # libraries, only inside functions


KERNELS = {"numpy", "numba"}
FOREST = KERNELS | {"narwhals", "scipy"}
PLUGIN = FOREST | {"pymc", "pytensor", "rich", "xarray"}  # rich: columns of PyMC's progress bar
DIAGNOSTICS = FOREST | {"arviz_base", "arviz_stats", "xarray"}
PLOTS = DIAGNOSTICS | {"arviz_plots", "matplotlib", "pandas"}

FLOORS = {
    "kernels": Floor(KERNELS, set()),
    "forest": Floor(
        FOREST, {"kernels"}, lazily=frozenset({"pandas", "polars", "rich", "sklearn", "xarray"})
    ),
    "plugin": Floor(PLUGIN, {"kernels", "forest"}),
    "diagnostics": Floor(DIAGNOSTICS, {"kernels", "forest"}),
    "plots": Floor(PLOTS, {"kernels", "forest", "diagnostics"}),
}


class Import(NamedTuple):
    """One imported module, with the place it is imported from."""

    module: str
    line: int
    in_function: bool
    for_types_only: bool


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def modules_named_by(node: ast.AST) -> list[str]:
    """Modules that this very node imports; what the text does not tell comes out as `?`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        if node.level:
            return ["?"]
        # `from pymc_xbart import kernels` names a folder; `from numpy import array` names none.
        if node.module == "pymc_xbart":
            return [f"pymc_xbart.{alias.name}" for alias in node.names]
        return [str(node.module)]
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {
        "__import__",
        "import_module",
    }:
        first = node.args[0] if node.args else None
        is_literal = isinstance(first, ast.Constant) and isinstance(first.value, str)
        return [first.value if is_literal else "?"]
    return []


def imports_of(
    node: ast.AST, *, in_function: bool = False, for_types_only: bool = False
) -> Iterator[Import]:
    """Every import below `node`."""
    for module in modules_named_by(node):
        yield Import(module, node.lineno, in_function, for_types_only)
    inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    if isinstance(node, ast.If) and is_type_checking(node.test):
        for child in node.body:
            yield from imports_of(child, in_function=inside, for_types_only=True)
        children = node.orelse
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from imports_of(child, in_function=inside, for_types_only=for_types_only)


def is_allowed(found: Import, folder: str) -> bool:
    floor = FLOORS[folder]
    top, _, rest = found.module.partition(".")
    if top == "?":
        return False
    if top == "pymc_xbart":
        return rest.partition(".")[0] in floor.folders | {folder}
    if found.for_types_only or top in sys.stdlib_module_names or top in floor.libraries:
        return True
    return found.in_function and top in floor.lazily


def breaches(source: str, folder: str) -> list[str]:
    """Forbidden imports of a module in `folder`, as `line: module`."""
    found = imports_of(ast.parse(source))
    return [f"{each.line}: {each.module}" for each in found if not is_allowed(each, folder)]


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_keeps_to_its_floor(path):
    source = path.read_text()
    if path.parent == PACKAGE:
        # The face reads its table of names by import_module, so only the table's reader may.
        assert path.name == "__init__.py", "a module belongs into the folder of a floor"
        loaded = [each for each in imports_of(ast.parse(source)) if not each.for_types_only]
        outside = {each.module.partition(".")[0] for each in loaded} - sys.stdlib_module_names
        assert outside <= {"?"}
        return
    folder = path.relative_to(PACKAGE).parts[0]
    assert folder in FLOORS, f"{folder}/ has no floor: add it to FLOORS and say what it may import"
    assert breaches(source, folder) == []


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("kernels", "import scipy"),
        ("kernels", "import numpy as np, pandas"),
        ("kernels", "from scipy.special import gammaln"),
        ("kernels", "import pymc_xbart"),
        ("kernels", "from pymc_xbart import forest"),
        ("kernels", "from pymc_xbart import XBARTForest"),
        ("kernels", "from pymc_xbart.forest.design import encode_table"),
        ("kernels", "def f():\n    import scipy"),
        ("kernels", "async def f():\n    from scipy import stats"),
        ("kernels", "class A:\n    import scipy"),
        ("kernels", "try:\n    import scipy\nexcept ImportError:\n    scipy = None"),
        ("kernels", "import importlib\nscipy = importlib.import_module('scipy')"),
        ("kernels", "scipy = __import__('scipy')"),
        ("kernels", "from . import codes"),
        ("kernels", "if TYPE_CHECKING:\n    import numpy\nelse:\n    import scipy"),
        ("forest", "import pandas"),
        ("forest", "import xarray"),
        ("forest", "def f():\n    import pymc"),
        ("forest", "from importlib import import_module\nimport_module(name)"),
        ("forest", "if TYPE_CHECKING:\n    from pymc_xbart.plugin.step import XBARTStep"),
        ("plugin", "import matplotlib"),
        ("plugin", "from pymc_xbart.diagnostics import convergence"),
        ("diagnostics", "from pymc_xbart.plugin.step import XBARTStep"),
        ("diagnostics", "import pymc"),
        ("plots", "def f():\n    from pymc_xbart import plugin"),
    ],
)
def test_that_check_would_catch(folder, source):
    assert len(breaches(source, folder)) == 1


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("kernels", "import math\nimport numpy as np\nfrom numba import njit"),
        ("kernels", "from pymc_xbart.kernels.codes import encode"),
        ("kernels", "from pymc_xbart import kernels"),
        ("forest", "def read(table):\n    import pandas as pd\n    import polars"),
        ("forest", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas"),
        ("forest", "import scipy.stats\nfrom pymc_xbart.kernels import sweep"),
        ("plugin", "import pymc as pm\nimport pytensor.tensor as pt\nimport xarray as xr"),
        ("diagnostics", "from arviz_stats.base import array_stats"),
        ("plots", "import matplotlib.pyplot as plt\nfrom pymc_xbart import diagnostics"),
    ],
)
def test_that_check_lets_through(folder, source):
    assert breaches(source, folder) == []
