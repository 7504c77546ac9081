"""Options of a regressor, checked when it is fitted (floor 1)."""

from typing import Any, NamedTuple

from pymc_xbart.forest.calibration import default_num_trees
from pymc_xbart.forest.prior import (
    CORRECTIONS,
    TreeSettings,
    check_choice,
    check_cut_prior_fits,
    check_settings,
    positive_number,
    whole_number,
)


class Options(NamedTuple):
    """Options of `XBARTRegressor`, with defaults that depend on the size of X filled in."""

    settings: TreeSettings
    num_sweeps: int
    burnin: int
    mtry: int
    is_corrected: bool
    leaf_var: float | None
    noise_shape: float
    noise_rate: float | None


def check_options(params: dict[str, Any], num_rows: int, num_columns: int) -> Options:
    """Refuse options out of range; return the others as plain Python numbers.

    Parameters
    ----------
    params : dict
        As `XBARTRegressor.get_params` gives them.
    num_rows, num_columns : int
        Shape of X.
    """
    given = {name: params[name] for name in TreeSettings._fields}
    if given["num_trees"] is None:
        given["num_trees"] = default_num_trees(num_rows)
    num_sweeps, burnin = check_sweeps(params["num_sweeps"], params["burnin"])
    mtry = check_mtry(params["mtry"], num_columns)
    correction = params["correction"]
    check_correction(correction, mtry, num_columns)
    settings = check_settings(**given)
    check_cut_prior_fits(settings.cut_prior, correction)
    return Options(
        settings,
        num_sweeps,
        burnin,
        mtry,
        correction != "none",
        _positive_or_none(params["leaf_var"], "leaf_var"),
        positive_number(params["noise_shape"], "noise_shape"),
        _positive_or_none(params["noise_rate"], "noise_rate"),
    )


def check_sweeps(num_sweeps: Any, burnin: Any) -> tuple[int, int]:
    """Refuse a burn-in that leaves no sweep to keep."""
    num_sweeps = whole_number(num_sweeps, "num_sweeps")
    burnin = whole_number(burnin, "burnin", at_least=0)
    if burnin >= num_sweeps:
        msg = (
            f"burnin is {burnin} and num_sweeps {num_sweeps}, which leaves no sweep to keep. "
            "num_sweeps counts all sweeps, burn-in included: it must be larger than burnin."
        )
        raise ValueError(msg)
    return num_sweeps, burnin


def check_mtry(mtry: Any, num_columns: int) -> int:
    """Refuse to consider more columns than there are; all for None."""
    if mtry is None:
        return num_columns
    mtry = whole_number(mtry, "mtry")
    if mtry > num_columns:
        msg = (
            f"mtry is {mtry}, but X has {num_columns} column(s). Pass at most that number, or None "
            "for all columns."
        )
        raise ValueError(msg)
    return int(mtry)


def check_correction(correction: Any, mtry: int, num_columns: int) -> None:
    """Refuse corrections that are unknown, or not available for these options."""
    check_choice(correction, "correction", CORRECTIONS)
    if correction == "sweep":
        msg = (
            "correction='sweep' is not available in this version. Use correction='tree', which "
            "tests each new tree, or correction='none'."
        )
        raise NotImplementedError(msg)
    if correction != "none" and mtry < num_columns:
        msg = (
            f"correction={correction!r} with mtry={mtry} is not available in this version: column "
            "weights that follow the splits are no part of the prior, and what they do to a tree's "
            "proposal is not accounted for yet. Leave mtry out, or use correction='none'."
        )
        raise NotImplementedError(msg)


def _positive_or_none(value: Any, name: str) -> float | None:
    return None if value is None else positive_number(value, name)
