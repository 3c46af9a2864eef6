"""What held-out rows say: sets of labels, quantiles of numbers, familiarity and drift."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom, kstest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from nearkin import NCAClassifier, NCARegressor
from nearkin.tables import Feature, TableEncoder, features_of
from nearkin.tables.held_out import (
    HeldOutRows,
    conformal_quantile,
    holm,
    label_scores,
    label_thresholds,
    local_weights,
    same_shares,
    weighted_quantiles,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def line():
    """Numbers on a line with errors, and a model of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=150)
    return X, y, NCARegressor(alpha=1.5).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return NCAClassifier(alpha=1.5).fit(*mixed(400, np.random.default_rng(0)))


def held_out(cells, targets=None, votes=None, Z=None, weights=None, features=None, folds=None):
    n = cells.shape[0]
    return HeldOutRows(
        np.arange(n),
        cells,
        np.zeros((n, 1)) if Z is None else Z,
        np.zeros(n) if targets is None else targets,
        np.zeros(n) if votes is None else votes,
        features or [Feature(f"x{j}", j) for j in range(cells.shape[1])],
        np.ones(n) if weights is None else weights / weights.mean(),
        np.zeros(n, dtype=int) if folds is None else folds,
    )


def softmax(scores):
    exp = np.exp(scores)
    return exp / exp.sum(axis=1, keepdims=True)


def drawn_labels(n, rng, n_classes=4):
    """Probabilities, and labels that have others."""
    scores = rng.normal(size=(n, n_classes)) * 1.5
    P = softmax(scores + rng.normal(size=(n, n_classes)))
    labels = np.array([rng.choice(n_classes, p=p) for p in softmax(scores)])
    return P, labels


class TestConformalQuantile:
    @pytest.mark.parametrize("n", [1, 4, 9, 10, 19, 99])
    @pytest.mark.parametrize("level", [0.05, 0.5, 0.8, 0.9, 0.95])
    def test_has_the_rank_of_the_definition(self, n, level, rng):
        scores = rng.normal(size=n)
        rank = int(np.ceil(round((n + 1) * level, 6)))
        expected = np.sort(scores)[rank - 1] if rank <= n else np.inf
        assert conformal_quantile(scores, level, np.ones(n)) == expected

    def test_weights_count_rows(self, rng):
        scores, weights = rng.normal(size=30), rng.integers(1, 5, 30)
        repeated = np.repeat(scores, weights)
        for level in (0.1, 0.6, 0.9):
            # a new row counts as one in the mean: weights.mean() rows
            target = level * (weights.sum() + weights.mean())
            reached = np.arange(1, len(repeated) + 1) >= target - 1e-6
            found = conformal_quantile(scores, level, weights / weights.mean())
            assert found == np.sort(repeated)[reached.argmax()]


class TestSets:
    @pytest.mark.long
    def test_coverage_of_exchangeable_rows(self):
        """The mean over draws of the covered share lies between the bounds of the theory."""
        n, n_new, rng = 99, 200, np.random.default_rng(1)
        for empty in (False, True):
            covered = 0
            for _ in range(50):
                P, labels = drawn_labels(n + n_new, rng)
                rows = held_out(np.zeros((n, 1)), labels[:n], P[:n])
                sets = rows.label_sets(P[n:], 0.9, by_class=False, allow_empty=empty)
                covered += np.sum(sets[np.arange(n_new), labels[n:]])
            assert abs(covered / (50 * n_new) - 0.9) < 0.015

    def test_sets_are_those_of_the_definition(self, rng):
        P, labels = drawn_labels(60, rng)
        rows = held_out(np.zeros((50, 1)), labels[:50], P[:50])
        sets = rows.label_sets(P[50:], 0.8, by_class=False, allow_empty=False)
        own = sorted(
            0.0 if p.argmax() == label else 1 - p[label]
            for p, label in zip(P[:50], labels, strict=False)
        )
        threshold = own[41 - 1]  # ceil(51 x 0.8)
        for found, p in zip(sets, P[50:], strict=True):
            for c in range(4):
                assert found[c] == (p[c] == p.max() or 1 - p[c] <= threshold)

    def test_sets_by_class_cover_every_class(self):
        rng, hits, counts = np.random.default_rng(2), np.zeros(3), np.zeros(3)
        for _ in range(30):
            labels = rng.choice(3, size=900, p=[0.7, 0.2, 0.1])
            P = softmax(rng.normal(size=(900, 3)) + np.eye(3)[labels] + [1.5, 0, 0])
            rows = held_out(np.zeros((450, 1)), labels[:450], P[:450])
            sets = rows.label_sets(P[450:], 0.8, by_class=True, allow_empty=True)
            np.add.at(hits, labels[450:], sets[np.arange(450), labels[450:]])
            np.add.at(counts, labels[450:], 1)
        assert (np.abs(hits / counts - 0.8) < 0.035).all()

    def test_a_class_of_few_rows_is_in_all_sets(self, rng):
        P, labels = drawn_labels(100, rng)
        labels[labels == 3] = 2
        labels[:3] = 3
        thresholds = label_thresholds(label_scores(P), labels, np.ones(100), 0.8, by_class=True)
        assert np.isinf(thresholds).tolist() == [False, False, False, True]

    def test_higher_coverage_takes_larger_sets(self, rng):
        P, labels = drawn_labels(300, rng)
        rows, before = held_out(np.zeros((200, 1)), labels[:200], P[:200]), None
        for coverage in (0.3, 0.6, 0.9, 0.99, 0.999):
            sets = rows.label_sets(P[200:], coverage, by_class=False, allow_empty=False)
            assert sets.any(axis=1).all()
            assert before is None or (sets >= before).all()
            before = sets
        assert before.all()  # 200 rows are too few for 99.9 %

    def test_renamed_classes(self):
        X, y = load_iris(return_X_y=True)
        names = np.array(["rose", "aster", "lily"])
        X = X[::2] + np.random.default_rng(0).normal(size=X[::2].shape)
        model, renamed = NCAClassifier(alpha=1.5), NCAClassifier(alpha=1.5)
        sets = model.fit(X, y[::2]).predict_set(X, 0.95)
        found = renamed.fit(X, names[y[::2]]).predict_set(X, 0.95)
        order = np.searchsorted(renamed.classes_, names)
        assert np.mean(sets == found[:, order]) > 0.99
        assert sets.shape == (75, 3)
        assert sets.dtype == bool
        assert sets[np.arange(75), model.predict(X)].all()
        assert 1 < sets.sum(axis=1).mean() < 3

    def test_class_weights_reach_the_thresholds(self):
        n, rng = 300, np.random.default_rng(0)
        y = (rng.random(n) < 0.15).astype(int)
        X = rng.normal(size=(n, 2)) + y[:, None]
        model = NCAClassifier(alpha=1.5, class_weight="balanced").fit(X, y)
        weights = model._held_out.weights
        np.testing.assert_allclose(
            weights[y[model.held_out_rows_] == 1].sum(), weights.sum() / 2, rtol=0.02
        )


class TestQuantiles:
    def test_weighted_quantiles_by_brute_force(self, rng):
        values, W = rng.normal(size=9).round(1), rng.random((5, 9))
        q = np.array([0.05, 0.3, 0.5, 0.95])
        found = weighted_quantiles(W, values, q)
        for row, weights in zip(found, W, strict=True):
            for level, quantile in zip(q, row, strict=True):
                reached = [v for v in values if weights[values <= v].sum() >= level * weights.sum()]
                assert quantile == min(reached)

    def test_local_weights(self, rng):
        D2 = rng.random((4, 7))
        W = local_weights(D2, np.ones(7), 3)
        np.testing.assert_allclose(W, np.exp(-D2 / np.sort(D2)[:, 2:3]))
        twins = local_weights(np.array([[0.0, 0.0, 1.0]]), np.ones(3), 2)
        assert twins.tolist() == [[1, 1, 0]]

    @pytest.mark.slow
    def test_coverage_of_exchangeable_rows(self):
        """Errors whose spread changes from row to row: each tail holds its share."""
        rng, n, n_new = np.random.default_rng(3), 300, 1000
        below = np.zeros(4)
        q = np.array([0.05, 0.25, 0.75, 0.95])
        widths = []
        for _ in range(8):
            Z = rng.uniform(-2, 2, size=(n + n_new, 2))
            y = Z[:, 0] + np.exp(Z[:, 1]) * rng.normal(size=n + n_new)
            rows = held_out(np.zeros((n, 1)), y[:n], Z[:n, 0], Z[:n])
            found = rows.quantiles(Z[n:], Z[n:, :1], q)
            below += np.mean(y[n:, None] <= found, axis=0) / 8
            widths.append(np.corrcoef(found[:, 3] - found[:, 0], np.exp(Z[n:, 1]))[0, 1])
        np.testing.assert_allclose(below, q, atol=0.025)
        assert min(widths) > 0.5  # they know where errors are large

    def test_constant_errors_and_conformal_ranks(self, rng):
        """Where all rows are at one place the quantiles are order statistics of the errors."""
        errors = rng.permutation(np.arange(19.0))
        rows = held_out(np.zeros((19, 1)), errors, np.zeros(19))
        found = rows.quantiles(np.zeros((1, 1)), np.array([[100.0]]), np.array([0.05, 0.9]))
        assert found[0, 0] <= 100.0
        assert found[0, 1] >= 117.0
        assert np.isinf(
            rows.quantiles(np.zeros((1, 1)), np.zeros((1, 1)), np.array([0.04, 0.96]))
        ).all()

    def test_an_error_is_added_to_the_prediction_without_its_fold(self, rng):
        """The rows of one fold were predicted without a huge number, those of the other with it."""
        y, folds = rng.permutation(np.arange(200.0)), np.repeat([0, 1], 100)
        votes = np.array([0.0, 1e6])
        rows = held_out(np.zeros((200, 1)), y, votes[folds], folds=folds)
        found = rows.quantiles(np.zeros((1, 1)), votes[None], np.array([0.25, 0.75]))
        np.testing.assert_allclose(found, [[49, 149]], atol=2)

    @pytest.mark.long
    def test_coverage_where_a_few_numbers_are_huge(self):
        """The mean of all rows, by which new ones are predicted, is not that of the rows by which
        those held out were.
        """
        covered = []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(1400, 2))
            y = np.exp(12 + 0.3 * X[:, 0] + 0.1 * rng.normal(size=1400))
            typed = y[:400] * np.where(np.arange(400) < 5, 1000, 1)
            fold = np.split(rng.permutation(400), 2)
            model = NCARegressor(alpha=4.5, n_bins=4).fit_encoded(X[:400], typed, folds=[fold])
            low, high = model.predict_interval(X[400:]).T
            covered.append(np.mean((low <= y[400:]) & (y[400:] <= high)))
        assert min(covered) > 0.8
        assert np.mean(covered) > 0.88

    def test_quantiles_ascend_in_any_order_given(self, line):
        X, _, model = line
        q = [0.9, 0.1, 0.5, 0.1, 0.3]
        found = model.predict_quantiles(X[:20], q)
        assert found.shape == (20, 5)
        assert (np.diff(found[:, np.argsort(q, kind="stable")]) >= 0).all()
        np.testing.assert_array_equal(found[:, 1], found[:, 3])
        np.testing.assert_array_equal(model.predict_quantiles(X[:20], 0.5), found[:, 2:3])

    def test_an_interval_is_two_quantiles(self, line):
        X, _, model = line
        found = model.predict_interval(X[:20], 0.8)
        np.testing.assert_array_equal(found, model.predict_quantiles(X[:20], [0.1, 0.9]))
        wider = model.predict_interval(X[:20], 0.95)
        assert np.mean(wider[:, 0] <= found[:, 0]) > 0.9
        assert np.isinf(model.predict_interval(X[:1], 0.999)).all()

    def test_coverage_of_a_fitted_model(self, line):
        _, _, model = line
        rng = np.random.default_rng(9)
        X = rng.normal(size=(2000, 3))
        y = X[:, 0] + 0.3 * rng.normal(size=2000)
        low, high = model.predict_interval(X).T
        assert 0.84 < np.mean((low <= y) & (y <= high)) < 0.98

    def test_the_unit_of_the_target(self, line):
        X, y, model = line
        scaled = NCARegressor(alpha=1.5).fit(X, 1000 * y - 5)
        np.testing.assert_allclose(
            scaled.predict_quantiles(X[:30], [0.1, 0.5, 0.9]),
            1000 * model.predict_quantiles(X[:30], [0.1, 0.5, 0.9]) - 5,
            rtol=1e-3,
            atol=1,
        )

    def test_the_order_of_rows_does_not_matter(self, line):
        X, y, model = line
        order = np.random.default_rng(1).permutation(150)
        shuffled = NCARegressor(alpha=1.5).fit(X[order], y[order])
        np.testing.assert_allclose(
            shuffled.predict_interval(X[:30]), model.predict_interval(X[:30]), rtol=1e-3, atol=1e-3
        )

    def test_rows_of_weight_0_are_absent(self, line):
        X, y, model = line
        weights = np.r_[np.ones(150), np.zeros(10)]
        more = NCARegressor(alpha=1.5).fit(
            np.vstack([X, X[:10] + 50]), np.append(y, np.full(10, 1e6)), sample_weight=weights
        )
        np.testing.assert_allclose(
            more.predict_interval(X[:20]), model.predict_interval(X[:20]), rtol=1e-3, atol=1e-3
        )
        np.testing.assert_allclose(more.familiarity(X), model.familiarity(X))

    def test_bounds_of_the_known_numbers_hold(self):
        """Many are 0, none is negative; the largest, at the other end, is one of its kind."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(240, 2))
        y = np.where(rng.random(240) < 0.5, 0.0, np.exp(X[:, 0] + rng.normal(size=240)))
        model = NCARegressor(alpha=1.5).fit(X[:120], y[:120])
        found = model.predict_interval(X[120:])
        assert found[:, 0].min() == 0
        top = np.sort(y[:120])[-10:]
        assert found[:, 1].max() <= 2 * top[-1] - top[0]
        assert np.mean((y[120:] >= found[:, 0]) & (y[120:] <= found[:, 1])) > 0.85
        assert np.isinf(model.predict_quantiles(X[:3], [0.001, 0.999])).all()  # too few rows

    def test_heavy_rows_decide(self):
        errors, weights = np.r_[np.zeros(100), np.full(100, 5.0)], np.repeat([9.0, 1.0], 100)
        rows = held_out(np.zeros((200, 1)), errors, np.zeros(200), weights=weights)
        q = np.array([0.8, 0.95])
        assert rows.quantiles(np.zeros((1, 1)), np.zeros((1, 1)), q).tolist() == [[0, 5]]


class TestFamiliarity:
    def test_definition(self, rng):
        cells = rng.normal(size=(40, 3)) * [1, 10, 100]
        new = rng.normal(size=(6, 3)) * [2, 20, 200]
        weights = rng.integers(1, 4, 40).astype(float)
        found = held_out(cells, weights=weights).familiarity(new)
        scaled, queries = ((X - cells.mean(0)) / cells.std(0) for X in (cells, new))
        own = np.empty(40)
        for i in range(40):  # as if the others were all that is known
            others = np.delete(cells, i, axis=0)
            unit = others.std(axis=0) * np.sqrt(39 / 40)
            D = np.linalg.norm((others - cells[i]) / unit, axis=1)
            own[i] = np.sort(D)[:5].mean()
        weights = weights / weights.mean()
        for query, p in zip(queries, found, strict=True):
            d = np.sort(np.linalg.norm(scaled - query, axis=1))[:5].mean()
            np.testing.assert_allclose(p, (1 + weights[own >= d].sum()) / 41)

    def test_nearly_uniform_without_drift(self):
        rng, rejected = np.random.default_rng(4), []
        for _ in range(40):
            cells = rng.normal(size=(400, 4)) @ rng.normal(size=(4, 4))
            p = held_out(cells[:200]).familiarity(cells[200:])
            assert p.min() > 0
            assert p.max() <= 1
            rejected.append(np.mean(p <= 0.1))
        assert abs(np.mean(rejected) - 0.1) < 0.02
        cells = rng.normal(size=(2000, 4))
        assert kstest(held_out(cells[:1000]).familiarity(cells[1000:]), "uniform").pvalue > 0.001

    @pytest.mark.slow_after(2)
    @pytest.mark.parametrize("container", [np.asarray, csr_array])
    @pytest.mark.parametrize("alone", [0.0, 0.06, 0.2])
    def test_rows_alone_in_a_value_hide_no_others(self, container, alone):
        """Such as a name, or a word: a new row has another one, which is not known."""
        usual, moved = [], []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            values = np.abs(rng.normal(size=(900, 4))) + 1
            own = np.eye(300)[:, rng.random(300) < alone]
            cells = container(np.hstack([values[:300], own]))
            for new, found in ((values[300:], usual), (values[300:] + 4, moved)):
                nothing = np.zeros((600, own.shape[1]))
                p = held_out(cells).familiarity(container(np.hstack([new, nothing])))
                found.append(np.mean(p <= 0.05))
        assert np.mean(usual) == pytest.approx(0.05 * (1 - alone), abs=0.025)
        assert np.mean(moved) > 0.9

    @pytest.mark.slow_after(2)
    @pytest.mark.parametrize("n_held_out", [30, 150, 1000])
    @pytest.mark.parametrize("n", [1, 20, 500])
    def test_chance_makes_few_rows_unfamiliar(self, n_held_out, n):
        rng, alarms = np.random.default_rng(n), 0
        rows = held_out(np.zeros((n_held_out, 1)))
        for _ in range(400):
            distances = rng.random(n_held_out + n)
            own, new = np.sort(distances[n:]), distances[:n]
            p = (1 + n_held_out - np.searchsorted(own, new)) / (n_held_out + 1)
            alarms += len(rows.unfamiliar(p)) > 0
        assert alarms <= binom.ppf(0.999, 400, 0.05)

    def test_what_is_unfamiliar(self):
        rows, p = held_out(np.zeros((999, 1))), np.linspace(0.02, 1, 500)
        assert rows.unfamiliar(p).tolist() == []
        p[10:15] = 0.001  # farther than all that were held out
        assert rows.unfamiliar(p).tolist() == [*range(10, 15)]
        p[:5] = 0.008
        p[100:130] = 0.008
        assert rows.unfamiliar(p).tolist() == [*range(10, 15), *range(5), *range(100, 130)]

    def test_equal_rows_are_familiar(self):
        cells = np.repeat(np.eye(3), 20, axis=0)
        assert held_out(cells).familiarity(np.eye(3)).tolist() == [1, 1, 1]

    def test_unseen_class_is_unfamiliar(self):
        X, y = load_iris(return_X_y=True)
        model = NCAClassifier(alpha=1.5).fit(X[y > 0], y[y > 0])
        assert model.familiarity(X[y == 0]).max() < 0.05
        assert np.mean(model.familiarity(X[y > 0])) > 0.4

    @pytest.mark.parametrize("n", [4, 5, 7])
    def test_few_rows_and_far_ones(self, n):
        X = np.arange(2.0 * n).reshape(n, 2)
        model = NCAClassifier(alpha=1.5).fit(X, np.arange(n) % 2)
        far = np.array([[1e300, -1e300], [np.nan, 3.0]])
        p = model.familiarity(far)
        assert p[0] == 1 / (1 + len(model.held_out_rows_))
        assert p[1] <= 1

    def test_sparse_rows(self, rng):
        dense = (rng.random((80, 12)) < 0.3) * rng.integers(1, 4, (80, 12)).astype(float)
        y = np.arange(80) % 2
        model = NCAClassifier(alpha=1.5).fit(csr_array(dense), y)
        p = model.familiarity(csr_array(dense * 10))
        assert np.median(p) < 0.1
        assert p.shape == (80,)
        assert not model.drift(csr_array(dense)).has_drifted
        assert model.drift(csr_array(dense * 10)).has_drifted


def mixed(n, rng):
    pd = pytest.importorskip("pandas")
    size = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "noise": rng.exponential(size=n),
            "size": size,
            "colour": rng.choice(["red", "blue", "green", None], n, p=[0.5, 0.3, 0.1, 0.1]),
            "price": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n) + size),
        }
    )
    return frame, np.where(size > 0, "large", "small")


DRAWN = {
    "households": lambda n, rng: rng.integers(0, n // 2, n),
    "common and rare words": lambda n, rng: np.minimum(rng.zipf(1.4, n), 10**6),
    "many towns": lambda n, rng: rng.geometric(0.02, n),
    "few towns, some rare": lambda n, rng: np.minimum(rng.zipf(1.8, n), 90),
}


def split(kind, seed, n=800):
    """Return held-out rows of a table with a column of such values, and new rows of it."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    values = [f"v{value}" for value in DRAWN[kind](n, rng)]
    frame = pd.DataFrame({"size": rng.normal(size=n), "text": values})
    encoder = TableEncoder(missing="keep", drop_identifiers=False).fit(frame[: n // 2])
    rows = held_out(encoder.transform(frame[: n // 2]), features=features_of(encoder))
    return rows, encoder, frame[n // 2 :]


@pytest.mark.parametrize("kind", DRAWN)
class TestRareValues:
    """A training row has its own value, and a new one may have none that was there."""

    @pytest.mark.long
    def test_few_alarms_without_drift(self, kind):
        alarms = 0
        for seed in range(20):
            rows, encoder, new = split(kind, seed)
            alarms += rows.drift(encoder.transform(new)).has_drifted
        assert alarms <= binom.ppf(0.99, 20, 0.05)

    @pytest.mark.slow_after(1)
    def test_few_rows_are_unfamiliar(self, kind):
        shares = []
        for seed in range(10):
            rows, encoder, new = split(kind, seed)
            shares.append(np.mean(rows.familiarity(encoder.transform(new)) <= 0.05))
        assert np.mean(shares) < 0.07

    def test_one_value_alone_is_drift(self, kind):
        rows, encoder, new = split(kind, 0)
        if kind != "households":  # of which new ones are none of the known
            for value in ("v1", "another"):
                found = rows.drift(encoder.transform(new.assign(text=value)))
                assert found.moved == ["text"]


class TestDrift:
    def test_holm(self):
        np.testing.assert_allclose(holm([0.04, 0.01, 0.5, 0.03]), [0.09, 0.04, 0.5, 0.09])

    @pytest.mark.long
    def test_few_alarms_without_drift(self):
        rng, alarms = np.random.default_rng(5), 0
        for _ in range(40):
            cells = rng.normal(size=(240, 5))
            alarms += held_out(cells[:120]).drift(cells[120:]).has_drifted
        assert alarms <= binom.ppf(0.99, 40, 0.05)

    def test_names_the_column(self, model):
        rng = np.random.default_rng(1)
        new = mixed(400, rng)[0]
        found = model.drift(new)
        assert not found.has_drifted
        assert found.moved == []
        assert set(found.columns) == {"noise", "size", "colour", "price"}
        new["noise"] += 0.5
        found = model.drift(new)
        assert found.has_drifted
        assert found.moved == ["noise"]
        assert next(iter(found.columns)) == "noise"

    def test_shares_of_values_and_of_missing_cells(self, model):
        new = mixed(400, np.random.default_rng(1))[0]
        new.loc[::3, "colour"] = "violet"  # a new value
        new.loc[::4, "price"] = np.nan
        assert sorted(model.drift(new).moved) == ["colour", "price"]

    def test_names_the_columns_of_the_table(self):
        pd = pytest.importorskip("pandas")
        rng, n = np.random.default_rng(0), 300
        frame = pd.DataFrame(
            {
                "visit": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) % 100, "D"),
                "town": [f"t{place}" for place in rng.geometric(0.01, n)],
            }
        )
        model = NCAClassifier(alpha=4.5, n_bins=4).fit(frame, np.arange(n) % 2)
        new = frame.assign(visit=frame["visit"] + pd.Timedelta(3640, "D"), town="elsewhere")
        assert {"visit", "town"} <= {*model.drift(new).moved}

    def test_one_row_and_none_moved(self, model):
        new = mixed(1, np.random.default_rng(1))[0]
        found = model.drift(new)
        assert not found.has_drifted
        assert all(0 < p <= 1 for p in found.columns.values())

    def test_joint_moves_are_found_by_familiarity(self):
        """Every column alone is as it was; together they are not."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=(800, 1))
        cells = np.hstack([x, x + 0.1 * rng.normal(size=(800, 1))])
        cells[400:, 1] = rng.permutation(cells[400:, 1])
        found = held_out(cells[:400]).drift(cells[400:])
        assert found.has_drifted
        assert found.familiarity < 1e-6
        assert found.moved == []

    def test_the_training_rows_themselves_are_no_drift(self, model):
        """They find themselves, and are more familiar than new rows."""
        assert not model.drift(mixed(400, np.random.default_rng(0))[0]).has_drifted

    def test_same_shares(self):
        assert same_shares(np.array([[10, 0], [0, 10]])) < 1e-4
        assert same_shares(np.array([[50, 50, 1], [49, 51, 0]])) > 0.5
        assert same_shares(np.array([[9, 0], [7, 0]])) == 1
        assert same_shares(np.array([[9, 3], [0, 0]])) == 1


class TestArrays:
    @pytest.mark.parametrize("sparse", [False, True])
    def test_round_trip(self, sparse, rng):
        X = np.abs(rng.normal(size=(60, 4))) * (rng.random((60, 4)) < 0.6)
        X = csr_array(X) if sparse else X
        model = NCAClassifier(alpha=1.5).fit(X, np.arange(60) % 3)
        kept = model._held_out
        answers = model._Y.argmax(axis=1)
        again = HeldOutRows.from_arrays(kept.to_arrays(), kept.features, model._Z, answers)
        P = model.predict_proba(X)
        for rows in (again, pickle.loads(pickle.dumps(kept))):
            np.testing.assert_array_equal(rows.familiarity(X), kept.familiarity(X))
            assert rows.drift(X) == kept.drift(X)
            sets = rows.label_sets(P, 0.9, by_class=False, allow_empty=False)
            np.testing.assert_array_equal(sets, model.predict_set(X))

    def test_a_fold_of_all_rows_is_refused(self):
        rows = held_out(np.ones((2, 1)), folds=np.array([0, 1]))
        HeldOutRows.from_arrays(rows.to_arrays(), rows.features, np.zeros((2, 1)), np.zeros(2))
        arrays = rows.to_arrays() | {"held_out_folds": np.array([0, 0])}
        with pytest.raises(ValueError, match="all voters in one fold"):
            HeldOutRows.from_arrays(arrays, rows.features, np.zeros((2, 1)), np.zeros(2))


class TestErrors:
    @pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, np.nan])
    def test_coverage(self, coverage):
        with pytest.raises(ValueError, match=r"coverage must be .*got"):
            NCAClassifier().predict_set([[1.0]], coverage)
        with pytest.raises(ValueError, match=r"coverage must be .*got"):
            NCARegressor().predict_interval([[1.0]], coverage)

    def test_coverage_that_is_no_number(self):
        with pytest.raises(TypeError, match="coverage must be a number, got '90%'"):
            NCAClassifier().predict_set([[1.0]], "90%")

    @pytest.mark.parametrize("q", [0, 1, [0.5, 1.2], [], [[0.5]], np.nan])
    def test_q(self, q):
        with pytest.raises(ValueError, match="q must be one or more numbers between 0 and 1"):
            NCARegressor().predict_quantiles([[1.0]], q)
        with pytest.raises(TypeError, match="q must hold numbers, got 'median'"):
            NCARegressor().predict_quantiles([[1.0]], "median")

    def test_what_is_not_fitted_says_so(self):
        for ask in (
            NCAClassifier().predict_set,
            NCAClassifier().familiarity,
            NCAClassifier().drift,
            NCARegressor().predict_interval,
        ):
            with pytest.raises(NotFittedError, match="is not fitted yet"):
                ask(np.zeros((2, 2)))
