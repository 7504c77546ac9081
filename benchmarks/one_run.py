"""Sample a forest and its noise by `pm.sample`, and print where the time went as JSON.

Not meant to be called by hand: `overhead` and `profile` run it. The model is the one of `mixing`,
f(x) with a HalfNormal noise, on Friedman's function of the first 5 of p uniform columns.

A small run comes first, so that kernels are compiled and libraries imported. What is timed then is
the loop over draws, from the first draw on and from the end of tuning on; and in it, by
`Stopwatch`, the functions of `watch`. (Within the first draw, functions of NUTS are compiled, which
`pm.sample` makes anew.) If kernels are watched, too, the seconds of the sweep are told apart by
kernel (see `watched_kernels`).
"""

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from friedman import Problem, draw_problem
from judging import judge
from measuring import Stopwatch

NUM_POINTS = 200  # rows that f is judged at
# Parts of the loop over draws, by where their time goes.
SWEEP = "sweep kernel"
GRADIENT, SUM_OF_TREES, STORING = "gradient and curvature", "f at all rows", "trees to text"
STEP, NUTS = "XBARTStep, apart from the above", "NUTS"
STOPWATCH = Stopwatch()
FEW = {"tune": 10, "draws": 10}  # to begin with: everything is compiled then


def simulate(num_rows: int, num_columns: int, kappa: float) -> Problem:
    """Draw the same data each time."""
    rng = np.random.default_rng([num_rows, num_columns, int(10 * kappa)])
    return draw_problem(rng, num_rows, kappa, num_columns)


def watch(stopwatch: Stopwatch) -> None:
    """Put the parts of a step under the clock."""
    from pymc.step_methods.hmc.base_hmc import BaseHMC

    from pymc_xbart.plugin import ensemble, likelihood, step, target

    stopwatch.watch(ensemble, "sweep", SWEEP)
    stopwatch.watch(ensemble, "sum_of_trees", SUM_OF_TREES)
    stopwatch.watch(likelihood.Likelihood, "gradient_curvature", GRADIENT)
    stopwatch.watch(target.Target, "write", STORING)
    stopwatch.watch(step.XBARTStep, "step", STEP)
    stopwatch.watch(BaseHMC, "astep", NUTS)


class Progress:
    """Where the clocks stood on the way; `pm.sample` calls it after each draw."""

    def __init__(self, stopwatch: Stopwatch, account: Any, tune: int) -> None:
        self.stopwatch = stopwatch
        self.account = account
        self.tune = tune
        self.num_draws = 0
        self.end = 0.0
        self.first = self.tuned = (0.0, {})  # after the first draw, and after tuning
        self.ticks = 0, 0.0  # after tuning, on both clocks

    def __call__(self, **_unused: Any) -> None:
        """Count a draw."""
        self.num_draws += 1
        self.end = time.perf_counter()
        if self.num_draws == 1:
            self.first = self.end, dict(self.stopwatch.seconds)
        if self.num_draws == self.tune:
            if self.account is not None:
                self.account.clear()
                self.ticks = self.account.now(), self.end
            self.tuned = time.perf_counter(), dict(self.stopwatch.seconds)

    def since(self, mark: tuple[float, dict[str, float]]) -> tuple[float, dict[str, float]]:
        """Seconds of the loop, and of its parts, since then."""
        wall, before = mark
        parts = self.stopwatch.seconds.items()
        return self.end - wall, {part: spent - before.get(part, 0.0) for part, spent in parts}

    def kernels(self) -> dict[str, Any]:
        """What kernels have done since tuning ended."""
        if self.account is None:
            return {}
        ticks, wall = self.ticks
        seconds_per_tick = (time.perf_counter() - wall) / (self.account.now() - ticks)
        return {"kernels": self.account.read(seconds_per_tick), "missing": self.account.missing}


def rows_to_read(forest: Any, leaf_of_row: np.ndarray) -> dict[str, float]:
    """How many rows somebody must look at who grows a tree like these, or redraws a split.

    Growing needs the sums of the root, and of one child of each split, the smaller one; those of
    the other follow. Redrawing needs those of a site, a node that is a leaf or whose children are.
    """
    from pymc_xbart.kernels import rows_of_leaves

    rows = rows_of_leaves(forest, leaf_of_row)
    num_trees, num_rows = leaf_of_row.shape
    grown, sites = float(num_trees * num_rows), []
    for start, stop in zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True):
        of_sites = []
        for node in range(stop - 1, start - 1, -1):  # children come after their parents
            left = start + forest.left[node]
            if left >= start:
                rows[node] = rows[left] + rows[left + 1]
                grown += min(rows[left], rows[left + 1])
            if left < start or (forest.left[left : left + 2] < 0).all():
                of_sites.append(rows[node])
        sites.append(np.mean(of_sites))
    return {"rows_to_grow": grown / num_trees, "rows_of_site": float(np.mean(sites))}


def sample(data: Problem, settings: dict[str, Any], account: Any) -> dict[str, Any]:
    """Sample the model, and say where the time went."""
    import pymc as pm

    import pymc_xbart as pxb

    X, y, f_true, noise_sd = data
    tune = settings["tune"]
    with pm.Model():
        f = pxb.XBARTForest("f", X, y=y, num_trees=settings["num_trees"])
        pm.Normal("y", f, pm.HalfNormal("noise", noise_sd), observed=y)
        step = pxb.XBARTStep(correction=settings["correction"])
        progress = Progress(STOPWATCH, account, tune)
        STOPWATCH.clear()
        idata = pm.sample(
            **{"step": step, "tune": tune, "draws": settings["draws"], "chains": 1, "cores": 1},
            **{"random_seed": settings["seed"], "progressbar": False, "quiet": True},
            **{"compute_convergence_checks": False, "callback": progress},
        )
    seconds, parts = progress.since(progress.first)
    kept_seconds, kept_parts = progress.since(progress.tuned)
    judged = judge(idata["posterior"]["f"].to_numpy()[..., :NUM_POINTS], f_true[:NUM_POINTS])
    return {
        **{"seconds": seconds, "parts": parts},
        **{"kept_seconds": kept_seconds, "kept_parts": kept_parts},
        **progress.kernels(),
        "leaves": float(idata["sample_stats"]["f_leaves"].mean()),
        **rows_to_read(*step.forests["f"][0][:2]),
        **{name: judged[name] for name in ("ess", "rmse", "coverage")},
    }


def main() -> None:
    warnings.simplefilter("ignore")
    settings = json.load(sys.stdin)
    account = None
    if settings["kernels"]:
        from watched_kernels import watch_kernels

        account = watch_kernels()
    watch(STOPWATCH)
    results = []
    for rows, draws in zip(settings["rows"], settings["draws"], strict=True):
        data = simulate(rows, settings["columns"], settings["kappa"])
        sample(data, settings | FEW, account)
        results.append({"rows": rows, **sample(data, settings | {"draws": draws}, account)})
    print(json.dumps(results))


if __name__ == "__main__":
    main()
