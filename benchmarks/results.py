"""What benchmarks print and keep: tables in Markdown, runs in CSV, and the machine's name.

They keep it in `results`, or in the folder that the variable BENCHMARK_RESULTS names: a look with
few draws should not replace what was measured in earnest.
"""

import csv
import math
import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(os.environ.get("BENCHMARK_RESULTS") or Path(__file__).with_name("results"))


def describe_machine() -> str:
    """Processor, number of cores, operating system and versions of what runs here."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("pymc-xbart", "numba", "numpy"))
    return (
        f"{processor_name()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}; "
        f"Python {platform.python_version()}, {versions}"
    )


def processor_name() -> str:
    """Name of the processor, as far as the system tells."""
    try:  # only Linux has it, and `platform.processor()` is empty there
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def number(value: float | None, digits: int = 2) -> str:
    """Digits of a value, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown table that can also be read as it is: first column to the left, others right."""
    lines = [list(header), *(list(row) for row in rows)]
    # A rule needs a dash and a colon.
    widths = [max(2, *(len(line[k]) for line in lines)) for k in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines.insert(1, rule)
    return "\n".join("| " + " | ".join(aligned(line, widths)) + " |" for line in lines)


def aligned(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Cells padded to their columns' widths."""
    rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return [cells[0].ljust(widths[0]), *rest]


class Target(NamedTuple):
    """What this project asks of itself, beside what was measured."""

    what: str
    where: str  # the peer, the size, the cell
    measured: float
    low: float = -math.inf
    high: float = math.inf

    @property
    def wanted(self) -> str:
        """The bounds in words."""
        bounds = ("at least", self.low), ("at most", self.high)
        return ", ".join(f"{word} {bound:g}" for word, bound in bounds if math.isfinite(bound))

    @property
    def verdict(self) -> str:
        """Whether it was met."""
        return "met" if self.low <= self.measured <= self.high else "missed"


def table_of_targets(targets: Iterable[Target]) -> str:
    """Each target and its verdict."""
    rows = [[t.what, t.where, t.wanted, f"{t.measured:.3g}", t.verdict] for t in targets]
    if not rows:
        return "No target applies to what was measured."
    return table(["", "where", "wanted", "measured", ""], rows)


def keep(name: str, text: str, runs: Sequence[dict[str, Any]]) -> list[Path]:
    """Write the text to `results/NAME.md` and the runs to `results/NAME.csv`."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    markdown, table_of_runs = RESULTS / f"{name}.md", RESULTS / f"{name}.csv"
    markdown.write_text(text + "\n", encoding="utf-8")
    fields = list(dict.fromkeys(field for run in runs for field in run))
    with table_of_runs.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(runs)
    return [markdown, table_of_runs]


def read_runs(name: str) -> list[dict[str, Any]]:
    """Runs that `keep` has written under this name; none if there is no such file."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {field: as_number(text) for field, text in row.items()} for row in csv.DictReader(file)
        ]


def as_number(text: str) -> float | str:
    """Number in a text: an int where it has only digits; the text itself where it has none."""
    if text.isdigit():
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def notes_on_timing(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Warnings if the runs say that seconds can't be compared."""
    interrupted = sum(run["seconds"] > 1.1 * run["cpu_seconds"] + 0.05 for run in runs)
    threaded = sum(run["cpu_seconds"] > 1.1 * run["seconds"] + 0.05 for run in runs)
    notes = []
    if interrupted:
        notes.append(
            f"{interrupted} of {len(runs)} runs waited more than 10 % of their time for the "
            "processor. Other programs were running: repeat this on a quiet machine."
        )
    if threaded:
        notes.append(f"{threaded} of {len(runs)} runs used more than one thread.")
    return notes
