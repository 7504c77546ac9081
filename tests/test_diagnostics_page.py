"""Every block of `docs/diagnostics.md` runs after those above it."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pymc as pm
import pytest

PAGE = Path(__file__).parents[1] / "docs" / "diagnostics.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def sampler_of_few_draws(sample):
    """In place of `pm.sample`, whatever the page asks it for."""
    few = {"draws": 20, "tune": 10, "chains": 2, "cores": 1, "random_seed": 1}
    return lambda *_, **__: sample(**few, compute_convergence_checks=False, quiet=True)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")  # of so few draws
def test_blocks_run_in_order(monkeypatch):
    monkeypatch.setattr(pm, "sample", sampler_of_few_draws(pm.sample))
    names = {}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"block {number} of {PAGE.name}", "exec"), names)
        plt.close("all")


def test_there_are_blocks():
    assert len(BLOCKS) > 20
