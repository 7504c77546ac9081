"""Every example runs from beginning to end, with few rows and draws, and leaves a figure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_example_runs(name, tmp_path):
    figure = tmp_path / "figure.png"
    run = subprocess.run(
        [sys.executable, EXAMPLES / name, "--fast", "--figure", figure],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"MPLBACKEND": "Agg"},
    )
    assert run.returncode == 0, run.stderr
    assert figure.stat().st_size > 10_000
    assert len(run.stdout.splitlines()) > 5
