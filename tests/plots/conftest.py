"""What every test of pictures gets: no window, and no figures left from the test before."""

import matplotlib as mpl
import pytest

mpl.use("Agg")  # before anything opens a window

import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    """Forget all figures."""
    yield
    plt.close("all")
