"""Options of a regressor, checked when it is fitted (floor 1)."""

from typing import Any, NamedTuple

from pymc_xbart.forest.calibration import default_num_trees
from pymc_xbart.forest.correction import Correction, check_correction, check_fits
from pymc_xbart.forest.prior import (
    TreeSettings,
    check_choice,
    check_settings,
    positive_number,
    whole_number,
)
from pymc_xbart.forest.threads import check_num_threads

NOISE_UPDATES = ("sweep", "tree")


class Options(NamedTuple):
    """Options of `XBARTRegressor`, with defaults that depend on the size of X filled in."""

    settings: TreeSettings
    num_sweeps: int
    burnin: int
    correction: Correction
    leaf_var: float | None
    noise_shape: float
    noise_rate: float | None
    noise_update: str
    num_threads: int


def check_options(
    params: dict[str, Any], shape: tuple[int, ...], categorical: tuple[int, ...] = ()
) -> Options:
    """Refuse options out of range; return the others as plain Python numbers.

    Parameters
    ----------
    params : dict
        As `XBARTRegressor.get_params` gives them.
    shape : tuple of int
        That of X, (n, p).
    categorical : tuple of int
        Its columns of categories, whatever `params` says of them.
    """
    num_rows, num_columns = shape
    given = {name: params[name] for name in TreeSettings._fields} | {"categorical": categorical}
    if given["num_trees"] is None:
        given["num_trees"] = default_num_trees(num_rows)
    num_sweeps, burnin = check_sweeps(params["num_sweeps"], params["burnin"])
    correction = check_correction(params["correction"], "paper", params["mtry"], params["regrow"])
    settings = check_settings(**given)
    check_fits(correction, settings.cut_prior, num_columns)
    return Options(
        settings,
        num_sweeps,
        burnin,
        correction,
        _positive_or_none(params["leaf_var"], "leaf_var"),
        positive_number(params["noise_shape"], "noise_shape"),
        _positive_or_none(params["noise_rate"], "noise_rate"),
        check_noise_update(params["noise_update"], correction),
        check_num_threads(params["num_threads"]),
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


def check_noise_update(noise_update: Any, correction: Correction) -> str:
    """Refuse to draw the noise variance amid a sweep that is one proposal."""
    check_choice(noise_update, "noise_update", NOISE_UPDATES)
    if noise_update == "tree" and correction.kind == "sweep":
        msg = (
            "noise_update='tree' can't be combined with correction='sweep', under which all trees "
            "are proposed at once. Leave noise_update out."
        )
        raise ValueError(msg)
    return str(noise_update)


def _positive_or_none(value: Any, name: str) -> float | None:
    return None if value is None else positive_number(value, name)
