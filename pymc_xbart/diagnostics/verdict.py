"""Convergence in words (floor 2): what the numbers mean, and what to do."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray as xr

from pymc_xbart.forest.correction import LOW_ACCEPTANCE

R_HAT = 1.01  # Vehtari et al. (2021), section 4
ESS = 400  # the same: with fewer, R-hat and these numbers themselves are too rough
# Of thousands of rows some are beyond by chance. More than this share is not chance, nor is a
# single R-hat as large as this.
MAX_SHARE, MAX_R_HAT = 0.05, 1.1
MIN_CHAINS, MIN_DRAWS = 4, 100
MAX_FACTOR = 20  # times as many draws: beyond, the answer is another model or sampler
MAX_NAMED = 5  # quantities that a sentence lists


class Run(NamedTuple):
    """What is to be known of a run beside the numbers of its quantities."""

    num_chains: int
    num_draws: int  # of each chain
    forests: tuple[str, ...]
    statistics: xr.Dataset  # of the samplers, by chain and draw


def advise(elements: Mapping[str, xr.Dataset], run: Run) -> tuple[str, ...]:
    """Say what the numbers mean.

    Parameters
    ----------
    elements : mapping of str to xarray.Dataset
        Of each quantity ``r_hat``, ``ess_bulk`` and ``ess_tail``.
    run : Run

    Returns
    -------
    tuple of str
        A thought each.
    """
    return (
        *_not_numbers(elements),
        *_verdict(elements, run),
        *_few_chains(run),
        *_acceptance(run),
        *_nuts(run),
        *_left_out(elements, run),
    )


def _not_numbers(elements: Mapping[str, xr.Dataset]) -> list[str]:
    names = [name for name, each in elements.items() if _has_nan(each)]
    return [f"Some draws of {_list(names)} are NaN: look for what makes them so."] if names else []


def _has_nan(each: xr.Dataset) -> bool:
    return bool(each["ess_bulk"].isnull().any())  # draws that are all the same have a size


def _verdict(elements: Mapping[str, xr.Dataset], run: Run) -> list[str]:
    if run.num_draws < MIN_DRAWS:
        return [
            f"{run.num_draws} draws a chain are too few to judge by. Sample {MIN_CHAINS} chains of "
            f"{MIN_DRAWS} or more."
        ]
    apart = [name for name, each in elements.items() if _is_apart(each)]
    few = [name for name, each in elements.items() if _lower_ess(each) < ESS]
    if apart:
        described = [f"{name} ({_describe(elements[name])})" for name in apart]
        return [
            f"The chains disagree on {_list(described)}. Report none of these yet.",
            *_what_holds(apart, few, run),
            _sample_more(elements, run, tune=True),
        ]
    if few:
        described = [f"{name} ({_lower_ess(elements[name]):.0f})" for name in few]
        return [
            f"The chains agree, but fewer than {ESS} draws are effective of {_list(described)}.",
            _sample_more(elements, run, tune=False),
        ]
    if any(map(_has_nan, elements.values())):
        return []
    return [
        f"R-hat and effective draws say nothing against convergence: at most {R_HAT} and at least "
        f"{ESS}, but for at most {MAX_SHARE:.0%} of the elements of any quantity."
    ]


def _is_apart(each: xr.Dataset) -> bool:
    r_hat = each["r_hat"]
    return bool((r_hat > R_HAT).mean() > MAX_SHARE or r_hat.max() > MAX_R_HAT)


def _lower_ess(each: xr.Dataset) -> float:
    """Effective sample size that all but a few elements have; of constants, as many as you like."""
    ess = np.minimum(each["ess_bulk"].values, each["ess_tail"].values)
    ess = ess[each["r_hat"].notnull().values]
    # The lowest but a whole number of elements, since interpolation would mix in the next.
    return float(np.quantile(ess, MAX_SHARE, method="lower")) if ess.size else math.inf


def _describe(each: xr.Dataset) -> str:
    r_hat = each["r_hat"]
    if r_hat.size == 1:
        return f"R-hat {float(r_hat):.2f}"
    return (
        f"R-hat above {R_HAT} in {float((r_hat > R_HAT).mean()):.0%} of {r_hat.size} elements, up "
        f"to {float(r_hat.max()):.2f}"
    )


def _what_holds(apart: list[str], few: list[str], run: Run) -> list[str]:
    """What may be said of forests whose rows disagree."""
    forests = [name for name in run.forests if name in apart]
    bad = {*apart, *few}
    averages = [f for f in forests if not bad & {mean_name(f), variance_name(f)}]
    by_trees = [f for f in run.forests if f"{f}_leaves" in apart or f"{f}_depth" in apart]
    settled = [f for f in by_trees if not bad & {f, mean_name(f), variance_name(f)}]
    levels = [f for f in forests if mean_name(f) in apart and variance_name(f) not in apart]
    found = []
    if averages:
        found.append(
            f"They do agree on mean and variance of {_list(averages)} over rows: averages converge "
            "before single rows do."
        )
    if settled:
        found.append(
            f"They do agree on {_list(settled)}, which trees of other shapes can make as well."
        )
    if levels:
        found.append(
            f"It is the level of {_list(levels)} that differs. Where other terms are added to it, "
            "group effects say, their sum can be known although its parts are not: put the sum "
            "into the posterior, and judge that."
        )
    return found


def _sample_more(elements: Mapping[str, xr.Dataset], run: Run, *, tune: bool) -> str:
    """How many draws it would take, and what else there is to do."""
    smallest = min(map(_lower_ess, elements.values()))
    factor = math.ceil(ESS / smallest) if smallest > 0 else math.inf
    if factor > MAX_FACTOR:
        sentence = f"More draws alone, over {MAX_FACTOR} times as many, are a long way."
    elif factor > 1:
        sentence = f"Sample about {factor} times as many draws."
    else:
        sentence = "Sample more draws."
    longer = " Tune for longer, so that chains can meet." if tune else ""
    change = (
        "Forests of more trees (num_trees)" if run.forests else "Other parameters of the model can"
    )
    return f"{sentence}{longer} {change} mix faster."


def _few_chains(run: Run) -> list[str]:
    if run.num_chains >= MIN_CHAINS or run.num_draws < MIN_DRAWS:
        return []  # the latter is said to be too little in any case
    if run.num_chains == 1:
        return [
            "A single chain has no other to disagree with: R-hat compares its halves. Sample "
            f"{MIN_CHAINS} chains."
        ]
    return [f"{run.num_chains} chains can agree by chance: {MIN_CHAINS} tell more."]


def _acceptance(run: Run) -> list[str]:
    rates = {f: float(run.statistics[f"{f}_acceptance"].mean()) for f in run.forests}
    stuck = [f"{name} ({rate:.3f})" for name, rate in rates.items() if rate < LOW_ACCEPTANCE]
    if not stuck:
        return []
    return [
        f"Proposals for the trees of {_list(stuck)} were hardly ever accepted, so that the chains "
        "hardly moved. Use more trees, or a noise prior that allows for more noise; with "
        "correction='sweep', use correction='tree'."
    ]


def _nuts(run: Run) -> list[str]:
    """What PyMC's own check would say of NUTS, since it is left out with that of f."""
    found = []
    if diverging := int(run.statistics.get("diverging", xr.DataArray(0)).sum()):
        found.append(
            f"{diverging} draws of NUTS diverged, so that it missed part of the posterior. "
            "Increase target_accept, or write the model in other parameters."
        )
    if deepest := float(run.statistics.get("reached_max_treedepth", xr.DataArray(0)).mean()):
        found.append(
            f"NUTS reached its largest tree depth in {deepest:.1%} of the draws. Increase "
            "max_treedepth, or write the model in other parameters."
        )
    return found


def _left_out(elements: Mapping[str, xr.Dataset], run: Run) -> list[str]:
    names = [name for name in run.forests if name not in elements]
    if not names:
        return []
    return [
        f"{_list(names)} not being in the posterior, only trees were looked at. Pass X, rows at "
        "which to evaluate."
    ]


def mean_name(forest: str) -> str:
    """Name of the mean of f over rows."""
    return f"mean of {forest}"


def variance_name(forest: str) -> str:
    """Name of the variance of f over rows."""
    return f"variance of {forest}"


def _list(names: list[str]) -> str:
    shown = names[:MAX_NAMED]
    more = len(names) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)
