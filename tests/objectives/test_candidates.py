"""Candidates: the rows near each row, and minibatches, which add up to the loss of all rows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from nearkin import NCA
from nearkin.estimators.descent_embedding import RowsInPlace, UnitRows
from nearkin.neighbors import EXACT
from nearkin.objectives.candidates import Candidates, Minibatch, near_rows
from nearkin.objectives.loss import Ridge
from nearkin.objectives.nca import StochasticNeighbors, nca_objective
from nearkin.objectives.stochastic import SameClass

from ..estimators.test_nca_sgd import clusters


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def sgd(*arguments, **parameters):
    return NCA(*arguments, **{"solver": "sgd", "random_state": 0, **parameters})


@pytest.mark.parametrize(
    ("objective", "structure"), [("expected_accuracy", "full"), ("log_likelihood", "diagonal")]
)
@pytest.mark.parametrize("size", [40, 50])  # 200 rows: parts of 40; 50
def test_an_epoch_has_the_loss_and_the_gradient_of_all_rows_for_its_mean(
    objective, structure, size
):
    X, y = clusters(200, 8)
    X += 100.0
    whole = UnitRows.of(X)
    rng = np.random.default_rng(0)
    B = rng.normal(size=8 if structure == "diagonal" else (3, 8)) / 3
    for rows in (whole, RowsInPlace.of(X, whole.unit)):
        near = near_rows(rows.embedding(B), 7, y if objective == "log_likelihood" else None, EXACT)
        far = rng.choice(200, 200, replace=False)
        loss = StochasticNeighbors(whole, EXACT, None, objective, SameClass(y))
        value, gradient = loss.value(B, Candidates(near, far, 200))
        loss = replace(loss, rows=rows)
        parts = [
            loss.estimate(B, Minibatch.of(anchors, near[anchors], far, 200, 200 // size))
            for anchors in np.split(rng.permutation(200), 200 // size)
        ]
        assert np.mean([part[0] for part in parts]) == pytest.approx(value, rel=1e-10)
        mean = np.mean([part[1] for part in parts], axis=0)
        np.testing.assert_allclose(mean, gradient, atol=1e-10 * np.abs(gradient).max())


def test_an_epoch_has_every_row_for_an_anchor_once(monkeypatch):
    X, y = clusters(150, 8)
    seen = []
    estimate = StochasticNeighbors.estimate
    monkeypatch.setattr(
        StochasticNeighbors,
        "estimate",
        lambda self, B, batch: seen.append(batch.anchors) or estimate(self, B, batch),
    )
    sgd(2, batch_size=40, max_iter=3, tol=1.0).fit(X, y)
    assert len(seen) == 3 * 4
    epochs = [np.concatenate(seen[start : start + 4]) for start in (0, 4, 8)]
    for epoch in epochs:
        np.testing.assert_array_equal(np.sort(epoch), np.arange(150))
    assert {len(anchors) for anchors in seen} <= {37, 38}
    assert (epochs[0] != epochs[1]).any()


def test_the_penalty_counts_all_rows():
    X, y = wine()
    model = sgd(2).partial_fit(X, y).partial_fit(X, y)
    state = model._sgd_state
    assert state.n_counted == 2 * len(X)
    rows = RowsInPlace.of(X, state.unit)
    loss = StochasticNeighbors(rows, EXACT, 15, model.objective, SameClass(y))
    loss = loss + Ridge(0.15, 2 * len(X))
    value = nca_objective("expected_accuracy", model.components_, X, SameClass(y))[0] / len(X)
    penalty = 0.15 / (2 * len(X)) ** 0.5 * np.sum(state.B**2)
    assert loss.evaluate(state.B)[0] == pytest.approx(penalty - value, rel=1e-6)
    assert model.objective_ == pytest.approx(value, rel=1e-6)


class TestNearRows:
    @pytest.mark.parametrize("of_class", [False, True])
    def test_of_some_are_those_of_all(self, of_class):
        X, y = clusters(300, 5)
        y[:2] = [7, 8]  # alone in their classes
        codes = y if of_class else None
        some = np.append([1, 0], np.random.default_rng(0).permutation(np.arange(2, 300))[:88])
        np.testing.assert_array_equal(
            near_rows(X, 6, codes, anchors=some), near_rows(X, 6, codes)[some]
        )

    def test_never_the_row_itself_even_among_duplicates(self):
        Z = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 30, axis=0)
        some = np.arange(0, 120, 7)
        near = near_rows(Z, 5, None, anchors=some)
        assert near.shape == (len(some), 5)
        assert (near != some[:, None]).all()
