"""How sweeps are corrected by Metropolis-Hastings: the options, checked (floor 2)."""

from typing import Any, NamedTuple

from pymc_xbart.forest.prior import (
    CORRECTIONS,
    check_choice,
    check_cut_prior_fits,
    whole_number,
)

SCANS = ("paper", "reversible")


class Correction(NamedTuple):
    """How a sweep is corrected."""

    kind: str = "none"  # one of CORRECTIONS
    scan: str = "paper"  # one of SCANS, for "sweep"
    mtry: int | None = None  # about how many columns are considered for a tree; None for all


def check_correction(kind: Any, scan: Any, mtry: Any) -> Correction:
    """Refuse options out of range."""
    check_choice(kind, "correction", CORRECTIONS)
    check_choice(scan, "scan", SCANS)
    if scan != "paper" and kind != "sweep":
        msg = (
            f"scan={scan!r} says in which order a whole sweep is proposed, and correction={kind!r} "
            "proposes no whole sweep. Leave scan out, or use correction='sweep'."
        )
        raise ValueError(msg)
    if mtry is None:
        return Correction(kind, scan)
    if kind == "sweep":
        msg = (
            "mtry is not available with correction='sweep': the way back would need the columns of "
            "the way there. Leave mtry out, or use correction='tree'."
        )
        raise NotImplementedError(msg)
    return Correction(kind, scan, whole_number(mtry, "mtry"))


def check_fits(correction: Correction, cut_prior: str, num_columns: int) -> None:
    """Refuse options that do not go together with a forest's prior or its X."""
    check_cut_prior_fits(cut_prior, correction.kind)
    if correction.mtry is None:
        return
    if correction.mtry > num_columns:
        msg = f"mtry is {correction.mtry}, but X has only {num_columns} column(s)."
        raise ValueError(msg)
    if cut_prior != "columns" and correction.kind == "tree":
        msg = (
            f"mtry can't be combined with cut_prior={cut_prior!r} and correction='tree': cuts in "
            "columns that are not considered would have to be counted all the same. "
            "Leave mtry out, or use cut_prior='columns'."
        )
        raise NotImplementedError(msg)
