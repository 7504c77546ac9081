"""The paper's estimator finds functions and noise, repeats itself, goes on, and travels."""

import copy
import doctest
import pickle

import numpy as np
import pytest

from pymc_xbart import XBARTRegressor
from pymc_xbart.forest import regressor
from pymc_xbart.forest.calibration import default_noise_rate, default_num_trees


def friedman(X):
    """Five columns count, and all others do not."""
    wave = 10 * np.sin(np.pi * X[:, 0] * X[:, 1])
    return wave + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def friedman_data(rng, n=600, p=8, noise_sd=1.0):
    X = rng.uniform(size=(n, p))
    return X, friedman(X) + noise_sd * rng.standard_normal(n)


def small_data(rng, n=60, p=4):
    X = rng.standard_normal((n, p))
    return X, X[:, 0] + (X[:, 1] > 0) + 0.3 * rng.standard_normal(n)


def small(**options):
    """Quick to fit."""
    return XBARTRegressor(
        **({"num_trees": 5, "num_sweeps": 12, "burnin": 4, "random_state": 1} | options)
    )


def same_fit(one, other):
    """Whether two fits agree to the last bit."""
    arrays = ["noise_sd_", "split_counts_", "num_leaves_", "regrown_", "accepted_"]
    return (
        all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and len(one.forests_) == len(other.forests_)
        and all(
            np.array_equal(a, b)
            for ours, theirs in zip(one.forests_, other.forests_, strict=True)
            for a, b in zip(ours, theirs, strict=True)
        )
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mtry": 4},
        {"noise_update": "tree"},
        {"cut_prior": "cuts"},
        {"correction": "tree", "num_sweeps": 150, "burnin": 50},
    ],
    ids=str,
)
def test_a_function_and_its_noise_are_recovered(rng, options):
    X, y = friedman_data(rng)
    X_new = rng.uniform(size=(300, X.shape[1]))
    model = XBARTRegressor(num_trees=30, random_state=1, **options).fit(X, y)
    f = friedman(X_new)
    rmse = np.sqrt(np.mean((model.predict(X_new) - f) ** 2))
    assert rmse < 0.25 * f.std()
    assert 0.8 < model.noise_sd_[model.burnin :].mean() < 1.3
    assert model.score(X_new, f) > 0.93
    assert model.split_counts_.mean(axis=0)[:5].min() > model.split_counts_.mean(axis=0)[5:].max()


@pytest.mark.parametrize("noise_sd", [0.3, 3.0])
def test_noise_of_any_size_is_recovered(rng, noise_sd):
    X = rng.uniform(size=(1500, 3))
    y = 4 * (X[:, 0] > 0.5) + noise_sd * rng.standard_normal(1500)
    model = XBARTRegressor(random_state=1).fit(X, y)
    assert model.noise_sd_[model.burnin :].mean() == pytest.approx(noise_sd, rel=0.12)


def test_the_paper_cut_prior_grows_far_larger_trees(rng):
    X, y = friedman_data(rng, n=300)
    leaves = [
        XBARTRegressor(num_sweeps=8, burnin=4, cut_prior=name, random_state=1)
        .fit(X, y)
        .num_leaves_[4:]
        .mean()
        for name in ("columns", "cuts", "paper")
    ]
    assert leaves[2] > 4 * max(leaves[:2])


CORRECTED = [
    {"correction": "tree"},
    {"correction": "tree", "mtry": 2},
    {"correction": "sweep", "num_trees": 2},
]


@pytest.mark.parametrize(
    "options", [{}, {"mtry": 2}, {"noise_update": "tree"}, *CORRECTED], ids=str
)
def test_the_same_seed_gives_the_same_fit_and_another_does_not(rng, options):
    X, y = small_data(rng)
    model = small(**options).fit(X, y)
    assert same_fit(model, small(**options).fit(X, y))
    assert same_fit(model, model.fit(X, y))
    assert not same_fit(small(**options, random_state=2).fit(X, y), small(**options).fit(X, y))


def test_generators_of_both_kinds_are_sources_of_chance(rng):
    X, y = small_data(rng)
    for make in (np.random.default_rng, np.random.RandomState):
        one, other = (small(random_state=make(3)).fit(X, y) for _ in range(2))
        assert same_fit(one, other)
        # A generator moves on, so that a second fit is another one.
        first = one.predict(X)
        assert not np.array_equal(first, one.fit(X, y).predict(X))


@pytest.mark.parametrize("random_state", [None, 1])
def test_the_global_state_of_numpy_is_left_alone(rng, random_state):
    X, y = small_data(rng)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    small(random_state=random_state).fit(X, y).predict(X)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_without_a_seed_fits_differ(rng):
    X, y = small_data(rng)
    assert not same_fit(small(random_state=None).fit(X, y), small(random_state=None).fit(X, y))


def test_draws_mean_and_deviation_belong_together(rng):
    X, y = small_data(rng)
    model = small().fit(X, y)
    X_new = rng.standard_normal((9, 4))
    draws = model.predict(X_new, return_draws=True)
    mean, std = model.predict(X_new, return_std=True)
    assert draws.shape == (8, 9)
    np.testing.assert_array_equal(model.predict(X_new), mean)
    np.testing.assert_allclose(mean, draws.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(std, draws.std(axis=0), rtol=1e-9)
    assert std.min() > 0
    with pytest.raises(ValueError, match="but not both"):
        model.predict(X_new, return_draws=True, return_std=True)


def test_a_draw_is_the_mean_plus_the_leaf_values_of_its_trees(rng):
    X, y = small_data(rng)
    model = small().fit(X, y)
    forest, cut_values = model.forests_[-1], model.cut_values_[-1]
    assert model.mean_ == pytest.approx(y.mean())
    for row in range(5):
        f = model.mean_
        for start in forest.tree_start[:-1]:
            node = 0
            while (v := forest.column[start + node]) >= 0:
                goes_right = X[row, v] > cut_values[start + node]
                node = forest.left[start + node] + goes_right
            f += forest.value[start + node]
        assert model.predict(X, return_draws=True)[-1, row] == pytest.approx(f)


def test_attributes_describe_the_sweeps(rng):
    X, y = small_data(rng)
    model = small(correction="tree", num_trees=8).fit(X, y)
    assert (len(model.forests_), len(model.cut_values_)) == (8, 8)
    assert model.noise_sd_.shape == (12,)
    assert (model.noise_sd_ > 0).all()
    assert model.num_leaves_.shape == model.accepted_.shape == (12, 8)
    assert model.split_counts_.shape == (8, 4)
    # A split adds a leaf.
    np.testing.assert_array_equal(model.split_counts_.sum(1), model.num_leaves_[4:].sum(1) - 8)
    assert model.regrown_.sum(1).tolist() == [8, 8] + 10 * [5]  # the first ones are uncorrected
    assert (model.accepted_ <= model.regrown_).all()
    assert 0 < model.accepted_[model.regrown_].mean() < 1
    assert small().fit(X, y).accepted_.all()


def test_a_whole_sweep_is_accepted_or_rejected_and_its_noise_drawn_all_the_same(rng):
    X, y = small_data(rng)
    model = small(correction="sweep", num_trees=2, num_sweeps=70, burnin=30).fit(X, y)
    accepted = model.accepted_[30:].all(1)
    assert np.array_equal(accepted, model.accepted_[30:].any(1))
    assert 0 < accepted.mean() < 1
    f = model.predict(X, return_draws=True)
    stays = (f[1:] == f[:-1]).all(1)
    assert np.array_equal(stays, ~accepted[1:])
    assert np.unique(model.noise_sd_).size == 70


@pytest.mark.parametrize("options", CORRECTED, ids=str)
def test_the_first_half_of_burn_in_is_uncorrected(rng, options):
    X, y = small_data(rng)
    model = small(**{"num_trees": 30} | options, num_sweeps=60, burnin=40).fit(X, y)
    assert model.accepted_[:15].all()
    assert not model.accepted_[15:40].all()


def test_defaults_are_those_of_the_paper(rng):
    X, y = friedman_data(rng, n=300)
    model = XBARTRegressor(num_sweeps=2, burnin=1, random_state=1).fit(X, y)
    assert model.num_trees_ == default_num_trees(300)
    assert model.leaf_var_ == pytest.approx(0.3 * y.var() / model.num_trees_)
    assert (XBARTRegressor().num_sweeps, XBARTRegressor().burnin) == (40, 15)
    assert (XBARTRegressor().alpha, XBARTRegressor().beta) == (0.95, 1.25)


@pytest.mark.parametrize(
    ("n", "num_trees"), [(2, 1), (100, 3), (10_000, 35), (50_000, 73), (250_000, 143)]
)
def test_the_number_of_trees_follows_the_rule_of_the_paper(n, num_trees):
    # (log 10 000)^(log log 10 000) = 9.2103^2.2203 = 138.6, of which a quarter is 34.7.
    assert default_num_trees(n) == num_trees


def test_the_noise_is_a_priori_below_y_with_probability_nine_tenths(rng):
    X, y = small_data(rng)
    model = small().fit(X, y)
    # 0.584 is the lower tenth of chi-square with 3 degrees of freedom.
    assert model.noise_rate_ == pytest.approx(0.5844 * y.var(), rel=1e-3)
    draws = default_noise_rate(7.0, 2.0) / rng.chisquare(7.0, 20_000)
    assert np.mean(draws < 2.0) == pytest.approx(0.9, abs=0.015)  # seven standard deviations


def test_burn_in_considers_all_columns_and_later_sweeps_do_not(rng):
    X, y = small_data(rng)
    few, more = (small(mtry=mtry).fit(X, y) for mtry in (1, 3))
    # Column weights are drawn under both, so that chance is spent alike while it is.
    np.testing.assert_array_equal(few.noise_sd_[:4], more.noise_sd_[:4])
    assert few.noise_sd_[4] != more.noise_sd_[4]


def test_columns_that_matter_are_considered_more_often(rng):
    X = rng.standard_normal((200, 20))
    y = 3 * X[:, 7] + 0.1 * rng.standard_normal(200)
    model = XBARTRegressor(num_trees=10, mtry=2, random_state=1).fit(X, y)
    shares = model.split_counts_.sum(axis=0) / model.split_counts_.sum()
    assert shares[7] > 0.5


def test_as_many_columns_as_there_are_is_all_of_them(rng):
    X, y = small_data(rng)
    assert same_fit(small(mtry=4).fit(X, y), small(mtry=None).fit(X, y))


@pytest.mark.parametrize("scale", [2.0**-40, 0.25, 2.0**20])
def test_the_unit_of_y_only_scales_the_fit(rng, scale):
    X, y = small_data(rng)
    model, other = small().fit(X, y), small().fit(X, scale * y)
    # Powers of two do not round.
    np.testing.assert_array_equal(other.predict(X), scale * model.predict(X))
    np.testing.assert_array_equal(other.noise_sd_, scale * model.noise_sd_)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 100.0), (3.7, -2.0)])
def test_the_fit_follows_shift_and_scale_of_y(rng, scale, shift):
    X, y = small_data(rng)
    model, other = small().fit(X, y), small().fit(X, scale * y + shift)
    np.testing.assert_allclose(other.noise_sd_, scale * model.noise_sd_, rtol=1e-6)
    np.testing.assert_allclose(other.predict(X), scale * model.predict(X) + shift, rtol=1e-9)


def test_monotone_transformations_of_X_change_nothing(rng):
    X, y = small_data(rng)
    assert same_fit(small().fit(X, y), small().fit(np.exp(3 * X), y))


@pytest.mark.parametrize("n", [2, 3])
def test_a_handful_of_rows_is_enough(n):
    model = small().fit(np.arange(n)[:, None], np.arange(n) % 2)
    assert np.isfinite(model.predict(np.arange(n)[:, None])).all()


def test_constant_columns_are_never_split_on(rng):
    X, y = small_data(rng)
    X[:, 2] = 5.0
    assert small().fit(X, y).split_counts_[:, 2].sum() == 0
    assert small().fit(np.ones((60, 1)), y).split_counts_.sum() == 0


@pytest.mark.parametrize("travel", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_fit_survives_pickling_and_copying_and_goes_on(rng, travel):
    X, y = small_data(rng)
    model = small(mtry=2).fit(X, y)
    other = travel(model)
    assert same_fit(model, other)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    for each in (model, other):
        each.set_params(warm_start=True, num_sweeps=15).fit(X, y)
    assert same_fit(model, other)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mtry": 2},
        {"noise_update": "tree"},
        *CORRECTED,
        {"cut_prior": "paper"},
        {"burnin": 0},
    ],
    ids=str,
)
def test_a_warm_start_goes_on_as_if_it_had_not_stopped(rng, options):
    X, y = small_data(rng)
    weight = rng.uniform(0.5, 3.0, y.size)
    whole = small(**options, num_sweeps=20).fit(X, y, weight)
    model = small(**options, num_sweeps=9, warm_start=True).fit(X, y, weight)
    for num_sweeps in (10, 20):
        model.set_params(num_sweeps=num_sweeps).fit(X, y, weight)
    assert same_fit(model, whole)
    assert len(model.forests_) == 20 - whole.burnin


def test_a_warm_start_keeps_scale_and_rows_of_the_first_fit(rng):
    X, y = small_data(rng)
    model = small(warm_start=True).fit(X, y)
    mean, leaf_var = model.mean_, model.leaf_var_
    model.set_params(num_sweeps=20).fit(X, y + 7.0)
    assert (model.mean_, model.leaf_var_) == (mean, leaf_var)
    assert model.predict(X).mean() > y.mean() + 2.0


def test_a_warm_start_may_discard_more_sweeps(rng):
    X, y = small_data(rng)
    model = small(warm_start=True, num_sweeps=10).fit(X, y)
    model.set_params(num_sweeps=14, burnin=8).fit(X, y)
    assert len(model.forests_) == model.split_counts_.shape[0] == 6
    assert model.noise_sd_.shape == (14,)


def test_a_warm_start_says_when_there_is_nothing_to_do(rng):
    X, y = small_data(rng)
    model = small(warm_start=True).fit(X, y)
    before = copy.deepcopy(model)
    with pytest.warns(UserWarning, match="All 12 sweeps have been made"):
        model.fit(X, y)
    assert same_fit(model, before)


def test_without_warm_start_a_second_fit_forgets_the_first(rng):
    X, y = small_data(rng)
    model = small().fit(X, y)
    assert same_fit(model.fit(X[:, :2], y), small().fit(X[:, :2], y))


def test_the_progress_bar_changes_nothing_but_the_screen(rng, capsys):
    X, y = small_data(rng)
    model = small().fit(X, y)
    assert capsys.readouterr().out == ""
    shown = small(progressbar=True).fit(X, y)
    assert "Sweeps" in capsys.readouterr().out
    assert same_fit(model, shown)


def test_the_examples_in_the_documentation_run():
    tests = doctest.DocTestFinder().find(XBARTRegressor, globs=vars(regressor))
    results = [doctest.DocTestRunner().run(test) for test in tests]
    assert sum(result.attempted for result in results) > 5
    assert sum(result.failed for result in results) == 0
