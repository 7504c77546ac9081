"""All benchmarks of speed and memory by one command, and one report.

    uv run benchmarks/suite.py                         everything: hours
    uv run benchmarks/suite.py --only startup memory   some of it; the report keeps the rest
    uv run benchmarks/suite.py --quick                 tiny sizes, minutes: does everything run?
    uv run benchmarks/suite.py --report                the report alone, of what there is

Each benchmark is a script of its own, with its own targets, which writes its tables to `results`.
The report, `results/report.md`, is these tables one behind another, with the commands that wrote
them, and before them every target that was missed. What `--quick` finds goes to `build/benchmarks`:
it says nothing about speed.

One at a time, so that the machine should have nothing else to do. Peers get environments of their
own at first use (see `peers`).
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
QUICK_RESULTS = HERE.parent / "build" / "benchmarks"


class Benchmark(NamedTuple):
    """One script with its arguments."""

    title: str
    full: str
    quick: str
    result: str  # name of its file in results
    quick_result: str | None = None  # where that depends on the arguments

    def arguments(self, *, is_quick: bool) -> list[str]:
        """Script and arguments."""
        return shlex.split(self.quick if is_quick else self.full)

    def name_of_result(self, *, is_quick: bool) -> str:
        """Name of its file in results."""
        return self.quick_result if is_quick and self.quick_result else self.result


BENCHMARKS = {
    "exact": Benchmark(
        "Exact sampling beside its peers",
        "exact_grid.py --reps 5 --resume",
        "exact_grid.py --rows 300 --noise 1 --trees 5 --effort 0.02",
        "exact_grid",
    ),
    "paper": Benchmark(
        "Uncorrected sweeps beside grow-from-root and boosting, n = 10 000",
        "paper_table.py --reps 5 --kappa 0.1 1 10",
        "paper_table.py --n 300 --reps 1 --functions Linear --kappa 1",
        "paper_table_10000",
        "paper_table_300",
    ),
    "paper50": Benchmark(
        "The same, n = 50 000",
        "paper_table.py --n 50000 --reps 5 --kappa 0.1 1 10",
        "paper_table.py --n 400 --reps 1 --functions Max --kappa 0.1",
        "paper_table_50000",
        "paper_table_400",
    ),
    "paper250": Benchmark(
        "The same, n = 250 000",
        "paper_table.py --n 250000 --reps 5 --functions 'Trig + poly' --kappa 0.1 1 10",
        "paper_table.py --n 500 --reps 1 --functions 'Trig + poly' --kappa 10",
        "paper_table_250000",
        "paper_table_500",
    ),
    "boosting": Benchmark(
        "Boosting with the paper's grid, n = 10 000",
        "paper_table.py --reps 1 --cv --name paper_table_cv",
        "paper_table.py --n 300 --reps 1 --functions Max --kappa 1 --cv --rounds 5 "
        "--name paper_table_cv",
        "paper_table_cv",
    ),
    "responses": Benchmark(
        "Sweeps under likelihoods that are not Normal",
        "nonquadratic.py",
        "nonquadratic.py --rows 300 --turns 3",
        "nonquadratic",
    ),
    "prediction": Benchmark(
        "Prediction",
        "prediction.py --reps 5",
        "prediction.py --rows 200 --draws 20 --trees 5 --reps 1 --repeats 1",
        "prediction",
    ),
    "overhead": Benchmark(
        "pm.sample beyond the kernels",
        "overhead.py",
        "overhead.py --rows 300 --trees 5 --reps 1 --tune 5 --draws 5",
        "overhead",
    ),
    "profile": Benchmark(
        "Where the time of a sweep goes",
        "profile.py",
        "profile.py --rows 300 2000 --tune 5",
        "profile",
    ),
    "scaling": Benchmark(
        "How the time of a sweep grows",
        "scaling.py",
        "scaling.py --most 1000 --sweeps 3 --axes rows trees",
        "scaling",
    ),
    "threads": Benchmark(
        "Threads inside a chain",
        "threads.py",
        "threads.py --rows 3000 --trees 5 --turns 2",
        "threads",
    ),
    "startup": Benchmark(
        "From nothing to the first fit", "startup.py", "startup.py --reps 1", "startup"
    ),
    "memory": Benchmark(
        "Memory",
        "memory.py",
        "memory.py --rows 1000 3000 --columns 5 --trees 5",
        "memory",
    ),
}


def main() -> None:
    args = parse_arguments()
    results = QUICK_RESULTS if args.quick else HERE / "results"
    failed = [] if args.report else run_all(args.only, results, is_quick=args.quick)
    results.mkdir(parents=True, exist_ok=True)
    path = results / "report.md"
    path.write_text(report(results, is_quick=args.quick), encoding="utf-8")
    print(f"Written: {path}", file=sys.stderr)
    if failed:
        raise SystemExit(f"Failed: {', '.join(failed)}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, results elsewhere")
    parser.add_argument("--report", action="store_true", help="run nothing")
    return parser.parse_args()


def run_all(names: list[str], results: Path, *, is_quick: bool) -> list[str]:
    """Run benchmarks one after another. Returns those that failed; the others go on."""
    failed = []
    for name in names:
        script, *arguments = BENCHMARKS[name].arguments(is_quick=is_quick)
        began = time.perf_counter()
        print(f"{name}: {shlex.join([script, *arguments])}", file=sys.stderr)
        done = subprocess.run(
            [sys.executable, HERE / script, *arguments],
            env=os.environ | {"BENCHMARK_RESULTS": str(results)},
            stdout=subprocess.DEVNULL,  # the tables, which the report will have
            check=False,
        )
        minutes = (time.perf_counter() - began) / 60
        print(f"{name}: {minutes:.1f} minutes", file=sys.stderr)
        if done.returncode != 0:
            failed.append(name)
    return failed


def report(results: Path, *, is_quick: bool) -> str:
    """Every benchmark's own tables, under one title."""
    found = list(sections(results, is_quick=is_quick))
    missing = [
        b.title for b in BENCHMARKS.values() if b not in {benchmark for benchmark, _ in found}
    ]
    parts = ["# Speed and memory"]
    if is_quick:
        parts.append("Tiny sizes, to see whether everything runs: nothing here is a result.")
    if missing:
        parts.append(f"Not measured yet: {'; '.join(missing)}.")
    parts.append("## Targets missed")
    parts.append("\n".join(missed(found)) or "None of those that apply to what was measured.")
    for benchmark, text in found:
        command = shlex.join(benchmark.arguments(is_quick=is_quick))
        parts += [f"## {benchmark.title}", f"    uv run benchmarks/{command}", demoted(text)]
    return "\n\n".join(parts) + "\n"


def missed(found: list[tuple[Benchmark, str]]) -> Iterator[str]:
    """Lines of the tables of targets that end so."""
    for benchmark, text in found:
        for line in text.splitlines():
            if line.endswith("missed |"):
                cells = [cell.strip() for cell in line.split("|")[1:-2]]
                yield f"- {benchmark.title}: {'; '.join(cell for cell in cells if cell)}"


def sections(results: Path, *, is_quick: bool) -> Iterator[tuple[Benchmark, str]]:
    """Benchmarks that have been run, and what they wrote."""
    for benchmark in BENCHMARKS.values():
        path = results / f"{benchmark.name_of_result(is_quick=is_quick)}.md"
        if path.exists():
            yield benchmark, path.read_text(encoding="utf-8")


def demoted(text: str) -> str:
    """The same without its title, other headings one level down."""
    lines = text.strip().splitlines()[1:]
    return "\n".join(f"#{line}" if line.startswith("#") else line for line in lines).strip()


if __name__ == "__main__":
    main()
