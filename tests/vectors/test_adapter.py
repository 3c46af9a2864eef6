"""EmbeddingAdapter: its start, what does not change it, and what every kind of supervision teaches
it.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from nearkin import EmbeddingAdapter
from nearkin._blocks import unit_rows
from nearkin.objectives.cosine import Comparison, softmax_loss
from nearkin.scatter import total_scatter, within_scatter
from nearkin.vectors import Labels, adapter, judgements
from nearkin.vectors.start import plda

P, M = 10, 3
KINDS = ["labels", "pairs", "triplets", "relevance"]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_side = pytest.mark.parametrize("side", ["both", "query"])


def planted(n_classes=10, each=6, p=P, seed=0):
    """Return rows of classes that differ in three directions, and vary most in the others; rotated."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), each)
    signal = rng.normal(size=(n_classes, 3))[y] + 0.4 * rng.normal(size=(len(y), 3))
    X = np.hstack([signal, 1.2 * rng.normal(size=(len(y), p - 3))])
    return X @ np.linalg.qr(rng.normal(size=(p, p)))[0], y


def pairs_of(y):
    return np.column_stack([np.arange(len(y) - 1), np.arange(1, len(y))])[y[1:] == y[:-1]]


def triplets_of(y):
    """Return every pair with a row of another class."""
    pairs = pairs_of(y)
    others = (pairs[:, 0] + len(y) // 3 + 5 * np.arange(len(pairs))) % len(y)
    return np.column_stack([pairs, others])[y[others] != y[pairs[:, 0]]]


def fitted(kind, X, y, order=None, **parameters):
    """Fit to rows in another order, knowing the same of each."""
    order = np.arange(len(X)) if order is None else order
    place, Q = np.argsort(order), X[::4] + 0.1 * X[1::4][: len(X[::4])].mean(axis=0)
    size = None if parameters.get("side") == "query" else M
    model = EmbeddingAdapter(size, **{"max_iter": 5, "start": "plda", **parameters})
    X = X[order]
    if kind == "labels":
        return model.fit(X, y[order])
    if kind == "pairs":
        return model.fit_pairs(X, place[pairs_of(y)], np.arange(len(pairs_of(y))) % 3 + 1)
    if kind == "triplets":
        return model.fit_triplets(X, place[triplets_of(y)])
    query, document = np.nonzero(y[::4, None] == y)
    return model.fit_relevance(Q, X, np.column_stack([query, place[document]]))


def cosines(model, X):
    Z = model.embed(X)
    return Z @ Z.T


def covariances(X, y):
    rows = unit_rows(X)
    return total_scatter(rows) / len(X), within_scatter(rows, y) / (len(X) - y.max() - 1)


def centred(X):
    return unit_rows(X) - unit_rows(X).mean(axis=0)


def labels(X, y, weights=None):
    return Labels.of(X, y, np.arange(len(X)), weights)


def start(X, y, m):
    S_w = labels(centred(X), y).within_covariance()
    return plda(total_scatter(centred(X)) / len(X), S_w, m)


class TestStart:
    @pytest.mark.parametrize("m", [1, 4, P])
    def test_solves_the_eigenproblem(self, m):
        """V'WV = I and V'BV = diag(psi), psi descending: hence A W A' and A B A' are diagonal, and
        psi their ratio.
        """
        X, y = planted()
        A, (S_t, S_w) = start(X, y, m), covariances(X, y)
        W, B = S_w + np.trace(S_w) / P * np.eye(P), S_t - S_w / 2
        AWA, ABA = A @ W @ A.T, A @ B @ A.T
        for found in (AWA, ABA):
            np.testing.assert_allclose(found, np.diag(np.diag(found)), atol=1e-9)
        psi = np.diag(ABA) / np.diag(AWA)
        assert (np.diff(psi) < 0).all()
        largest = np.sort(np.linalg.eigvals(np.linalg.solve(W, B)).real)[::-1][:m]
        np.testing.assert_allclose(psi, largest, rtol=1e-8)
        weights = np.diag(AWA)
        np.testing.assert_allclose(
            weights / weights[0], psi / (1 + 2 * psi) / (psi[0] / (1 + 2 * psi[0])), rtol=1e-8
        )
        assert np.linalg.norm(A) == pytest.approx(m**0.5)

    def test_is_the_bilinear_part_of_the_log_likelihood_ratio(self):
        X, y = planted()
        A, (S_t, S_w) = start(X, y, P), covariances(X, y)
        W, B = S_w + np.trace(S_w) / P * np.eye(P), S_t - S_w / 2
        assert np.linalg.eigvalsh(B).min() > 0
        pairs = np.random.default_rng(1).normal(size=(20, 2, P))
        zero = np.zeros_like(pairs[:, :1])
        same = np.block([[W + B, B], [B, W + B]])
        different = np.block([[W + B, 0 * B], [0 * B, W + B]])

        def ratio(u, v):
            both = np.hstack([u, v])
            return multivariate_normal(cov=same).logpdf(both) - multivariate_normal(
                cov=different
            ).logpdf(both)

        u, v, o = pairs[:, 0], pairs[:, 1], zero[:, 0]
        bilinear = ratio(u, v) - ratio(u, o) - ratio(o, v) + ratio(o, o)
        products = np.sum((u @ A.T) * (v @ A.T), axis=1)
        np.testing.assert_allclose(products / bilinear, products[0] / bilinear[0], rtol=1e-8)
        assert products[0] / bilinear[0] > 0

    @every_side
    def test_is_kept_by_a_large_penalty_and_left_the_further_the_smaller_it_is(self, side):
        X, y = planted()
        A = start(X, y, M) if side == "both" else np.eye(P)

        def away(alpha):
            model = fitted("labels", X, y, side=side, alpha=alpha, max_iter=20)
            return np.linalg.norm(model.components_ - A) / np.linalg.norm(A)

        distances = [away(alpha) for alpha in (1e12, 10.0, 0.1, 0.0)]
        assert distances[0] < 1e-3
        assert (np.diff(distances) > 0).all()

    @pytest.mark.parametrize("n", [2, 30])
    def test_where_rows_that_belong_together_are_no_nearer_than_others(self, n):
        X = np.random.default_rng(0).normal(size=(n // 2, 4))
        pairs = np.column_stack([np.arange(n // 2), np.arange(n // 2, n)])
        model = EmbeddingAdapter(2).fit_pairs(np.vstack([X, -X]), pairs)
        assert np.isfinite(model.components_).all()
        assert np.linalg.matrix_rank(model.components_) == 2

    def test_where_rows_of_a_class_are_equal(self):
        X, y = (
            np.repeat(np.random.default_rng(0).normal(size=(5, 4)), 3, axis=0),
            np.repeat(np.arange(5), 3),
        )
        Z = EmbeddingAdapter(3).fit(X, y).transform(X)
        np.testing.assert_allclose(Z[::3], Z[2::3], atol=1e-12)
        assert (Z @ Z.T)[y[:, None] != y].max() < 0.9

    def test_more_features_than_rows(self):
        X, y = planted(6, 4, p=60)
        for m in (2, 30, None):
            model = EmbeddingAdapter(m).fit(X, y)
            assert model.components_.shape == (m or 60, 60)
            assert np.isfinite(model.transform(X)).all()


@every_kind
@every_side
class TestEveryKind:
    def test_the_loss_decreases(self, kind, side):
        model = fitted(kind, *planted(), side=side)
        assert model.loss_curve_[-1] < model.loss_curve_[0]
        assert len(model.loss_curve_) == model.n_iter_ + 1 == 6
        assert model.loss_ == ("nca" if kind == "labels" else "contrastive")

    def test_order_and_length_of_rows_do_not_count(self, kind, side):
        (X, y), rng = planted(), np.random.default_rng(0)
        plain = cosines(fitted(kind, X, y, side=side), X)
        permuted = fitted(kind, X, y, rng.permutation(len(X)), side=side)
        np.testing.assert_allclose(cosines(permuted, X), plain, atol=1e-7)
        if kind != "relevance":  # its queries are sums of rows
            scaled = fitted(kind, X * rng.uniform(0.1, 10, (len(X), 1)), y, side=side)
            np.testing.assert_allclose(cosines(scaled, X), plain, atol=1e-7)
        np.testing.assert_allclose(cosines(permuted, 16 * X), cosines(permuted, X), atol=1e-12)

    def test_rotated_features(self, kind, side):
        X, y = planted()
        R = np.linalg.qr(np.random.default_rng(1).normal(size=(P, P)))[0]
        turned = fitted(kind, X @ R, y, side=side)
        np.testing.assert_allclose(
            cosines(turned, X @ R), cosines(fitted(kind, X, y, side=side), X), atol=1e-7
        )

    def test_single_precision(self, kind, side):
        X, y = planted()
        single = fitted(kind, X.astype(np.float32), y, side=side)
        assert (
            single.components_.dtype
            == single.bias_.dtype
            == single.transform(X.astype(np.float32)).dtype
        )
        assert single.components_.dtype == np.float32
        np.testing.assert_allclose(
            cosines(single, X), cosines(fitted(kind, X, y, side=side), X), atol=1e-3
        )

    def test_a_seed_does_not_matter_where_one_batch_holds_all(self, kind, side):
        X, y = planted()
        one, other = (
            cosines(fitted(kind, X, y, side=side, random_state=seed), X) for seed in (0, 1)
        )
        np.testing.assert_allclose(one, other, atol=1e-7)

    def test_several_batches_and_as_many_candidates(self, kind, side, monkeypatch):
        X, y = planted()
        monkeypatch.setattr(adapter, "BATCH", 12)
        monkeypatch.setattr(judgements, "CANDIDATES", 35)
        one, same, other = (fitted(kind, X, y, side=side, random_state=seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(one.components_, same.components_)
        assert not np.allclose(one.components_, other.components_)
        assert one.loss_curve_[-1] < one.loss_curve_[1]

    def test_the_query_side_leaves_documents_and_subtracts_nothing(self, kind, side):
        X, y = planted()
        model = fitted(kind, X, y, side=side)
        if side == "both":
            assert model.components_.shape == (M, P)
            np.testing.assert_allclose(
                model.bias_, -model.components_ @ self.mean(kind, X), atol=1e-12
            )
        else:
            assert model.components_.shape == (P, P)
            assert not model.bias_.any()
        Z = unit_rows(X) @ model.components_.T + model.bias_
        np.testing.assert_allclose(model.transform(X), unit_rows(Z), atol=1e-12)

    @staticmethod
    def mean(kind, X):
        Q = X[::4] + 0.1 * X[1::4].mean(axis=0)
        return (
            np.vstack([unit_rows(X), unit_rows(Q)]) if kind == "relevance" else unit_rows(X)
        ).mean(axis=0)

    @pytest.mark.slow_after(1)
    def test_relevant_rows_get_near_that_were_held_out(self, kind, side):
        """Nearer than with the rows themselves, and than with as many principal components."""
        X, y = planted(14, 16)
        X, X_new, y, y_new = train_test_split(X, y, stratify=y, random_state=0)
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
        model = fitted(kind, X, y, side=side, max_iter=20)
        raw, raw_new, Z_new = unit_rows(X), unit_rows(X_new), model.transform(X_new)

        def precision(Z_queries, Z_documents):
            top = np.argsort(-Z_queries @ Z_documents.T, axis=1)[:, :5]
            return np.mean(y[top] == y_new[:, None])

        found = precision(Z_new, raw if side == "query" else model.transform(X))
        pca = PCA(M).fit(raw)
        assert found > 1.15 * precision(raw_new, raw)
        assert found > 1.15 * precision(
            unit_rows(pca.transform(raw_new)), unit_rows(pca.transform(raw))
        )


class TestNested:
    @pytest.mark.long
    def test_leading_dimensions_are_better_by_themselves(self):
        X, y = planted()
        same = (y[:, None] == y) & ~np.eye(len(y), dtype=bool)
        comparison = Comparison(centred(X), None, 1.0 * same)

        def loss(m, nested):
            A = EmbeddingAdapter(6, nested=nested, alpha=0.01).fit(X, y).components_
            assert A.shape == (6, P)
            return softmax_loss(A[:m], comparison, 0.1, "nca")[0]

        for m in (2, 3, 4):
            assert loss(m, [m]) < loss(m, None) - 0.02

    def test_sizes_in_any_form(self):
        X, y = planted()
        of_sizes = [[1, 2], (2, 1), np.array([2, 1, 2]), [1, 2, M]], [None, [], [M]]
        for same in of_sizes:
            first, *others = (
                fitted("labels", X, y, nested=sizes, max_iter=2).components_ for sizes in same
            )
            for other in others:
                np.testing.assert_array_equal(other, first)


class TestQuantized:
    @pytest.mark.long
    def test_int8_changes_only_what_transform_returns(self):
        X, y = planted()
        plain, coded = (EmbeddingAdapter(M, quantize=name).fit(X, y) for name in (None, "int8"))
        np.testing.assert_array_equal(coded.embed(X), plain.transform(X))
        codes = coded.transform(X)
        assert codes.dtype == np.int8
        error = np.abs(coded.quantizer_.decode(codes) - coded.embed(X))
        assert error[np.abs(codes) < 127].max() <= coded.quantizer_.scale / 254 * (1 + 1e-5)
        assert plain.quantizer_ is None

    @pytest.mark.long
    @pytest.mark.parametrize("m", [7, 8, 9])
    def test_binary_turns_every_nested_size_within_itself(self, m):
        X, y = planted()
        plain, coded = (
            EmbeddingAdapter(m, nested=[2, 5], quantize=name).fit(X, y) for name in (None, "binary")
        )
        for size in (2, 5, m):
            Z, V = (unit_rows(model.embed(X)[:, :size]) for model in (plain, coded))
            np.testing.assert_allclose(V @ V.T, Z @ Z.T, atol=1e-9)
        codes = coded.transform(X)
        assert codes.shape == (len(X), -(-m // 8)) == (len(X), len(coded.get_feature_names_out()))
        np.testing.assert_array_equal(coded.quantizer_.decode(codes) > 0, coded.embed(X) > 0)

    @every_kind
    def test_int8_of_queries_and_documents_alike(self, kind):
        X, y = planted()
        model = fitted(kind, X, y, side="query", quantize="int8")
        assert model.quantizer_.encode(unit_rows(X)).shape == model.transform(X).shape == X.shape

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("name", ["int8", "binary"])
    def test_codes_that_are_fitted_later_are_those_of_the_fit(self, name):
        X, y = planted()
        plain, coded = (
            EmbeddingAdapter(M, nested=[2], quantize=quantize).fit(X, y)
            for quantize in (None, name)
        )
        A = plain.components_.copy()
        later = plain.quantized(name, X)
        np.testing.assert_array_equal(later.transform(X), coded.transform(X))
        np.testing.assert_allclose(later.embed(X), coded.embed(X), atol=1e-9)
        np.testing.assert_array_equal(plain.components_, A)
        assert plain.quantizer_ is None
        assert plain.quantize is None


class TestWeights:
    COPIES = 1 + np.arange(60) % 3

    @pytest.mark.parametrize("loss", ["nca", "contrastive"])
    @every_side
    @pytest.mark.parametrize("several", [False, True])
    def test_the_loss_is_that_of_copies_which_are_no_candidates_of_each_other(
        self, loss, side, several
    ):
        X, y = planted()
        Y = np.eye(10)[y] + np.eye(10)[(y + y % 2) % 10] > 0 if several else y
        is_fixed = side == "query"
        X = unit_rows(X)
        of = np.repeat(np.arange(60), self.COPIES)
        rng = np.random.default_rng(0)

        def comparison(known):
            found = known.comparison(known.items, rng)
            return found.with_fixed_candidates() if is_fixed else found

        many = comparison(labels(X[of], Y[of]))
        others = of[:, None] != of
        many = replace(many, relevance=many.relevance * others, offered=others)
        A = rng.normal(size=(P if is_fixed else M, P))
        found = softmax_loss(A, comparison(labels(X, Y, self.COPIES)), 0.2, loss)
        expected = softmax_loss(A, many, 0.2, loss)
        scale = np.log(self.COPIES.mean()) if loss == "contrastive" else 0  # of weights of mean 1
        assert found[0] + scale == pytest.approx(expected[0], rel=1e-10)
        np.testing.assert_allclose(found[1], expected[1], atol=1e-10)

    def test_batches_estimate_the_loss_of_all_without_bias(self):
        """However the weights differ: the mean is over all queries, not over those of a batch."""
        X, y = planted()
        rng = np.random.default_rng(0)
        kind = labels(unit_rows(X), y, rng.exponential(size=60))
        batches = [np.flatnonzero(np.isin(y, half)) for half in (range(5), range(5, 10))]
        weights = np.concatenate([kind.comparison(rows, rng).weights for rows in batches])
        assert weights.mean() == pytest.approx(1)

    def test_covariances_of_the_start_are_those_of_copies(self):
        X, y = planted()
        one = labels(X, y, 7 * self.COPIES)
        of = np.repeat(np.arange(60), self.COPIES)
        S_w = within_scatter(X[of], y[of]) / len(of) * 60 / 50  # 60 rows, 50 degrees of freedom
        np.testing.assert_allclose(one.within_covariance(), S_w, atol=1e-12)
        start = EmbeddingAdapter(M, start="pca", alpha=1e12)  # stays there
        start.fit(X, y, sample_weight=self.COPIES)
        mean = unit_rows(X)[of].mean(axis=0)
        np.testing.assert_allclose(start.bias_, -start.components_ @ mean, atol=1e-12)

    @pytest.mark.parametrize("start", ["plda", "auto"])
    def test_weight_0_is_a_row_that_is_absent(self, start):
        X, y = planted(each=8)
        kept = np.arange(len(y)) % 8 < 6
        weights = np.where(kept, 1.0 + np.arange(len(y)) % 3, 0)
        model = EmbeddingAdapter(M, start=start, max_iter=3)
        A = clone(model).fit(X, y, sample_weight=weights).components_
        B = clone(model).fit(X[kept], y[kept], sample_weight=weights[kept]).components_
        np.testing.assert_array_equal(A, B)
        assert not np.allclose(A, clone(model).fit(X[kept], y[kept]).components_)

    @pytest.mark.long
    def test_only_ratios_count_and_equal_ones_are_none(self):
        X, y = planted()
        y = np.where(np.arange(60) % 10 == 9, -1, y)  # some rows without a label

        def cosines(weights):
            model = EmbeddingAdapter(M, start="auto", max_iter=3).fit(X, y, sample_weight=weights)
            Z = model.transform(X)
            return Z @ Z.T

        scaled = cosines(1e-3 * self.COPIES)
        np.testing.assert_allclose(scaled, cosines(self.COPIES), atol=1e-10)
        np.testing.assert_allclose(cosines(np.full(60, 5)), cosines(None), atol=1e-10)
        assert not np.allclose(scaled, cosines(None), atol=1e-3)
