"""How long f takes at new rows, and how much memory, beside stochtree.

    uv run benchmarks/prediction.py                  1 000 draws x 10 000 rows x 50 trees
    uv run benchmarks/prediction.py --rows 1000      less

Both methods are fitted to Friedman's function of the first 5 of 10 columns, n = 1 000, noise 1,
with as many trees and as many kept draws, and predict the same rows with all of them, with one
thread. What is timed is the call that a user makes: from the stored draws and an array to an array
of all draws. Methods take turns, each in a fresh process that fits once and predicts `--repeats`
times; medians over all of them. Memory is what the process has grown by beyond the result itself,
at its peak.
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from friedman import NUM_COLUMNS, friedman
from peers import peer_versions, run_alone
from results import describe_machine, keep, number, table

ONE_PREDICTION = Path(__file__).with_name("one_prediction.py")
ENVIRONMENTS = {"pymc_xbart": None, "stochtree": "peers"}
NUM_ROWS = 1_000
MAX_RATIO = 1 / 3  # to stochtree's time: what this project asks of itself


def save_data(folder: Path, num_new: int, seed: int) -> None:
    """Write X, y and new rows where `one_prediction` finds them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(NUM_ROWS, NUM_COLUMNS))
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", friedman(X) + rng.normal(size=NUM_ROWS))
    np.save(folder / "X_new.npy", rng.uniform(size=(num_new, NUM_COLUMNS)))


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    """All methods, in turn; one line for each prediction."""
    settings = {"num_trees": args.trees, "draws": args.draws, "repeats": args.repeats}
    runs = []
    for replication in range(args.reps):
        with tempfile.TemporaryDirectory() as name:
            save_data(Path(name), args.rows, replication)
            for method, environment in ENVIRONMENTS.items():
                result = run_alone(ONE_PREDICTION, method, Path(name), settings, environment)
                seconds = result.pop("seconds")
                labels = {"method": method, "replication": replication}
                runs += [labels | result | {"seconds": each} for each in seconds]
    return runs


def summary(runs: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """Both methods side by side, in Markdown."""
    of = {method: [run for run in runs if run["method"] == method] for method in ENVIRONMENTS}
    seconds = {m: statistics.median(run["seconds"] for run in each) for m, each in of.items()}
    memory = {m: max(run["bytes_beyond_result"] for run in each) for m, each in of.items()}
    rows = [
        [
            method,
            number(seconds[method]),
            number(1e9 * seconds[method] / (args.draws * args.rows * args.trees), 1),
            number(memory[method] / 1e6, 0),
        ]
        for method in ENVIRONMENTS
    ]
    ratio = seconds["pymc_xbart"] / seconds["stochtree"]
    verdict = "met" if ratio <= MAX_RATIO else "missed"
    peers = peer_versions()
    return "\n\n".join(
        [
            "# Prediction",
            f"{describe_machine()}; stochtree {peers['stochtree']}. One thread. "
            f"{args.draws} draws, {args.rows} rows, {args.trees} trees; "
            f"{len(of['pymc_xbart'])} predictions each.",
            table(["method", "seconds", "ns a row, draw and tree", "MB beyond the result"], rows),
            f"pymc_xbart takes {ratio:.3f} of stochtree's time; wanted: at most {MAX_RATIO:.2f}, "
            f"{verdict}.",
        ]
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000, help="new rows")
    parser.add_argument("--draws", type=int, default=1_000, help="kept draws")
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--reps", type=int, default=3, help="data sets")
    parser.add_argument("--repeats", type=int, default=2, help="predictions of each fit")
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    runs = run(args)
    text = summary(runs, args)
    print(text)
    for path in keep("prediction", text, runs):
        print(f"Written: {path}")


if __name__ == "__main__":
    main()
