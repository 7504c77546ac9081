"""How a regressor goes on from where its last fit stopped (floor 1)."""

import warnings
from typing import Any

from pymc_xbart.forest.options import Options
from pymc_xbart.forest.sampler import Chain, Scale, Trace, fingerprint
from pymc_xbart.kernels import Design


def resume(model: Any, options: Options, design: Design) -> tuple[Scale, Chain, Trace]:
    """What the next sweep of a fitted `XBARTRegressor` starts from.

    Raises
    ------
    ValueError
        If its trees belong to other rows than those of `design`, or `options` ask for another
        number of trees, or for sweeps that have been made to be unmade.

    Warns
    -----
    UserWarning
        If there is nothing left to do.
    """
    done, kept = model.noise_sd_.size, len(model.forests_)
    if fingerprint(design) != model._chain.rows:
        msg = (
            "X has other rows than the fit that is to be gone on from, but its trees belong to "
            "those rows. Pass the same X, or set warm_start=False."
        )
        raise ValueError(msg)
    if options.settings.num_trees != model.num_trees_:
        msg = (
            f"num_trees is {options.settings.num_trees}, but the fit that is to be gone on "
            f"from has {model.num_trees_}. Keep that number, or set warm_start=False."
        )
        raise ValueError(msg)
    if options.num_sweeps < done or options.burnin < done - kept:
        msg = (
            f"num_sweeps is {options.num_sweeps} and burnin {options.burnin}, but {done} "
            f"sweeps have been made, and the first {done - kept} of them discarded. Under "
            "warm_start num_sweeps counts all sweeps, those of earlier fits included: raise "
            "it, and don't lower burnin."
        )
        raise ValueError(msg)
    if options.num_sweeps == done:
        msg = (
            f"All {done} sweeps have been made. To go on, pass a larger num_sweeps: under "
            "warm_start it counts those of earlier fits, too."
        )
        warnings.warn(msg, UserWarning, stacklevel=3)
    scale = Scale(
        model.mean_,
        options.leaf_var or model.leaf_var_,
        options.noise_rate or model.noise_rate_,
    )
    skipped = options.burnin - (done - kept)
    trace = Trace(
        model.forests_[skipped:],
        model.cut_values_[skipped:],
        list(model.split_counts_[skipped:]),
        list(model.noise_sd_),
        list(model.num_leaves_),
        list(model.regrown_),
        list(model.accepted_),
    )
    return scale, model._chain, trace
