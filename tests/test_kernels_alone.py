"""`pymc_xbart.kernels` imports and sweeps where only NumPy and Numba are installed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Everything else looks as if it were not installed. Numba itself asks for optional packages (SciPy,
# PyYAML, Jinja2), and goes on without them only if the error is the usual one.
BLOCK = """
import sys

ALLOWED = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite", "pymc_xbart"}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ALLOWED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""

SWEEP = """
import numpy as np
from pymc_xbart import kernels

NUM_TREES, ROWS, NOISE_VAR = 5, 60, 0.09
rng = np.random.default_rng(3)
X = rng.normal(size=(ROWS, 3))
y = 2.0 * (X[:, 0] > 0) + rng.normal(scale=NOISE_VAR**0.5, size=ROWS)
y -= y.mean()

design = kernels.encode(X)
prior = kernels.Prior(
    alpha=0.95,
    beta=1.25,
    leaf_var=0.3 * y.var() / NUM_TREES,
    split_weights=np.ones(3),
    num_cutpoints=100,
    min_samples_leaf=1,
    max_depth=10,
)
forest = kernels.stump_forest(NUM_TREES)
work = kernels.make_workspace(ROWS, 3, prior.num_cutpoints)
leaf_of_row = kernels.make_leaf_of_row(NUM_TREES, ROWS)
h = np.full(ROWS, 1.0 / NOISE_VAR)
f = np.zeros(ROWS)
mean = np.zeros(ROWS)
for _ in range(20):
    g = (y - f) * h
    forest, leaf_of_row, info = kernels.sweep(forest, leaf_of_row, g, h, design, prior, work, rng)
    kernels.forest_values(forest, leaf_of_row, f)
    mean += f / 20
print(info.num_leaves.shape[0], np.corrcoef(mean, y)[0, 1] > 0.8)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_kernels_run_with_numpy_and_numba_alone():
    done = run(BLOCK + SWEEP)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["5", "True"]


def test_that_check_would_catch_another_import():
    done = run(BLOCK + "import scipy")
    assert "No module named 'scipy'" in done.stderr
