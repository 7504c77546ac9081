"""Every block of a guide runs after those above it."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pymc as pm
import pytest

DOCS = Path(__file__).parents[1] / "docs"
MIN_BLOCKS = {"diagnostics": 21, "predictions": 8}


def blocks_of(page):
    """Its Python blocks, in order."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def sampler_of_few_draws(sample):
    """In place of `pm.sample`, whatever the page asks it for."""
    few = {"draws": 20, "tune": 10, "chains": 2, "cores": 1, "random_seed": 1}
    few |= {"compute_convergence_checks": False, "quiet": True}
    return lambda *_, step=None, initvals=None, **__: sample(step=step, initvals=initvals, **few)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")  # of so few draws
@pytest.mark.parametrize("page", MIN_BLOCKS)
def test_blocks_run_in_order(page, monkeypatch, tmp_path):
    monkeypatch.setattr(pm, "sample", sampler_of_few_draws(pm.sample))
    monkeypatch.chdir(tmp_path)  # where files go
    names = {}
    for number, block in enumerate(blocks_of(page)):
        exec(compile(block, f"block {number} of {page}", "exec"), names)
        plt.close("all")


@pytest.mark.parametrize("page", MIN_BLOCKS)
def test_there_are_blocks(page):
    assert len(blocks_of(page)) >= MIN_BLOCKS[page]
