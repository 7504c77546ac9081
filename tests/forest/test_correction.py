"""Corrections are checked by name, range, and against the prior and X that they are to serve."""

import pytest

from pymc_xbart.forest.correction import (
    REGROW,
    Correction,
    check_correction,
    check_fits,
    num_uncorrected,
)


@pytest.mark.parametrize("kind", ["tree", "sweep"])
def test_only_the_paper_cut_prior_can_not_be_corrected(kind):
    for cut_prior in ("columns", "cuts"):
        check_fits(Correction(kind), cut_prior, 3)
    check_fits(Correction("none"), "paper", 3)
    with pytest.raises(ValueError, match=f"correction='{kind}' can't be .*'paper'.*columns"):
        check_fits(Correction(kind), "paper", 3)


def test_a_scan_is_of_whole_sweeps():
    assert check_correction("sweep", "reversible", None, REGROW).scan == "reversible"
    with pytest.raises(ValueError, match="Leave scan out, or use correction='sweep'"):
        check_correction("tree", "reversible", None, REGROW)


@pytest.mark.parametrize(
    ("num_trees", "regrow", "expected"), [(50, 0.2, 10), (50, 1.0, 50), (50, 0.01, 5), (3, 0.1, 3)]
)
def test_a_share_of_the_trees_is_regrown_and_at_least_five(num_trees, regrow, expected):
    assert check_correction("tree", "paper", None, regrow).num_regrown(num_trees) == expected


@pytest.mark.parametrize("kind", ["sweep", "none"])
def test_otherwise_all_trees_are(kind):
    assert check_correction(kind, "paper", None, REGROW).num_regrown(50) == 50
    with pytest.raises(ValueError, match=f"regrow=0.5 can't be .*correction='{kind}'"):
        check_correction(kind, "paper", None, 0.5)


@pytest.mark.parametrize("regrow", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_lies_between_0_and_1(regrow):
    with pytest.raises(ValueError, match="must be above 0 and at most 1"):
        check_correction("tree", "paper", None, regrow)


def test_a_share_is_a_number():
    with pytest.raises(TypeError, match=r"regrow is '0\.1', but must be a real number"):
        check_correction("tree", "paper", None, "0.1")


def test_a_subset_of_columns_is_exact_tree_by_tree_and_with_equal_columns_only():
    for correction, cut_prior in [("tree", "columns"), ("none", "cuts"), ("none", "paper")]:
        check_fits(Correction(correction, mtry=2), cut_prior, 3)
    with pytest.raises(NotImplementedError, match=r"mtry=2 of 3 columns.*correction='sweep'"):
        check_fits(Correction("sweep", mtry=2), "columns", 3)
    with pytest.raises(NotImplementedError, match=r"mtry=2 of 3 columns.*cut_prior='cuts'"):
        check_fits(Correction("tree", mtry=2), "cuts", 3)


@pytest.mark.parametrize("kind", ["tree", "sweep", "none"])
@pytest.mark.parametrize("cut_prior", ["columns", "cuts"])
def test_all_columns_are_no_subset(kind, cut_prior):
    check_fits(Correction(kind, mtry=3), cut_prior, 3)
    with pytest.raises(ValueError, match=r"mtry is 4, but X has 3 column\(s\)"):
        check_fits(Correction(kind, mtry=4), cut_prior, 3)


def test_at_most_half_of_the_tuning_goes_uncorrected():
    assert [num_uncorrected(tuning) for tuning in (0, 1, 2, 15, 30, 1000)] == [0, 0, 1, 7, 15, 15]


def test_a_third_of_the_columns_is_considered_unless_told_otherwise():
    num_columns = (1, 2, 10, 12, 30, 60, 90, 1000)
    considered = [Correction().num_considered(p) for p in num_columns]
    assert considered == [1, 2, 5, 5, 10, 20, 30, 30]
    assert Correction(mtry=7).num_considered(1000) == 7
