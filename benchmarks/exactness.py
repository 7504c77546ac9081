"""How often the corrections accept, and what the uncorrected sweep gets wrong.

    uv run benchmarks/exactness.py          the whole grid: a quarter of an hour of processor time
    uv run benchmarks/exactness.py --quick  few sweeps in some of its cells: less than a minute

y = f(x) + noise, with Friedman's function f of the first 5 of 10 uniform columns, on a grid of n,
noise and number of trees; one data set for each n, in which only the scale of the noise differs.
In each cell two chains of `XBARTRegressor(correction="tree")`, whose law is the posterior, and two
with `correction="none"` keep equally many draws. Trees of both consider all columns; everything
else is as by default. Half of the sweeps of "tree" are burn-in, the first 15 of them uncorrected;
that of "none" is 15, as in the paper. Intervals and errors are those of f at the first 200 training
rows. Whole forests are proposed from states of the chains of "tree", to which "sweep" would lead as
well.
"""

import argparse
import sys
import time
from itertools import product
from typing import NamedTuple

import numpy as np
from arviz_stats.base import array_stats
from friedman import NUM_COLUMNS, Problem, draw_problem
from results import describe_machine, keep, number, table

from pymc_xbart import XBARTRegressor
from pymc_xbart.forest.correction import BURN_IN, SCANS
from pymc_xbart.forest.prior import TreeSettings, check_split_weights, tree_prior
from pymc_xbart.kernels import (
    encode,
    find_leaves,
    make_workspace,
    propose_forest,
    sum_of_trees,
)

NOISES = (0.1, 0.3, 1, 10)  # sd of the noise / sd(f)
TREES = (5, 20, 50, 200)
NUM_CHAINS = 2
MAX_JUDGED = 200  # rows at which f is compared with its draws
HALF_WIDTH = 1.96  # of a 95 % interval, in standard deviations
MAX_RHAT = 1.1

LEGEND = f"""\
- noise: its standard deviation over that of f.
- tree accepts: share of trees, grown from the root, that passed their test.
- sweep: mean of min(1, ratio) over whole forests, the expected share of accepted ones, under either
  scan. The mean of very unequal numbers is that of the largest: take the small ones for orders of
  magnitude.
- R-hat, of the chains of "tree": that of the noise, or the median over rows of f if that is larger.
  Above {MAX_RHAT} it is marked: chains do not agree, and what stands to the right compares runs
  of this length and not laws.
- noise sd: posterior mean over truth, for "tree" and "none".
- coverage: share of rows whose 95 % interval holds the true f, for both. f is no draw from the
  prior, so that exact intervals need not hold it in 95 % of the rows: compare the two.
- bias: how far means of f are apart under "none" and "tree", in posterior standard deviations; root
  mean square over rows, with Monte Carlo error taken out.
- RMSE of the mean of f, that of "none" over that of "tree"."""

Figures = dict[str, float]
Cells = dict[tuple[float, int], Figures]  # by noise and number of trees


class Plan(NamedTuple):
    """How much each chain does."""

    draws: int  # kept, with 50 trees
    proposals: int  # of whole forests, by each scan

    def draws_with(self, num_trees: int) -> int:
        """Draws to keep. With few trees they cost little and are much alike: so make more."""
        return round(self.draws * (50 / num_trees) ** 0.5)


PLANS = {100: Plan(400, 50), 1_000: Plan(300, 20), 10_000: Plan(150, 10)}  # by n
QUICK_PLANS = {100: Plan(20, 5), 1_000: Plan(20, 5)}
QUICK_TREES = (5, 50)


def simulate(n: int, noise: float) -> Problem:
    """Draw n rows, the same ones for every noise."""
    return draw_problem(np.random.default_rng(n), n, noise)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a look; writes no results")
    is_quick = parser.parse_args().quick
    plans, trees = (QUICK_PLANS, QUICK_TREES) if is_quick else (PLANS, TREES)
    measure(simulate(20, 1), 2, Plan(1, 1))  # compiles
    began = time.process_time()  # others may use the machine, too
    grid: dict[int, Cells] = {n: {} for n in plans}
    for n, noise, num_trees in product(plans, NOISES, trees):
        print(f"n {n}, noise {noise}, {num_trees} trees", file=sys.stderr, flush=True)
        grid[n][noise, num_trees] = measure(simulate(n, noise), num_trees, plans[n])
    minutes = (time.process_time() - began) / 60
    machine = f"{describe_machine()}. One thread; {minutes:.0f} minutes of processor time."
    sections = [section(n, plans[n], cells) for n, cells in grid.items()]
    text = "\n\n".join(["# Exactness", machine, LEGEND, *sections])
    print(text)
    if not is_quick:
        for path in keep("exactness", text, as_runs(grid)):
            print(f"Written: {path}", file=sys.stderr)


def measure(problem: Problem, num_trees: int, plan: Plan) -> Figures:
    """Run chains of both kinds on one data set, and propose whole forests from the exact ones."""
    num_draws = plan.draws_with(num_trees)
    tree, none = (
        [
            XBARTRegressor(
                num_trees=num_trees,
                num_sweeps=burnin + num_draws,
                burnin=burnin,
                mtry=NUM_COLUMNS,
                correction=correction,
                random_state=chain,
            ).fit(problem.X, problem.y)
            for chain in range(NUM_CHAINS)
        ]
        for correction, burnin in (("tree", num_draws), ("none", BURN_IN))
    )
    f_tree, f_none = draws_of_f(tree, problem), draws_of_f(none, problem)
    noise_tree, noise_none = draws_of_noise(tree, problem), draws_of_noise(none, problem)
    rmse_tree, rmse_none = (root_mean_square(error(f, problem)) for f in (f_tree, f_none))
    figures = {
        "acceptance": float(np.mean([acceptance(chain) for chain in tree])),
        "rhat": max(rhat(f_tree), rhat(noise_tree[..., None])),
        "noise_tree": float(noise_tree.mean()),
        "noise_none": float(noise_none.mean()),
        "coverage_tree": coverage(f_tree, problem),
        "coverage_none": coverage(f_none, problem),
        "bias": bias(f_tree, f_none),
        "rmse_ratio": rmse_none / rmse_tree,
    }
    for scan in SCANS:
        log_ratio = [propose_forests(chain, problem, plan.proposals, scan) for chain in tree]
        figures[f"log10_acceptance_{scan}"] = log10_acceptance(np.concatenate(log_ratio))
    return figures


def draws_of_f(chains: list[XBARTRegressor], problem: Problem) -> np.ndarray:
    """Draws of f at the rows that are judged, (chain, draw, row)."""
    rows = problem.X[:MAX_JUDGED]
    return np.stack([chain.predict(rows, return_draws=True) for chain in chains])


def draws_of_noise(chains: list[XBARTRegressor], problem: Problem) -> np.ndarray:
    """Draws of the noise's standard deviation over the true one, (chain, draw)."""
    return np.stack([chain.noise_sd_[chain.burnin :] for chain in chains]) / problem.noise_sd


def acceptance(chain: XBARTRegressor) -> float:
    """Share of the trees grown from the root after burn-in that were taken."""
    accepted, regrown = chain.accepted_[chain.burnin :], chain.regrown_[chain.burnin :]
    return float(accepted[regrown].mean())


def error(f: np.ndarray, problem: Problem) -> np.ndarray:
    """Error of the mean of all draws, (row,)."""
    return f.mean(axis=(0, 1)) - problem.f[:MAX_JUDGED]


def deviation(f: np.ndarray) -> np.ndarray:
    """Standard deviation of each row's draws, all chains together, (row,)."""
    return f.std(axis=(0, 1), ddof=1)


def coverage(f: np.ndarray, problem: Problem) -> float:
    """Share of rows whose interval covers the true f.

    Quantiles of a few dozen draws would be too close together, so that intervals are those of a
    Normal law with the draws' mean and deviation.
    """
    return float(np.mean(np.abs(error(f, problem)) <= HALF_WIDTH * deviation(f)))


def bias(f_tree: np.ndarray, f_none: np.ndarray) -> float:
    """Distance of two laws' means of f, in deviations of the first: root mean square over rows."""
    difference = (f_none.mean(axis=1) - f_tree.mean(axis=1)) / deviation(f_tree)
    # Chains are independent, so that Monte Carlo errors drop out of the product of two of them,
    # while they would add up in a square.
    return float(np.sqrt(max(0.0, np.mean(difference[0] * difference[1]))))


def root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def rhat(draws: np.ndarray) -> float:
    """Median over the last axis of (chain, draw, quantity)."""
    return float(np.median(array_stats.rhat(draws, chain_axis=0, draw_axis=1)))


def propose_forests(model: XBARTRegressor, problem: Problem, times: int, scan: str) -> list[float]:
    """Logarithms of the ratios of whole-forest proposals, from kept states spread evenly."""
    n = problem.y.size
    design = encode(problem.X)
    prior = tree_prior(
        TreeSettings(model.num_trees_),  # with the regressor's defaults
        sigma=(model.leaf_var_ * model.num_trees_) ** 0.5,
        split_weights=check_split_weights(None, NUM_COLUMNS),
        num_rows=n,
    )
    work = make_workspace(n, NUM_COLUMNS, prior.num_cutpoints)
    rng = np.random.default_rng([model.random_state, SCANS.index(scan)])
    log_ratios = []
    for k in np.linspace(0, len(model.forests_) - 1, times).astype(int):
        forest = model.forests_[k]
        leaf_of_row = find_leaves(forest, design.codes)
        h = np.full(n, model.noise_sd_[model.burnin + k] ** -2)
        g = h * (problem.y - model.mean_ - sum_of_trees(forest, leaf_of_row))
        _, _, log_ratio, _ = propose_forest(
            forest, leaf_of_row, g, h, design, prior, work, rng, scan=scan
        )
        log_ratios.append(log_ratio)
    return log_ratios


def log10_acceptance(log_ratio: np.ndarray) -> float:
    """Common logarithm of the mean of min(1, ratio), which may be below the smallest float."""
    log10 = np.minimum(log_ratio, 0) / np.log(10)
    return float(log10.max() + np.log10(np.mean(10.0 ** (log10 - log10.max()))))


def section(n: int, plan: Plan, cells: Cells) -> str:
    """Title and table of one n."""
    trees = list(dict.fromkeys(num_trees for _, num_trees in cells))
    draws = ", ".join(str(plan.draws_with(num_trees)) for num_trees in trees)
    header = [
        *("noise", "trees", "tree accepts", "sweep: paper", "reversible", "R-hat"),
        *("noise sd: tree", "none", "coverage: tree", "none", "bias", "RMSE"),
    ]
    rows = [
        [str(noise), str(num_trees), *row_of(figures)]
        for (noise, num_trees), figures in cells.items()
    ]
    return (
        f"## n = {n}\n\n"
        f"Draws of a chain, with {', '.join(map(str, trees))} trees: {draws}. Whole forests "
        f"proposed, by each scan: {NUM_CHAINS * plan.proposals}.\n\n{table(header, rows)}"
    )


def row_of(figures: Figures) -> list[str]:
    mark = " *" if figures["rhat"] > MAX_RHAT else ""
    return [
        number(figures["acceptance"]),
        *(power_of_ten(figures[f"log10_acceptance_{scan}"]) for scan in SCANS),
        number(figures["rhat"]) + mark,
        *(
            number(figures[name])
            for name in ("noise_tree", "noise_none", "coverage_tree", "coverage_none")
        ),
        number(figures["bias"], 1),
        number(figures["rmse_ratio"]),
    ]


def power_of_ten(log10: float) -> str:
    """Two digits where they say something, otherwise the power."""
    return number(10**log10) if log10 > -2 else f"1e{log10:.0f}"


def as_runs(grid: dict[int, Cells]) -> list[dict[str, float]]:
    return [
        {"n": n, "noise": noise, "num_trees": num_trees} | figures
        for n, cells in grid.items()
        for (noise, num_trees), figures in cells.items()
    ]


if __name__ == "__main__":
    main()
