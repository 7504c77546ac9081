"""How the time of a sweep grows with rows, columns, columns considered, and trees.

    uv run benchmarks/scaling.py                              all of it
    uv run benchmarks/scaling.py --axes rows --most 100000    one axis, up to a size

An exact sweep and an uncorrected one, each as `XBARTStep` makes it, but without PyMC: f(x) is
Friedman's function of the first 5 of p uniform columns, noise 1, and its variance is known. One
thing varies at a time (`AXES`); what does not is n = 10 000, p = 10, 50 trees, and as many columns
considered as is usual.

Each chain first makes `ARRIVE` uncorrected sweeps. Then all chains of an axis take turns, sweep by
sweep; seconds are medians, of one thread, with the first and third quartile beside them. RMSE is
that of the mean of f over the timed sweeps; intervals of so few draws would say nothing.

The growth is the slope of log seconds over log size, by least squares: 1 is in proportion. For rows
it is that of seconds over log n, so that 1 is n log n, from 10 000 rows on.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from friedman import friedman
from results import Target, describe_machine, keep, number, table, table_of_targets

from pymc_xbart.forest.calibration import VARIANCE_SHARE, default_num_cutpoints
from pymc_xbart.forest.correction import Correction
from pymc_xbart.forest.views import encode_views
from pymc_xbart.kernels import Prior
from pymc_xbart.plugin.ensemble import Ensemble

NOISE_VAR = 1.0
ARRIVE = 15  # uncorrected sweeps before those that are timed
CORRECTIONS = {"tree": "exact", "none": "uncorrected"}
ALPHA, BETA = 0.95, 1.25
NO_LIMIT = 2**31 - 1
MIN_ROWS_OF_GROWTH = 10_000  # below, other things than rows take time
MAX_GROWTH = 1.05  # what this project asks of itself: in proportion, but for noise
SMALL = (300, 10, 50)  # rows, columns, trees
MAX_SMALL = 2.0  # milliseconds of an exact sweep


class Size(NamedTuple):
    """One problem."""

    rows: int = 10_000
    columns: int = 10
    mtry: int | None = None
    trees: int = 50


AXES = {
    "rows": [300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000],
    "columns": [5, 10, 20, 50, 100, 200, 500],
    "mtry": [5, 10, 20, 50, 100, 200, 500],
    "trees": [10, 30, 50, 100, 200, 300],
}


def size_on(axis: str, value: int) -> Size:
    """Problem at one place of an axis."""
    if axis == "mtry":
        return Size(columns=max(AXES["columns"]), mtry=value)
    return Size(**{axis: value})


class Chain:
    """An ensemble, and where it is."""

    def __init__(self, size: Size, kind: str) -> None:
        self.rng = np.random.default_rng([*size[:2], size.trees])
        X = self.rng.random((size.rows, size.columns))
        self.f_true = friedman(X)
        y = self.f_true + np.sqrt(NOISE_VAR) * self.rng.standard_normal(size.rows)
        self.residual_at_zero = y - y.mean()
        self.mean = y.mean()
        self.h = np.full(size.rows, 1.0 / NOISE_VAR)
        design, views = encode_views(X)
        leaf_var = VARIANCE_SHARE * y.var() / size.trees
        self.prior = Prior(
            *(ALPHA, BETA, leaf_var, np.ones(size.columns)),
            *(default_num_cutpoints(size.rows), 1, NO_LIMIT),
        )
        self.ensemble = Ensemble(design, views, self.prior, 0.0, size.trees)
        self.state = self.ensemble.stumps()
        for _ in range(ARRIVE):
            self.sweep(Correction("none", mtry=size.mtry))
        self.correction = Correction(kind, mtry=size.mtry)
        self.sweep(self.correction)  # compiled, and pages touched
        self.seconds: list[float] = []
        self.sum_f = np.zeros(size.rows)

    def sweep(self, correction: Correction) -> np.ndarray:
        """Sweep once. Returns f."""
        f = self.state.f
        g = self.h * (self.residual_at_zero - f)
        how = self.prior, self.rng, correction
        self.state, _ = self.ensemble.sweep(self.state, g, self.h, *how)
        return f

    def move(self) -> None:
        """Sweep once, and keep the time."""
        began = time.perf_counter()
        f = self.sweep(self.correction)
        self.seconds.append(time.perf_counter() - began)
        self.sum_f += f

    def rmse(self) -> float:
        """Of the mean of f over the timed sweeps."""
        mean = self.mean + self.sum_f / len(self.seconds)
        return float(np.sqrt(np.mean((mean - self.f_true) ** 2)))


def main() -> None:
    args = parse_arguments()
    runs = []
    for axis in args.axes:
        for kind in CORRECTIONS:
            runs += time_axis(axis, kind, args)
            keep("scaling", report(runs, args), runs)
    print(report(runs, args))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--axes", nargs="+", choices=AXES, default=list(AXES))
    parser.add_argument("--most", type=int, default=NO_LIMIT, help="largest place on any axis")
    parser.add_argument("--sweeps", type=int, default=7, help="of each chain, that are timed")
    return parser.parse_args()


def time_axis(axis: str, kind: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """All places on an axis, in turn."""
    places = [place for place in AXES[axis] if place <= args.most]
    chains = {place: Chain(size_on(axis, place), kind) for place in places}
    for _ in range(args.sweeps):
        for chain in chains.values():
            chain.move()
    runs = []
    for place, chain in chains.items():
        quartiles = np.quantile(chain.seconds, [0.25, 0.5, 0.75])
        seconds = dict(zip(("lower", "seconds", "upper"), quartiles.tolist(), strict=True))
        runs.append({"axis": axis, "kind": kind, "place": place, **seconds, "rmse": chain.rmse()})
        print(runs[-1], file=sys.stderr)
    return runs


def growth(axis: str, runs: list[dict[str, Any]]) -> float | None:
    """Slope of log seconds over log size."""
    least = MIN_ROWS_OF_GROWTH if axis == "rows" else 0
    places = np.array([run["place"] for run in runs if run["place"] >= least])
    seconds = np.array([run["seconds"] for run in runs if run["place"] >= least])
    if places.size < 2:
        return None
    if axis == "rows":
        seconds /= np.log(places)
    return float(np.polyfit(np.log(places), np.log(seconds), 1)[0])


def report(runs: list[dict[str, Any]], args: argparse.Namespace) -> str:
    parts = [
        "# How the time of a sweep grows",
        f"{describe_machine()}. One thread. Medians of {args.sweeps} sweeps in turn, and "
        "quartiles. Where nothing else is said: n = 10 000, 10 columns, 50 trees.",
        table_of_targets(targets(runs)),
    ]
    for axis in dict.fromkeys(run["axis"] for run in runs):
        what = "columns considered, of 500" if axis == "mtry" else axis
        parts += [f"## {what.capitalize()}", table_of_axis(axis, runs)]
    return "\n\n".join(parts)


def table_of_axis(axis: str, runs: list[dict[str, Any]]) -> str:
    of = {(run["kind"], run["place"]): run for run in runs if run["axis"] == axis}
    rows = []
    for place in dict.fromkeys(place for _, place in of):
        row = [str(place)]
        for kind in CORRECTIONS:
            run = of.get((kind, place))
            row += ["-"] * 3 if run is None else figures(axis, run)
        rows.append(row)
    header = [axis]
    for label in CORRECTIONS.values():
        header += [f"ms, {label}", "microseconds / n log n" if axis == "rows" else "/ size", "RMSE"]
    return table(header, rows)


def figures(axis: str, run: dict[str, Any]) -> list[str]:
    """Milliseconds, those of a unit of size, and RMSE."""
    lower, middle, upper = (1e3 * run[name] for name in ("lower", "seconds", "upper"))
    place = run["place"]
    each = 1e3 * middle / (place * np.log(place)) if axis == "rows" else middle / place
    return [f"{middle:.3g} ({lower:.3g} to {upper:.3g})", f"{each:.3g}", number(run["rmse"], 3)]


def targets(runs: list[dict[str, Any]]) -> Iterator[Target]:
    """What this project asks of itself: how sweeps grow, and one small exact sweep."""
    for axis in ("rows", "columns", "mtry"):
        for kind, label in CORRECTIONS.items():
            own = [run for run in runs if (run["axis"], run["kind"]) == (axis, kind)]
            slope = growth(axis, own)
            if slope is not None:
                law = "n log n" if axis == "rows" else "in proportion"
                yield Target(f"growth with {axis}, 1: {law}", label, slope, high=MAX_GROWTH)
    rows, _, _ = SMALL
    for run in runs:
        if (run["axis"], run["kind"], run["place"]) == ("rows", "tree", rows):
            where = "n = {}, {} columns, {} trees".format(*SMALL)
            yield Target("ms of an exact sweep", where, 1e3 * run["seconds"], high=MAX_SMALL)


if __name__ == "__main__":
    main()
