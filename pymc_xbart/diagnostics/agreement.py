"""`ConvergenceSummary`: what is known of a run's convergence, in numbers and words (floor 2)."""

import html
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pymc_xbart.diagnostics.quantities import labels_of
from pymc_xbart.diagnostics.verdict import R_HAT

WIDTH = 96  # characters of a line of text: that of the table, as a rule
WHICH = ("r_hat", "ess_bulk", "ess_tail")


@dataclass(frozen=True, repr=False)
class ConvergenceSummary:
    """What `convergence_summary` returns. Print it, or take what you need.

    Attributes
    ----------
    elements : dict of str to xarray.Dataset
        Of each quantity ``r_hat``, ``ess_bulk`` and ``ess_tail``, over the dims that it has beside
        chain and draw. ``summary["f"]`` is short for ``summary.elements["f"]``.
    mixing : xarray.Dataset
        Draws, (chain, draw), of what should mix if anything does: mean and variance of each f over
        its rows, leaves and depth of its trees, share of proposed trees that were accepted.
    forests : tuple of str
        Whose trees were sampled, of the quantities.
    advice : tuple of str
        What the numbers mean, and what to do; a thought each, the verdict first.
    """

    elements: Mapping[str, xr.Dataset]
    mixing: xr.Dataset
    forests: tuple[str, ...]
    advice: tuple[str, ...]

    def __getitem__(self, name: str) -> xr.Dataset:
        return self.elements[name]

    @property
    def table(self) -> Any:
        """A line for each quantity, over all its elements, as a pandas.DataFrame.

        elements : how many there are
        r_hat, r_hat_max : median and largest R-hat; NaN where all draws are the same
        above : share of the elements whose R-hat is above 1.01
        ess_bulk, ess_bulk_min, ess_tail, ess_tail_min : median and smallest effective sample size
        """
        lines = [_line(each) for each in self.elements.values()]
        columns = {column: ("quantity", [line[column] for line in lines]) for column in lines[0]}
        return xr.Dataset(columns, {"quantity": list(self.elements)}).to_dataframe()

    def worst(self, count: int = 5) -> Any:
        """Elements with the largest R-hat, of all quantities, as a pandas.DataFrame."""
        names = [
            name
            for key, each in self.elements.items()
            for name in names_of_elements(key, each["r_hat"])
        ]
        r_hat, *ess = (
            np.concatenate([each[which].values.ravel() for each in self.elements.values()])
            for which in WHICH
        )
        order = np.lexsort((ess[0], -r_hat))  # NaN last
        order = order[: min(count, int((~np.isnan(r_hat)).sum()))]
        columns = {
            which: ("element", values[order])
            for which, values in zip(WHICH, (r_hat, *ess), strict=True)
        }
        return xr.Dataset(columns, {"element": [names[k] for k in order]}).to_dataframe()

    def __str__(self) -> str:
        worst = ", ".join(f"{name} {r_hat:.3f}" for name, r_hat in self.worst()["r_hat"].items())
        table = self.table.to_string(**STYLE)
        largest = textwrap.fill(f"Largest R-hat: {worst or 'none'}", WIDTH)
        words = [textwrap.fill(thought, WIDTH) for thought in self.advice]
        return "\n".join([table, largest, "", *words])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{html.escape(thought)}</p>" for thought in self.advice)
        return f"{self.table.to_html(**STYLE)}{words}"


def _line(each: xr.Dataset) -> dict[str, float]:
    r_hat, *sizes = (each[which].values.ravel() for which in WHICH)
    line = {
        "elements": r_hat.size,
        "r_hat": _over(np.median, r_hat),
        "r_hat_max": _over(np.max, r_hat),
        "above": float((r_hat > R_HAT).mean()),
    }
    for which, size in zip(WHICH[1:], sizes, strict=True):
        line |= {which: _over(np.median, size), f"{which}_min": _over(np.min, size)}
    return line


def _over(reduce: Any, values: NDArray[np.float64]) -> float:
    """Reduce what is a number; NaN if nothing is."""
    numbers = values[~np.isnan(values)]
    return float(reduce(numbers)) if numbers.size else np.nan


def names_of_elements(name: str, values: xr.DataArray) -> list[str]:
    """Name of each element of a quantity, as ArviZ writes them: "noise", "f[12]", "g[b, 12]"."""
    return [f"{name}[{label}]" for label in labels_of(values)] if values.dims else [name]


SPECS = {"elements": ".0f", "r_hat": ".3f", "r_hat_max": ".3f", "above": ".0%"}
FORMATTERS = {
    column: f"{{:{SPECS.get(column, '.0f')}}}".format
    for column in (*SPECS, "ess_bulk", "ess_bulk_min", "ess_tail", "ess_tail_min")
}
STYLE: dict[str, Any] = {"formatters": FORMATTERS, "index_names": False, "na_rep": "-"}
