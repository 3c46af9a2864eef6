"""Methods fitted to shared rows learn what `fit` learns, and search once."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from nearkin import DMLMJ, DNE, GMML, LDE, LFDA, LPP, MFA, NMMP, RCA, SDA
from nearkin.estimators import Rows, SharedRows
from nearkin.estimators import rows as module

METHODS = [
    RCA(), GMML(), GMML(t=0.25), LPP(3), LFDA(), LDE(), LDE(n_neighbors_within=3), MFA(n_pairs=20), MFA(n_pairs=200),
    DMLMJ(), DNE(), DNE(n_neighbors=3), DNE(n_neighbors=10), NMMP(2), NMMP(4), NMMP(3, n_neighbors_within=[2, 5, 1]),
    NMMP(criterion="ratio_trace"), SDA(), NMMP(3, shrinkage=0.1), DNE(4),
]  # fmt: skip


def table(kind):
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 90, p=[0.2, 0.3, 0.5])
    p = 95 if kind == "wide" else 6
    X = rng.standard_normal((3, p))[np.unique(y, return_inverse=True)[1]] + rng.standard_normal(
        (90, p)
    )
    if kind == "sparse":
        X[np.abs(X) < 0.7] = 0
        return csr_array(X), y
    return X.astype(np.float32 if kind == "float32" else np.float64), y


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "kind",
    [
        "dense",
        "weighted",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("float32", "sparse", "wide")),
    ],
)
def test_same_maps(kind, recwarn):
    X, y = table(kind)
    weights = np.random.default_rng(1).integers(0, 4, len(y)) if kind == "weighted" else None
    rows = SharedRows(X, y, sample_weight=weights)
    fitted = [clone(method).fit(X, y, sample_weight=weights) for method in METHODS]
    # the second time from answers alone
    for method, alone in zip(METHODS * 2, fitted * 2, strict=True):
        shared = clone(method).fit_rows(rows)
        np.testing.assert_allclose(
            shared.transform(X), alone.transform(X), rtol=0, atol=1e-5, err_msg=str(method)
        )
        np.testing.assert_allclose(shared.eigenvalues_, alone.eigenvalues_, rtol=1e-6, atol=1e-9)
        assert {name for name in vars(alone) if name.endswith("_")} <= set(vars(shared))
        assert (shared.n_features_in_, shared.components_.dtype) == (X.shape[1], X.dtype)


def test_every_question_is_kept():
    """All that `Rows` computes; an operator is no more than a function, and a projection is of
    one method.
    """
    computed = {
        name for name, value in vars(Rows).items() if callable(value) and not name.startswith("_")
    }
    kept = {name for name, value in vars(SharedRows).items() if hasattr(value, "__wrapped__")}
    assert computed - kept == {"scatter_operator", "back_project"}


def test_each_search_once(monkeypatch):
    searched, search = [], Rows._knn

    def counted(self, relation, k):
        searched.append((relation, np.max(k)))
        return search(self, relation, k)

    monkeypatch.setattr(Rows, "_knn", counted)
    rows = SharedRows(*table("dense"))
    for method in METHODS:
        clone(method).fit_rows(rows)
    first = module.FIRST_SEARCH
    assert sorted(searched[:3]) == [("all", first), ("other", first), ("same", first)]
    assert [relation for relation, _ in searched[3:]] == ["other"]  # 200 pairs


def test_first_neighbors_of_longer_lists():
    """Numbers for each class and for all; rows that have fewer keep what they have."""
    X, y = table("dense")
    y[:3] = ["d", "e", "e"]
    rows, alone = (
        SharedRows(X, y),
        Rows(X, np.unique(y, return_inverse=True)[1], SharedRows(X, y).search),
    )
    for relation in ("same", "other"):
        for k in (4, 1, np.array([3, 0, 40, 2, 1]), 60, 2):
            few, expected = rows._knn(relation, k), alone._knn(relation, k)
            np.testing.assert_array_equal(few.indptr, expected.indptr)
            np.testing.assert_array_equal(few.indices, expected.indices)
            np.testing.assert_allclose(few.data, expected.data)


def test_answers_belong_to_the_graph():
    rows = SharedRows(*table("dense"))
    for scale in (1.0, 2.0, 3.0):  # each may get the address of the one before
        graph = rows.union_knn("same", 3) * scale
        np.testing.assert_allclose(
            rows.scatter(graph), scale * rows.scatter(rows.union_knn("same", 3))
        )
