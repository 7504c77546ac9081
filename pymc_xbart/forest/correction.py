"""How sweeps are corrected by Metropolis-Hastings: the options, checked (floor 1)."""

from typing import Any, NamedTuple

from pymc_xbart.forest.prior import check_choice, real_number, whole_number

CORRECTIONS = ("tree", "sweep", "none")
SCANS = ("paper", "reversible")
# To grow a tree from the root takes several times as long as to redraw two of its splits.
REGROW = 0.2
MIN_REGROWN = 5  # few trees hold each other in place, and take no time
# Columns that a tree considers. Measured: of 10 columns, with 50 trees, 3 give a quarter more
# effective draws a second than all, but a fifth fewer a sweep, and 5 lie between; of 30 and more, a
# third give twice as many a second as all.
LEAST_MTRY, MTRY_SHARE, MOST_MTRY = 5, 1 / 3, 30
# What PyMC does for a draw beside the forest, NUTS for some scalars included, takes about as long
# as a sweep over so many rows times trees.
REST_OF_DRAW = 25_000
MOST_SWEEPS = 4  # in a draw, unless asked for
LOW_ACCEPTANCE = 0.02  # below it a chain hardly moves
BURN_IN = 15  # sweeps, He, Yalov & Hahn (2019, "The Estimator")


class Correction(NamedTuple):
    """How a sweep is corrected."""

    kind: str = "none"  # one of CORRECTIONS
    scan: str = "paper"  # one of SCANS, for "sweep"
    mtry: int | None = None  # about how many columns are considered
    regrow: float = REGROW  # share of the trees that a sweep grows from the root, for "tree"
    sweeps_per_draw: int | None = None
    is_tuning: bool = False  # whether a sweep may learn something for later ones
    is_first: bool = False  # whether it is one of the first, in which trees have yet to find f

    def num_regrown(self, num_trees: int) -> int:
        """Count the trees that a sweep grows from the root: all, except with "tree"."""
        if self.kind != "tree":
            return num_trees
        return min(num_trees, max(MIN_REGROWN, round(self.regrow * num_trees)))

    def num_sweeps(self, work: int, *, is_quadratic: bool) -> int:
        """Count the sweeps of a draw, whose `work` is rows times trees for each of them."""
        if self.sweeps_per_draw is not None:
            return self.sweeps_per_draw
        if self.kind != "tree" or not is_quadratic:
            return 1
        return max(1, min(MOST_SWEEPS, round(REST_OF_DRAW / work)))

    def num_considered(self, num_columns: int) -> int:
        """About how many columns are considered for a tree, where they are drawn for each."""
        share = max(LEAST_MTRY, min(MOST_MTRY, round(MTRY_SHARE * num_columns)))
        return min(num_columns, self.mtry or share)


def check_correction(
    kind: Any, scan: Any, mtry: Any, regrow: Any, sweeps_per_draw: Any = None
) -> Correction:
    """Refuse options out of range."""
    check_choice(kind, "correction", CORRECTIONS)
    check_choice(scan, "scan", SCANS)
    if scan != "paper" and kind != "sweep":
        msg = (
            f"scan={scan!r} says in which order a whole sweep is proposed, and correction={kind!r} "
            "proposes no whole sweep. Leave scan out, or use correction='sweep'."
        )
        raise ValueError(msg)
    regrow = real_number(regrow, "regrow")
    if not 0.0 < regrow <= 1.0:
        msg = (
            f"regrow is {regrow:g}, but must be above 0 and at most 1: it is the share of the "
            "trees that a sweep grows from the root, the others being updated split by split."
        )
        raise ValueError(msg)
    if regrow != REGROW and kind != "tree":
        msg = (
            f"regrow={regrow:g} can't be combined with correction={kind!r}, which grows all trees "
            "from the root. Leave regrow out, or use correction='tree'."
        )
        raise ValueError(msg)
    return Correction(
        kind,
        scan,
        None if mtry is None else whole_number(mtry, "mtry"),
        regrow,
        None if sweeps_per_draw is None else whole_number(sweeps_per_draw, "sweeps_per_draw"),
    )


def check_fits(correction: Correction, cut_prior: str, num_columns: int) -> None:
    """Refuse options that do not go together with a forest's prior or its X."""
    kind, mtry = correction.kind, correction.mtry
    if cut_prior == "paper" and kind != "none":
        msg = (
            f"correction={kind!r} can't be combined with cut_prior='paper': the weights that "
            "the paper's text gives to cuts and to stopping do not sum to one, and a "
            "Metropolis-Hastings correction needs prior probabilities. Use cut_prior='columns' or "
            "cut_prior='cuts', or correction='none'."
        )
        raise ValueError(msg)
    if mtry is not None and mtry > num_columns:
        msg = (
            f"mtry is {mtry}, but X has {num_columns} column(s). Pass at most that number, or None "
            "for all columns."
        )
        raise ValueError(msg)
    if mtry is None or mtry == num_columns or kind == "none":
        return
    if kind == "sweep":
        msg = (
            f"mtry={mtry} of {num_columns} columns can't be combined with correction='sweep': the "
            "way back would need the columns of the way there. Leave mtry out, or use "
            "correction='tree'."
        )
        raise NotImplementedError(msg)
    if cut_prior != "columns":
        msg = (
            f"mtry={mtry} of {num_columns} columns can't be combined with cut_prior={cut_prior!r} "
            "and correction='tree': cuts in columns that are not considered would have to be "
            "counted all the same. Leave mtry out, or use cut_prior='columns'."
        )
        raise NotImplementedError(msg)


def num_uncorrected(tuning: int) -> int:
    """First sweeps that go uncorrected, to arrive fast: at most half of those that are not kept."""
    return min(BURN_IN, tuning // 2)
