"""Neighbourhood Components Analysis (Goldberger, Roweis, Hinton and Salakhutdinov, NIPS 2004):
figure 3, a network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.ndimage import affine_transform
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsRegressor

from nearkin import NeuralNCA

from ..experiment import Experiment, Run, mean_std, table
from ..pictures import blank

SIDE, FACE = 35, (28, 23)  # pixels of an input, and of a face
ANGLES, HEIGHTS = (-45.0, 45.0), (25.0, 35.0)  # degrees, pixels
NOISE = np.array([1.22, 1.5])  # of the second face of a pair, degrees and pixels
PAIRS, TEST = 3000, 1000
TEST_PEOPLE = 12  # of 60


def people(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return faces of 28 x 23 pixels in an ellipse, their grey standardized, and whose they are."""
    small, name = run.data.rows("umist_28x23")
    large, other = run.data.rows("orl_112x92")
    X = np.vstack(
        [small, large.reshape(-1, 28, 4, 23, 4).mean(axis=(2, 4)).reshape(-1, 28 * 23)]
    ).reshape(-1, *FACE)
    down, across = np.ogrid[-1 : 1 : FACE[0] * 1j, -1 : 1 : FACE[1] * 1j]
    inside = down**2 + across**2 <= 1
    X -= X[:, inside].mean(axis=1)[:, None, None]
    X /= X[:, inside].std(axis=1)[:, None, None]
    who = [np.unique(name, return_inverse=True)[1], 1000 + np.unique(other, return_inverse=True)[1]]
    return X * inside, np.concatenate(who)


def posed(face: np.ndarray, angle: float, height: float) -> np.ndarray:
    """Return a face turned by an angle and scaled to a height, as a row of 35 x 35 pixels."""
    t, unit = np.deg2rad(angle), FACE[0] / height
    turn = unit * np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
    middle = (np.array(FACE) - 1) / 2 - turn @ np.full(2, (SIDE - 1) / 2)
    return affine_transform(face, turn, middle, (SIDE, SIDE), order=1).ravel()


@dataclass(frozen=True)
class Poses:
    """Faces in random poses (angle, height), number 2 i and 2 i + 1 a pair, and the weights of the
    pairs.
    """

    X: np.ndarray
    poses: np.ndarray
    weights: np.ndarray

    @classmethod
    def drawn(
        cls, faces: np.ndarray, who: np.ndarray, n_pairs: int, rng: np.random.Generator
    ) -> Poses:
        """Draw pairs of faces of two people in about the same pose, as the paper does."""
        first, second = (
            rng.integers(len(faces), size=n_pairs),
            rng.integers(len(faces), size=n_pairs),
        )
        while (same := who[first] == who[second]).any():
            second[same] = rng.integers(len(faces), size=same.sum())
        low, high = np.array([ANGLES, HEIGHTS]).T
        pose = rng.uniform(low, high, (n_pairs, 2))
        noise = NOISE * rng.standard_normal((n_pairs, 2))
        poses = np.stack([pose, pose + noise], axis=1).reshape(-1, 2)
        X = [
            posed(faces[i], *each)
            for i, each in zip(np.stack([first, second], axis=1).ravel(), poses, strict=True)
        ]
        return cls(
            np.array(X, np.float32), poses, np.exp(-0.5 * np.sum((noise / NOISE) ** 2, axis=1))
        )


def logistic(n_features: int) -> Any:
    """Return the paper's network: 100 logistic units, two outputs."""
    from torch import nn

    return nn.Sequential(nn.Linear(n_features, 100), nn.Sigmoid(), nn.Linear(100, 2))


def linear(n_features: int) -> Any:
    """Return a linear map to two dimensions."""
    from torch import nn

    return nn.Linear(n_features, 2, bias=False)


def maps(train: Poses) -> dict[str, Any]:
    """Return what maps faces to two dimensions, learned from the pairs or without them."""
    pairs = np.arange(len(train.X)).reshape(-1, 2)
    learned = {
        name: NeuralNCA(module=module, batch_size=512, random_state=0).fit(
            train.X, pairs=pairs, weights=train.weights
        )
        for name, module in (("network", logistic), ("linear map", linear))
    }
    return {**learned, "PCA": PCA(2, random_state=0).fit(train.X)}


def errors(Z_train: np.ndarray, Z_test: np.ndarray, train: Poses, test: Poses) -> np.ndarray:
    """Return the mean error of the angle and of the height that the 10 nearest training faces have."""
    knn = KNeighborsRegressor(10, algorithm="brute").fit(Z_train, train.poses)
    return np.abs(knn.predict(Z_test) - test.poses).mean(axis=0)


def figure_3(run: Run) -> Iterator[str]:
    """Let a network learn the pose of faces from pairs, and draw it."""
    if find_spec("torch") is None:
        yield 'Skipped: torch is not there: pip install "nearkin[deep]".'
        return
    faces, who = people(run)
    n_splits, n_pairs = run.splits(3, quick=2), PAIRS // 4 if run.quick else PAIRS
    found: dict[str, list[np.ndarray]] = {}
    for number, rng in run.repeat("pairs of faces", n_splits):
        unseen = np.isin(who, rng.permutation(np.unique(who))[:TEST_PEOPLE])
        train = Poses.drawn(faces[~unseen], who[~unseen], n_pairs, rng)
        test = Poses.drawn(faces[unseen], who[unseen], TEST // 2, rng)
        found.setdefault("pixels", []).append(errors(train.X, test.X, train, test))
        found.setdefault("mean pose", []).append(
            np.abs(test.poses - train.poses.mean(axis=0)).mean(axis=0)
        )
        for name, learned in maps(train).items():
            Z = learned.transform(test.X)
            found.setdefault(name, []).append(errors(learned.transform(train.X), Z, train, test))
            if number == 0 and name == "network":
                drawn = _drawn(Z, test.poses)
    yield (
        f"Mean error of the pose of unseen people, by the 10 nearest training faces, {n_splits} "
        "draws:"
    )
    order = ("network", "linear map", "PCA", "pixels", "mean pose")
    rows = [[name, *(mean_std(np.array(found[name])[:, j]) for j in (0, 1))] for name in order]
    yield table(["", "angle, degrees", "height, pixels"], rows)
    caption = (
        "Test faces in the two outputs of the network: segments have the angle, circles the size "
        "of the face"
    )
    yield run.picture("nca-figure3", drawn, caption)


def _drawn(Z: np.ndarray, poses: np.ndarray, n: int = 400) -> Any:
    figure = blank(10, 5)
    left, right = figure.subplots(1, 2)
    Z, (angle, height) = Z[:n], poses[:n].T
    t = np.deg2rad(angle)
    half = 0.02 * np.ptp(Z, axis=0).max() * np.stack([-np.sin(t), np.cos(t)], axis=1)
    left.plot(*np.stack([Z - half, Z + half]).transpose(2, 0, 1), color="black", lw=1)
    right.scatter(
        *Z.T, s=4 + 60 * ((height - 22) / 16) ** 2, facecolors="none", edgecolors="black", lw=0.7
    )
    for ax, title in ((left, "orientation of the face"), (right, "size of the face")):
        ax.set(xticks=[], yticks=[], title=title, aspect="equal")
    return figure


EXPERIMENTS = (
    Experiment(
        "nca-figure3",
        "NCA, figure 3: a network that learns the pose of faces from pairs",
        (
            "`NeuralNCA(module=...)` with the paper's network (100 logistic units, two outputs) "
            "and eq. 8; the linear map learns from the same pairs by the same cost and descent.",
            "The paper's faces are not public: 975 faces of 60 people of UMIST and ORL, turned by "
            "up to 45 degrees and scaled to 25 to 35 of 35 pixels; 12 people are for testing, the "
            "others for 3,000 pairs.",
        ),
        figure_3,
    ),
)
