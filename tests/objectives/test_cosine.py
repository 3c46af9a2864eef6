"""The losses on cosines against their definition by loops, their gradients by differences, and
their limits.
"""

import numpy as np
import pytest

from nearkin._blocks import unit_rows
from nearkin.objectives.cosine import LOSSES, Comparison, CosineSoftmax, softmax_loss
from nearkin.testing import check_gradient

B, C, P, M = 9, 13, 5, 3
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_kind = pytest.mark.parametrize("kind", ["mutual", "mapped", "fixed", "offered"])


def problem(kind, seed=0, dtype=np.float64):
    """Return a map and a comparison; query 4 has no relevant candidate, and relevance is graded."""
    rng = np.random.default_rng(seed)
    Q, D = rng.normal(size=(B, P)), rng.normal(size=(C, P))
    if kind == "mutual":
        D = Q
    m = P if kind == "fixed" else M
    W = rng.uniform(0.2, 2, (B, len(D))) * (rng.random((B, len(D))) < 0.4)
    if kind == "mutual":
        np.fill_diagonal(W, 0)
    offered = (rng.random(W.shape) < 0.6) | (W > 0) if kind == "offered" else None
    W[4] = 0
    D = None if kind == "mutual" else (unit_rows(D) if kind == "fixed" else D).astype(dtype)
    return rng.normal(size=(m, P)), Comparison(
        Q.astype(dtype), D, W.astype(dtype), offered, kind == "fixed"
    )


def by_loops(A, comparison, temperature, loss):
    def cos(u, v):
        return u @ v / np.linalg.norm(u) / np.linalg.norm(v)

    Q, D, W = comparison.queries, comparison.candidates, comparison.relevance
    D = Q if D is None else D
    losses = []
    for i in range(len(Q)):
        own = [j for j in range(len(D)) if comparison.candidates is not None or i != j]
        if comparison.offered is not None:
            own = [j for j in own if comparison.offered[i, j]]
        e = {
            j: np.exp(cos(A @ Q[i], D[j] if comparison.fixed else A @ D[j]) / temperature)
            for j in own
        }
        p = {j: e[j] / sum(e.values()) for j in own}
        if sum(W[i]) == 0:
            continue
        if loss == "nca":
            losses.append(-np.log(sum(W[i, j] * p[j] for j in own)))
        else:
            losses.append(-sum(W[i, j] * np.log(p[j]) for j in own) / sum(W[i]))
    return np.mean(losses)


@every_loss
@every_kind
class TestAgainstTheDefinition:
    @pytest.mark.parametrize("temperature", [0.05, 0.5, 3.0])
    def test_value_and_gradient(self, kind, loss, temperature):
        A, comparison = problem(kind)
        value, _ = softmax_loss(A, comparison, temperature, loss)
        assert value == pytest.approx(by_loops(A, comparison, temperature, loss), rel=1e-10)
        check_gradient(lambda A: softmax_loss(A, comparison, temperature, loss), A)

    def test_single_precision(self, kind, loss):
        A, comparison = problem(kind)
        value, gradient = softmax_loss(A, comparison, 0.1, loss)
        again, gradient_again = softmax_loss(A, problem(kind, dtype=np.float32)[1], 0.1, loss)
        assert again == pytest.approx(value, rel=1e-5)
        assert gradient_again.dtype == np.float32
        np.testing.assert_allclose(gradient_again, gradient, atol=1e-5 * np.abs(gradient).max())

    def test_only_directions_count(self, kind, loss):
        """Of rows, and of the map: its gradient has no part along it."""
        A, comparison = problem(kind)
        value, gradient = softmax_loss(A, comparison, 0.3, loss)
        assert softmax_loss(7.5 * A, comparison, 0.3, loss)[0] == pytest.approx(value, rel=1e-12)
        assert abs(np.sum(A * gradient)) < 1e-12
        lengths = np.random.default_rng(1).uniform(0.1, 10, (B, 1))
        scaled = Comparison(comparison.queries * lengths, *list(vars(comparison).values())[1:])
        assert softmax_loss(A, scaled, 0.3, loss)[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(softmax_loss(A, scaled, 0.3, loss)[1], gradient, atol=1e-12)

    def test_rotations_of_the_features_and_of_what_is_mapped(self, kind, loss):
        A, comparison = problem(kind)
        R, S = (
            np.linalg.qr(np.random.default_rng(i).normal(size=(m, m)))[0]
            for i, m in ((1, P), (2, len(A)))
        )
        D = comparison.candidates
        D = None if D is None else D @ S.T if kind == "fixed" else D @ R.T
        turned = Comparison(
            comparison.queries @ R.T, D, comparison.relevance, comparison.offered, comparison.fixed
        )
        value, gradient = softmax_loss(A, comparison, 0.3, loss)
        again, gradient_again = softmax_loss(S @ A @ R.T, turned, 0.3, loss)
        assert again == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient_again, S @ gradient @ R.T, atol=1e-12)

    def test_grades_count_relative_to_those_of_the_query(self, kind, loss):
        A, comparison = problem(kind)
        factor = np.random.default_rng(1).uniform(0.5, 3, (B, 1))
        _, D, W, offered, fixed, _ = vars(comparison).values()
        value, gradient = softmax_loss(A, comparison, 0.3, loss)
        other, same = softmax_loss(
            A, Comparison(comparison.queries, D, W * factor, offered, fixed), 0.3, loss
        )
        has = W.any(axis=1)
        shift = -np.log(factor[has]).mean() if loss == "nca" else 0
        assert other == pytest.approx(value + shift, rel=1e-12)
        np.testing.assert_allclose(same, gradient, atol=1e-12)

    def test_rows_of_zeros_have_no_gradient_that_is_not_finite(self, kind, loss):
        A, comparison = problem(kind)
        comparison.queries[[0, 4]] = 0
        value, gradient = softmax_loss(A, comparison, 0.3, loss)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_no_query_is_lost_at_a_small_temperature(self, kind, loss, dtype):
        """T times the loss tends to what the best, or the mean, relevant candidate lacks of the
        best of all.
        """
        A, comparison = problem(kind, dtype=dtype)
        Q, D, W, offered, fixed, _ = vars(comparison).values()
        Z = unit_rows(Q @ A.T)
        S = Z @ (Z if D is None else D if fixed else unit_rows(D @ A.T)).T
        own = np.ones(S.shape, bool) if offered is None else offered
        own = own & (S < 1 - 1e-6) if D is None else own
        best, has = np.where(own, S, -2).max(axis=1), W.any(axis=1)
        if loss == "nca":
            lacks = best - np.where(W > 0, S, -2).max(axis=1)
        else:
            lacks = best - np.sum(W * S, axis=1) / np.where(has, W.sum(axis=1), 1)
        value, gradient = softmax_loss(A, comparison, 1e-4, loss)
        assert lacks[has].max() > 0.1
        assert 1e-4 * value == pytest.approx(lacks[has].mean(), abs=1e-3)
        assert np.isfinite(gradient).all()


class TestLimits:
    @every_loss
    @every_kind
    def test_all_candidates_are_alike_at_a_high_temperature(self, kind, loss):
        A, comparison = problem(kind)
        W, offered = comparison.relevance, comparison.offered
        n = np.full(B, B - 1 if kind == "mutual" else C) if offered is None else offered.sum(axis=1)
        has = W.any(axis=1)
        expected = np.log(n[has]) - (np.log(W[has].sum(axis=1)) if loss == "nca" else 0)
        value, gradient = softmax_loss(A, comparison, 1e8, loss)
        assert value == pytest.approx(expected.mean(), abs=1e-6)
        assert np.abs(gradient).max() < 1e-6

    @every_kind
    def test_of_one_relevant_candidate_both_losses_are_one(self, kind):
        A, comparison = problem(kind)
        W = comparison.relevance
        W[:] = np.where(W.max(axis=1, keepdims=True) == W, W > 0, 0)
        (value, gradient), (other, same) = (
            softmax_loss(A, comparison, 0.2, loss) for loss in LOSSES
        )
        assert other == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(same, gradient, atol=1e-12)

    @every_kind
    def test_of_several_the_mean_logarithm_is_the_larger_loss(self, kind):
        A, comparison = problem(kind)
        W = comparison.relevance
        W /= np.where(W.any(axis=1), W.sum(axis=1), 1)[:, None]
        nca, contrastive = (
            softmax_loss(A, comparison, 0.2, loss)[0] for loss in ("nca", "contrastive")
        )
        assert nca < contrastive

    @every_loss
    def test_of_two_candidates_it_is_the_logistic_loss_of_a_triplet(self, loss):
        rng = np.random.default_rng(0)
        A, a, b, c = rng.normal(size=(M, P)), *rng.normal(size=(3, 6, P))
        one = np.eye(6, dtype=bool)
        comparison = Comparison(a, np.vstack([b, c]), np.eye(6, 12), np.hstack([one, one]))
        za, zb, zc = (unit_rows(X @ A.T) for X in (a, b, c))
        expected = np.logaddexp(0, np.sum(za * (zc - zb), axis=1) / 0.1).mean()
        assert softmax_loss(A, comparison, 0.1, loss)[0] == pytest.approx(expected, rel=1e-10)

    @every_loss
    def test_candidates_that_are_not_offered_might_as_well_not_be_there(self, loss):
        A, comparison = problem("mapped")
        Q, D, W, *_ = vars(comparison).values()
        offered = np.tile(np.arange(C) < 8, (B, 1))
        found = softmax_loss(A, Comparison(Q, D, W * offered, offered), 0.2, loss)
        few = softmax_loss(A, Comparison(Q, D[:8], W[:, :8]), 0.2, loss)
        assert found[0] == pytest.approx(few[0], rel=1e-12)
        np.testing.assert_allclose(found[1], few[1], atol=1e-12)

    @every_loss
    def test_queries_without_a_relevant_candidate_do_not_count(self, loss):
        A, comparison = problem("mapped")
        Q, D, W, *_ = vars(comparison).values()
        has = W.any(axis=1)
        found, few = (
            softmax_loss(A, Comparison(Q[i], D, W[i]), 0.2, loss) for i in (slice(None), has)
        )
        assert not has.all()
        assert found[0] == pytest.approx(few[0], rel=1e-12)
        np.testing.assert_allclose(found[1], few[1], atol=1e-12)
        value, gradient = softmax_loss(A, Comparison(Q, D, 0 * W), 0.2, loss)
        assert value == 0
        assert not gradient.any()

    @every_loss
    @pytest.mark.parametrize("kind", ["mutual", "mapped", "offered"])
    def test_nested_sizes_are_the_mean_of_the_maps_to_the_leading_dimensions(self, kind, loss):
        A, comparison = problem(kind)
        sizes = [1, 2, M]
        expected = np.mean([softmax_loss(A[:m], comparison, 0.3, loss)[0] for m in sizes])
        assert CosineSoftmax(0.3, loss, sizes).estimate(A, comparison)[0] == pytest.approx(
            expected, rel=1e-12
        )
        check_gradient(lambda A: CosineSoftmax(0.3, loss, sizes).estimate(A, comparison), A)
        for one, plain in zip(
            CosineSoftmax(0.3, loss, [M]).estimate(A, comparison),
            softmax_loss(A, comparison, 0.3, loss),
            strict=True,
        ):
            np.testing.assert_array_equal(one, plain)

    @every_loss
    def test_a_step_along_the_gradient_lowers_it(self, loss):
        for kind in ("mutual", "mapped", "fixed", "offered"):
            A, comparison = problem(kind)
            value, gradient = softmax_loss(A, comparison, 0.1, loss)
            assert softmax_loss(A - 1e-3 * gradient, comparison, 0.1, loss)[0] < value


@every_loss
@pytest.mark.parametrize("kind", ["mutual", "fixed"])
class TestWeights:
    """Of rows that are queries and candidates of each other."""

    COPIES = np.array([2, 1, 3, 1, 4, 2, 1, 1, 5])

    def weighted(self, kind, weights):
        """Return a map and rows with weights: of mean 1 over the queries that count."""
        A, comparison = problem("mutual")
        Q, _, W, *_ = vars(comparison).values()
        weights = weights / weights[W.any(axis=1)].mean()
        if kind == "mutual":
            return A, Comparison(Q, None, W, weights=weights)
        offered = ~np.eye(B, dtype=bool)
        A = np.random.default_rng(1).normal(size=(P, P))
        return A, Comparison(Q, unit_rows(Q), W, offered, True, weights)

    def test_copies_that_are_no_candidates_of_each_other(self, kind, loss):
        A, comparison = self.weighted(kind, self.COPIES)
        Q, D, W, *_ = vars(comparison).values()
        of = np.repeat(np.arange(B), self.COPIES)
        others = of[:, None] != of
        D = None if D is None else D[of]
        copied = Comparison(Q[of], D, W[of][:, of], others, comparison.fixed)
        value, gradient = softmax_loss(A, comparison, 0.3, loss)
        expected, slope = softmax_loss(A, copied, 0.3, loss)
        # log p of a single copy: as many more as there are, so much less likely is each
        scale = np.log((self.COPIES / comparison.weights)[0]) if loss == "contrastive" else 0
        assert value + scale == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, atol=1e-12)
        check_gradient(lambda A: softmax_loss(A, comparison, 0.3, loss), A)

    def test_equal_ones_are_none(self, kind, loss):
        A, comparison = self.weighted(kind, np.full(B, 2.0))
        none = Comparison(*list(vars(comparison).values())[:-1])
        value, gradient = softmax_loss(A, comparison, 0.3, loss)
        expected, slope = softmax_loss(A, none, 0.3, loss)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, atol=1e-12)
