"""The terms of a descent by minibatches add up to those of all rows."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from nearkin import NCA
from nearkin.estimators.descent_embedding import (
    RowsInPlace,
    UnitRows,
    near_rows,
    penalty,
)
from nearkin.estimators.nca import LabelTerm
from nearkin.neighbors import EXACT
from nearkin.objectives.nca import expected_accuracy
from nearkin.objectives.stochastic import Candidates, SameClass

from .test_nca_sgd import clusters


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
        value, gradient = LabelTerm(whole, objective, SameClass(y), EXACT)(
            B, Candidates(near, far, 200)
        )
        term = LabelTerm(rows, objective, SameClass(y), EXACT)
        parts = [
            term.estimate(B, Candidates.of_anchors(anchors, near[anchors], far, 200), 200 // size)
            for anchors in np.split(rng.permutation(200), 200 // size)
        ]
        assert np.mean([part[0] for part in parts]) == pytest.approx(value, rel=1e-10)
        mean = np.mean([part[1] for part in parts], axis=0)
        np.testing.assert_allclose(mean, gradient, atol=1e-10 * np.abs(gradient).max())


def test_an_epoch_has_every_row_for_an_anchor_once(monkeypatch):
    X, y = clusters(150, 8)
    seen = []
    estimate = LabelTerm.estimate
    monkeypatch.setattr(
        LabelTerm,
        "estimate",
        lambda self, B, candidates, n: (
            seen.append(candidates.rows[: len(candidates.near)]) or estimate(self, B, candidates, n)
        ),
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
    term = LabelTerm(RowsInPlace.of(X, state.unit), model.objective, SameClass(y), EXACT)
    value = expected_accuracy(model.components_, X, SameClass(y))[0] / len(X)
    loss = penalty(state.B, 0.15, 2 * len(X))[0] - value
    assert model._evaluate(term, state.B, 2 * len(X))[0] == pytest.approx(loss, rel=1e-6)
