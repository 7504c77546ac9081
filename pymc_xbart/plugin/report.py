"""What sweeps did, as users see it (floor 2): statistics, progress bar, a warning at the end."""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from pymc.stats.convergence import SamplerWarning, WarningType
from rich.markup import escape
from rich.progress import TextColumn
from rich.table import Column

from pymc_xbart.forest.correction import LOW_ACCEPTANCE
from pymc_xbart.kernels import SweepInfo


class SweepReport(NamedTuple):
    """What one sweep over an ensemble did, averaged over trees."""

    leaves: float
    depth: float  # of the deepest leaf of a tree
    # Share of those grown from the root that were taken; 0 or 1 where the sweep is one proposal.
    acceptance: float


def report_of(info: SweepInfo) -> SweepReport:
    """Report on one sweep."""
    of_trees = info.num_leaves, info.depth, info.accepted[info.regrown]
    return SweepReport(*(fmean(each.tolist()) for each in of_trees))


def mean_of(reports: Sequence[SweepReport]) -> SweepReport:
    """Average the reports on several ensembles."""
    return SweepReport(*map(fmean, zip(*reports, strict=True)))


def stat_names(name: str) -> tuple[str, str, str]:
    """Names of the statistics of one forest, in the order of `SweepReport`."""
    return f"{name}_leaves", f"{name}_depth", f"{name}_acceptance"


def progress_columns(
    names: Sequence[str], num_chains: int
) -> tuple[list[TextColumn], dict[str, list[str]]]:
    """Two columns for each forest: leaves per tree, and share of trees replaced."""
    columns, fields = [], {}
    for name in names:
        for field, what in zip(_fields(name), ("leaves", "accepted"), strict=True):
            header = Column(escape(f"{name} {what}"), ratio=1)
            columns.append(TextColumn(f"{{task.fields[{field}]}}", table_column=header))
            fields[field] = ["-"] * num_chains
    return columns, fields


def _fields(name: str) -> tuple[str, str]:
    """What the bar calls the statistics of a forest, whose name may have brackets in it."""
    plain = name.encode().hex()
    return f"leaves_{plain}", f"accepted_{plain}"


def progress_update(names: Sequence[str]) -> Callable[[dict[str, Any]], dict[str, str]]:
    """Make the function that turns statistics into text for these columns."""
    shown: list[tuple[str, str, str]] = []  # field, statistic, format
    for name in names:
        leaves, _, acceptance = stat_names(name)
        shown += zip(_fields(name), (leaves, acceptance), (".1f", ".2f"), strict=True)

    def update(stats: dict[str, Any]) -> dict[str, str]:
        return {field: format(stats[stat], how) for field, stat, how in shown if stat in stats}

    return update


def low_acceptance(acceptance: dict[str, list[float]], correction: str) -> SamplerWarning | None:
    """Warning at the end of a chain that hardly moved.

    Parameters
    ----------
    acceptance : dict
        By name of the forest, that of each draw.
    correction : str
        Its kind, see `XBARTStep`.
    """
    rates = {name: fmean(rates) for name, rates in acceptance.items()}
    stuck = {name: rate for name, rate in rates.items() if rate < LOW_ACCEPTANCE}
    if not stuck:
        return None
    described = ", ".join(f"{name!r} ({rate:.3f})" for name, rate in stuck.items())
    change = (
        "Use correction='tree', or fewer trees."
        if correction == "sweep"
        else "Use more trees, or a noise prior that allows for more noise."
    )
    msg = (
        f"Proposals for the trees of {described} were hardly ever accepted, so that the chain "
        f"hardly moved. {change}"
    )
    return SamplerWarning(WarningType.BAD_ACCEPTANCE, msg, "warn")
