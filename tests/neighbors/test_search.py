"""Which search a parameter names, and what share of the neighbours it finds."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsTransformer

from nearkin import DNE, ApproximateSearch
from nearkin.neighbors import approximate as approximate_module
from nearkin.neighbors import choose_search, recall, searcher

from .conftest import EXACT, SEARCHES, N, needs_faiss


@needs_faiss
def test_auto_is_a_rule_of_n():
    assert (choose_search(99_999), choose_search(100_000)) == ("exact", "approximate")
    assert (searcher("auto", 99_999).name, searcher("auto", 100_000).name) == (
        "exact",
        "approximate",
    )


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("near", "'exact', 'approximate', 'auto'"),
        (3, "got 3"),
        pytest.param(ApproximateSearch(n_probes=0), "n_probes must be", marks=needs_faiss),
    ],
)
def test_what_is_no_search(search, message):
    with pytest.raises(ValueError, match=message):
        DNE(search=search).fit(np.eye(4), [0, 0, 1, 1])


@needs_faiss
@pytest.mark.parametrize("relation", SEARCHES)
def test_recall_is_the_share_of_true_neighbours(labelled, relation, monkeypatch):
    monkeypatch.setattr(approximate_module, "BRUTE_CLASS", 50)
    X, y = labelled
    exact = SEARCHES[relation](X, y, 5, EXACT)
    for n_probes in (1, 1000):
        approximate = ApproximateSearch(n_lists=30, n_probes=n_probes)
        G = SEARCHES[relation](X, y, 5, searcher(approximate, N))
        found = recall(X, approximate, 5, y, relation=relation)
        pairs = [
            set(zip(np.repeat(np.arange(N), np.diff(A.indptr)), A.indices, strict=True))
            for A in (G, exact)
        ]
        assert found == pytest.approx(len(pairs[0] & pairs[1]) / exact.nnz, abs=0.03)
    assert found == 1.0


def test_recall_of_an_exact_search(labelled):
    X, y = labelled
    assert recall(X, "exact", 3) == recall(X, KNeighborsTransformer(), 3, y, relation="same") == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"relation": "same"}, "relation='same' needs the classes of the rows: give y"),
        ({"relation": "others"}, "relation must be one of all, same, other"),
        ({"n_neighbors": 0}, "n_neighbors must be at least 1"),
        ({"y": np.arange(9) % 2}, "inconsistent numbers of samples"),
    ],
)
def test_wrong_arguments_of_recall_are_named(labelled, arguments, message):
    with pytest.raises(ValueError, match=message):
        recall(labelled[0], **{"search": "exact", "n_neighbors": 3} | arguments)


@needs_faiss
@pytest.mark.long
def test_recall_where_nuisance_with_heavy_tails_decides_which_rows_are_near():
    """Lists hold rows of one kind there, and the nearest rows are in many lists."""
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=30_000)
    X = np.hstack(
        [y[:, None] + rng.normal(size=(30_000, 10)), 3 * rng.laplace(size=(30_000, 30))]
    ).astype(np.float32)
    assert recall(X, "approximate", 10, y, relation="other") >= 0.95
    assert recall(X, ApproximateSearch(n_probes=64), 10, y, relation="other") < 0.9


@needs_faiss
@pytest.mark.long
@pytest.mark.skipif(
    "NEARKIN_DATA" not in os.environ, reason="NEARKIN_DATA names no folder with mnist.npz"
)
def test_recall_on_mnist():
    path = Path(os.environ["NEARKIN_DATA"]) / "mnist.npz"
    if not path.exists():
        pytest.skip("NEARKIN_DATA has no mnist.npz")
    with np.load(path) as data:
        X, y = data["X"][:20_000].astype(np.float32), data["y"][:20_000]
    for relation in ("same", "other"):
        assert recall(X, "approximate", 10, y, relation=relation) >= 0.95
