import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from nearkin import NMMP
from nearkin.datasets import BUNDLED, load, make_concentric_classes

SHAPES = {"iris": (150, 4, 3), "wine": (178, 13, 3), "breast_cancer": (569, 30, 2), "digits": (1797, 64, 10),
          "balance_scale": (625, 4, 3)}  # fmt: skip


@pytest.mark.parametrize("name", BUNDLED)
def test_every_set_has_numbers_and_names(name):
    dataset = load(name)
    n, p, n_classes = SHAPES[name]
    assert dataset.name == name
    assert dataset.X.shape == (n, p)
    assert dataset.X.dtype == np.float64
    assert dataset.y.shape == (n,)
    assert dataset.y.dtype.kind == "U"
    assert len(set(dataset.y)) == n_classes
    assert len(dataset.feature_names) == p
    assert {type(feature) for feature in dataset.feature_names} == {str}


def test_class_names_stand_at_their_rows():
    iris = load_iris()
    np.testing.assert_array_equal(load("iris").y, [iris.target_names[c] for c in iris.target])
    assert sorted(set(load("digits").y)) == list("0123456789")


def test_unknown_set():
    with pytest.raises(
        ValueError, match="one of iris, wine, breast_cancer, digits, balance_scale, got 'irsi'"
    ):
        load("irsi")


def test_balance_scale_follows_its_rule():
    dataset = load("balance_scale")
    assert Counter(dataset.y.tolist()) == {"B": 49, "L": 288, "R": 288}
    assert len(np.unique(dataset.X, axis=0)) == 625
    for (left, left_arm, right, right_arm), side in zip(dataset.X, dataset.y, strict=True):
        assert side == (
            "L"
            if left * left_arm > right * right_arm
            else "R"
            if left * left_arm < right * right_arm
            else "B"
        )


def test_balance_scale_is_the_published_file():
    folder = os.environ.get("NEARKIN_DATA")
    if not folder:
        pytest.skip("NEARKIN_DATA does not name a folder with balance_scale.npz")
    ours = load("balance_scale")
    with np.load(Path(folder) / "balance_scale.npz", allow_pickle=False) as theirs:
        rows = sorted(zip(theirs["X"].tolist(), theirs["y"].tolist(), strict=True))
    assert rows == sorted(zip(ours.X.tolist(), ours.y.tolist(), strict=True))


def energy_in_the_circles(components):
    """Return the share of a plane that lies in the first two features: 1 if it is theirs."""
    basis, _ = np.linalg.qr(components.T)
    return np.sum(basis[:2] ** 2) / 2


@pytest.mark.parametrize("seed", range(5))
def test_only_the_neighbourhoods_show_the_circles(seed):
    X, y = make_concentric_classes(random_state=seed)
    assert (
        energy_in_the_circles(NMMP(2, n_neighbors_within=10, shrinkage=None).fit(X, y).components_)
        > 0.9
    )
    assert (
        energy_in_the_circles(LinearDiscriminantAnalysis(n_components=2).fit(X, y).scalings_.T)
        < 0.6
    )
    assert energy_in_the_circles(PCA(2).fit(X).components_) < 0.2


def test_concentric_classes_have_the_shape_asked_for():
    X, y = make_concentric_classes(31, n_noise=3, noise_scale=0.5, random_state=0)
    assert X.shape == (31, 5)
    assert np.bincount(y).tolist() == [11, 10, 10]
    np.testing.assert_allclose(np.hypot(X[:, 0], X[:, 1]), 1 + 2 * y, atol=1)
    assert X[:, 2:].std() == pytest.approx(0.5, rel=0.2)
    np.testing.assert_array_equal(
        X, make_concentric_classes(31, n_noise=3, noise_scale=0.5, random_state=0)[0]
    )
