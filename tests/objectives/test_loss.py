"""Losses with penalties: the gradients of every sum, and the penalty on groups of columns."""

from dataclasses import replace

import numpy as np
import pytest

from nearkin.estimators.descent_embedding import UnitRows
from nearkin.neighbors import EXACT
from nearkin.objectives.candidates import NeighborLoss, target_neighbors
from nearkin.objectives.cosine import Comparison, CosineSoftmax
from nearkin.objectives.kernel_regression import KernelRegression, log_loss, squared_error
from nearkin.objectives.lmnn import ComparisonMargin, Comparisons, LargeMargin
from nearkin.objectives.loss import Ridge, Scaled, group_penalty
from nearkin.objectives.nca import SimilarPairs, StochasticNeighbors
from nearkin.objectives.stochastic import SameClass, TargetKernel
from nearkin.testing import check_gradient

groups = np.array([0, 1, 0, 2, 2, 2])
rng = np.random.default_rng(0)
A = rng.normal(size=(3, 6))
X, codes = rng.normal(size=(40, 6)), np.arange(40) % 3
W = rng.gamma(1.0, size=40)
PENALTIES = {
    "ridge": Ridge(2.0, 40),
    "ridge about a map": Ridge(2.0, 40, center=A[::-1]),
    "groups": Ridge(2.0, 40, groups=groups),
}


def losses():
    """Yield every loss of a linear map, by name."""
    rows = UnitRows.of(X)
    for objective in ("expected_accuracy", "log_likelihood"):
        for weights in (None, W):
            for pair_weights in (SameClass(codes, weights), TargetKernel(X[:, 0], 0.3, weights)):
                kind = type(pair_weights).__name__
                loss = StochasticNeighbors(rows, EXACT, 7, objective, pair_weights)
                yield f"{objective}, {kind}, {weights is None}", loss
    pairs = np.column_stack([np.arange(39), np.arange(1, 40)])
    for weights in (None, W):
        yield f"pairs, {weights is None}", SimilarPairs(rows, EXACT, 7, pairs, W[1:], weights)
        yield f"squares, {weights is None}", KernelRegression(X, X[:, :2], squared_error, weights)
    yield "log loss", KernelRegression(X, np.eye(3)[codes], log_loss, W, 20)
    targets = target_neighbors(X, codes, 2)
    for weights in (None, W):
        yield f"margin, {weights is None}", LargeMargin(X, codes, targets, weights)
    yield "scaled margin", Scaled(LargeMargin(X, codes, targets, None), 3.0)
    quadruplets = np.array([(i, (i + 3) % 40, i, (i + 1) % 40) for i in range(40)])
    yield "comparisons", ComparisonMargin(X, Comparisons.of(quadruplets, W))


def batch_of(loss):
    """Return a minibatch of a loss, or None if it has none."""
    if isinstance(loss, NeighborLoss):
        return loss.batches(15, 1, np.random.default_rng(0))(A, 0)
    return np.arange(0, 40, 2) if isinstance(loss, KernelRegression) else None


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
@pytest.mark.parametrize("loss", [pytest.param(one, id=name) for name, one in losses()])
class TestSums:
    def test_gradient(self, loss, penalty):
        total, B = loss + penalty, A / 3
        check_gradient(total.value, B)
        part = loss.candidates(B)
        if part is not None:
            check_gradient(lambda B: total.value(B, part), B)
        if (batch := batch_of(loss)) is not None:
            check_gradient(lambda B: total.estimate(B, batch), B)

    def test_the_penalty_is_added_once(self, loss, penalty):
        total, cost = loss + penalty, penalty(A)[0]
        assert total.value(A)[0] == loss.value(A)[0] + cost
        if isinstance(loss, NeighborLoss):
            assert total.evaluate(A)[0] == loss.evaluate(A)[0] + cost
        if (batch := batch_of(loss)) is not None:
            assert total.estimate(A, batch)[0] == loss.estimate(A, batch)[0] + cost


def test_gradient_of_cosines():
    """Their estimates are the only ones; the penalty is about the start."""
    relevance = (codes[:, None] == codes) & ~np.eye(40, dtype=bool)
    comparison = Comparison(X, None, relevance * 1.0)
    for name in ("nca", "contrastive"):
        loss = CosineSoftmax(0.3, name, [1, 3]) + Ridge(2.0, 40, center=A[::-1])
        check_gradient(lambda A, loss=loss: loss.estimate(A, comparison), A)
        with pytest.raises(TypeError, match=r"CosineSoftmax.* has estimates only"):
            loss.value(A)


@pytest.mark.parametrize("solver", ["batches", "estimate", "evaluate"])
def test_a_loss_without_minibatches_says_so(solver):
    loss = ComparisonMargin(X, None) + Ridge(1.0)
    arguments = {"batches": (10, 1, rng), "estimate": (A, None), "evaluate": (A,)}[solver]
    with pytest.raises(TypeError, match="ComparisonMargin"):
        getattr(loss, solver)(*arguments)


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
def test_of_more_rows_the_penalty_is_less(penalty):
    check_gradient(penalty, A)
    assert replace(penalty, n=160)(A)[0] == pytest.approx(penalty(A)[0] / 2)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_gradient(power):
    check_gradient(lambda B: group_penalty(B, groups, power), A)


def test_definition():
    norms = [np.linalg.norm(A[:, groups == group]) for group in range(3)]
    expected = 3 ** (1 - 2 / 1.5) * sum(norm**1.5 for norm in norms) ** (2 / 1.5)
    np.testing.assert_allclose(group_penalty(A, groups)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_groups_of_one_norm_have_the_squared_norm(power):
    equal = np.hstack(
        [A[:, groups == group] / np.linalg.norm(A[:, groups == group]) for group in range(3)]
    )
    np.testing.assert_allclose(group_penalty(equal, np.sort(groups), power)[0], np.sum(equal**2))
    # of the same squared norm, few groups cost less
    assert group_penalty(A, groups, power)[0] < np.sum(A**2)


def test_power_two_is_the_squared_norm():
    value, gradient = group_penalty(A, groups, 2.0)
    np.testing.assert_allclose(value, np.sum(A**2))
    np.testing.assert_allclose(gradient, 2 * A, rtol=1e-6)


def test_a_map_of_zeros_has_a_gradient():
    value, gradient = group_penalty(np.zeros((2, 6)), groups)
    assert value < 1e-15
    assert not gradient.any()
