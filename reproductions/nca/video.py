"""Neighbourhood Components Analysis (Goldberger, Roweis, Hinton and Salakhutdinov, NIPS 2004):
section 5, pairs from the frames of a video, of which the paper has no experiment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import FunctionTransformer

from nearkin.estimators import NCA, PairNCA

from ..data import MissingDataError
from ..experiment import Experiment, Run, mean_std, paired, table
from ..splits import Split, codes_of, of_each_class

M = 19  # dimensions, one fewer than there are people
PAIRS = "PairNCA, next frames"
METHODS = ("pixels", "PCA", PAIRS, "NCA, labels")
QUESTIONS = (
    "same people, 2 frames labelled",
    "same people, 4 frames labelled",
    "other people, 4 frames labelled",
    "other people, error of the place",
)


@dataclass(frozen=True)
class Frames:
    """Faces in sequence: rows, the person of each, and its place among theirs, from 0 to 100."""

    X: np.ndarray
    person: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, person: np.ndarray) -> Frames:
        """Place the frames of every person, who come one after another in the order of `person`."""
        lengths = np.bincount(person)
        return cls(X, person, np.concatenate([np.linspace(0, 100, n) for n in lengths]))

    def some(self, rows: np.ndarray) -> Frames:
        """Return some frames, in their order."""
        return Frames(self.X[rows], self.person[rows], self.place[rows])

    def pairs(self) -> np.ndarray:
        """Return the numbers of every frame and the next one of the same person."""
        first = np.flatnonzero(self.person[:-1] == self.person[1:])
        return np.column_stack([first, first + 1])


def unsupervised(frames: Frames) -> dict[str, Any]:
    """Return the maps that take no labels."""
    return {
        "pixels": FunctionTransformer(),
        "PCA": PCA(M, svd_solver="full").fit(frames.X),
        PAIRS: PairNCA(M).fit(frames.X, pairs=frames.pairs()),
    }


def same_people(frames: Frames, maps: dict[str, Any], n: int, rng: Any) -> dict[str, float]:
    """Return 1-NN by n labelled frames of every person on all others; NCA has only these."""
    split = Split.of(frames.X, frames.person, of_each_class(frames.person, n, rng))
    maps = {**maps, "NCA, labels": NCA(M).fit(split.train, split.y_train)}
    return {name: split.score(fitted.transform, 1) for name, fitted in maps.items()}


def other_people(
    frames: Frames, rng: np.random.Generator
) -> tuple[dict[str, float], dict[str, float]]:
    """Learn from half of the people; return 1-NN of the others, by four labelled frames of each,
    and the error of the place that ten frames of the former vote them.
    """
    unseen = np.isin(frames.person, rng.permutation(frames.person.max() + 1)[::2])
    train, test = frames.some(~unseen), frames.some(unseen)
    maps = {**unsupervised(train), "NCA, labels": NCA(M).fit(train.X, train.person)}
    split = Split.of(test.X, test.person, of_each_class(test.person, 4, rng))
    votes, errors = {}, {}
    for name, fitted in maps.items():
        votes[name] = split.score(fitted.transform, 1)
        knn = KNeighborsRegressor(10, algorithm="brute").fit(fitted.transform(train.X), train.place)
        errors[name] = float(np.abs(knn.predict(fitted.transform(test.X)) - test.place).mean())
    return votes, errors


def video(run: Run) -> Iterator[str]:
    """Pairs of next frames beside labels, and beside nothing."""
    try:
        X, name = run.data.rows("umist_28x23")
    except MissingDataError as missing:
        yield f"Skipped: {missing}."
        return
    n_splits = run.splits(20)
    frames = Frames.of(X / 255, codes_of(name))
    of_all = unsupervised(frames)
    found: dict[str, list[dict[str, float]]] = {question: [] for question in QUESTIONS}
    for _, rng in run.repeat("frames", n_splits):
        results = [same_people(frames, of_all, n, rng) for n in (2, 4)]
        for question, result in zip(QUESTIONS, (*results, *other_people(frames, rng)), strict=True):
            found[question].append(result)
    yield f"1-NN, %, and the mean error of the place in a sequence of 100 frames, {n_splits} draws:"
    scores = {
        method: [[result[method] for result in found[one]] for one in QUESTIONS]
        for method in METHODS
    }
    rows = [[method, *map(mean_std, scores[method])] for method in METHODS]
    gains = map(paired, scores[PAIRS], scores["PCA"])
    yield table(["", *QUESTIONS], [*rows, [f"{PAIRS} - PCA, paired", *gains]])


EXPERIMENTS = (
    Experiment(
        "nca-video",
        "NCA, section 5: pairs of frames of a video (no experiment in the paper)",
        (
            "UMIST's 20 faces turn from profile to the front. Pairs are each frame and the next of "
            f"the same person; {M} dimensions. Other people: ten are learned from, ten voted on.",
            "The pose is the place in the sequence, voted by the ten nearest frames of the people "
            "who were learned from.",
        ),
        video,
    ),
)
