"""What `nearkin compare --save` keeps: the winner, ready for rows that nobody labelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import csr_array, issparse, vstack
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from .. import __version__
from .._array import row_blocks
from ..estimators import DNE, LPP, NMMP, RCA
from ..evaluation import RAW, Comparison
from ..plotting import feature_stretch
from .columns import Progress, ignore
from .encoder import ColumnEncoder
from .table import Table

FORMAT = 1
MAX_NAME = 200
MAX_NEIGHBORS = 1000
ROWS_PER_BLOCK = 4096
VOTES_PER_BLOCK = 2**22
# What a step needs, fitted, to map new rows and to show its spectrum; beside its parameters nothing else is kept.
KEPT: dict[type, tuple[str, ...]] = {
    StandardScaler: ("n_features_in_", "mean_", "scale_"),
    PCA: ("n_features_in_", "mean_", "components_", "explained_variance_"),
    LinearDiscriminantAnalysis: (
        "n_features_in_",
        "xbar_",
        "scalings_",
        "_max_components",
        "explained_variance_ratio_",
    ),
    NeighborhoodComponentsAnalysis: ("n_features_in_", "components_"),
    LPP: ("n_features_in_", "components_", "eigenvalues_"),
    DNE: ("n_features_in_", "components_", "eigenvalues_"),
    NMMP: ("n_features_in_", "components_", "eigenvalues_"),
    RCA: ("n_features_in_", "components_", "eigenvalues_"),
}


@dataclass(frozen=True, eq=False)
class Model:
    """Encoder, scaler, map and vote, fitted on a whole table; its state is arrays, numbers and strings.

    Attributes
    ----------
    format : int
        Version of this list of attributes.
    method : str
        Name of the winner.
    encoder : ColumnEncoder
        Columns of a table to features.
    steps : list of fitted transformers
        Scaler and map, as far as there are any.
    coordinates : ndarray of shape (n, m), or dict of the parts of a sparse matrix
        The rows that vote: every row that was learned from, scaled and mapped.
    codes : ndarray of shape (n,)
        Positions of their labels in `classes`.
    classes : ndarray of shape (c,)
        Labels, sorted.
    n_neighbors : int
        k of the vote, at most `MAX_NEIGHBORS`.
    target, table : str
        Name of the column of the labels, and of the table; cut after `MAX_NAME` characters.
    held_out : dict
        The figures of the comparison: mean and standard deviation of the accuracy of the winner and of the raw
        features, the number of folds, and Holm's p-value (absent when the raw features won).
    versions : dict
        Of nearkin and scikit-learn.
    """

    format: int
    method: str
    encoder: ColumnEncoder
    steps: list[Any]
    coordinates: Any
    codes: np.ndarray
    classes: np.ndarray
    n_neighbors: int
    target: str
    table: str
    held_out: dict[str, float]
    versions: dict[str, str]

    @property
    def is_standardized(self) -> bool:
        """Tell whether the first step is a scaler."""
        return len(self.steps) > 0 and isinstance(self.steps[0], StandardScaler)

    @property
    def map(self) -> Any:
        """Return the learned map, or None where the raw features won."""
        return next(iter(self.steps[self.is_standardized :]), None)

    @property
    def names(self) -> list[str]:
        """Return the names of the coordinates."""
        if self.map is None:
            return self.encoder.feature_names
        return [f"{type(self.map).__name__.lower()}{number}" for number in range(self.n_components)]

    @property
    def n_components(self) -> int:
        """Return the number of coordinates."""
        is_sparse = isinstance(self.coordinates, dict)
        return int(self.coordinates["shape"][1] if is_sparse else self.coordinates.shape[1])

    @property
    def stretch(self) -> np.ndarray:
        """Return `plotting.feature_stretch` of the map: ones for the raw features."""
        return np.ones(len(self.encoder.feature_names)) if self.map is None else feature_stretch(self.map)

    @property
    def spectrum(self) -> np.ndarray:
        """Return the eigenvalues that the method chose its directions by; those of the metric where it has none."""
        for name in ("eigenvalues_", "explained_variance_", "explained_variance_ratio_"):
            if hasattr(self.map, name):
                return getattr(self.map, name)
        return np.array([]) if self.map is None else np.linalg.svd(self.map.components_, compute_uv=False) ** 2

    def transform(self, X: Any) -> Any:
        """Return the learned coordinates of encoded rows, in float64."""
        X = X.astype(np.float64, copy=False)
        for step in self.steps:
            X = step.transform(X)
        return X

    def voters(self) -> Any:
        """Return the coordinates of the rows that vote, an array or a csr_array."""
        rows = self.coordinates
        if isinstance(rows, dict):
            rows = csr_array((rows["data"], rows["indices"], rows["indptr"]), shape=tuple(rows["shape"].tolist()))
            rows.check_format(full_check=True)
        return rows


@dataclass(frozen=True)
class Prediction:
    """Labels with their explanation: the nearest rows that were learned from.

    Attributes
    ----------
    label : ndarray of shape (n,)
    probability : ndarray of shape (n,)
        Share of the k votes for the label; of equally many votes the first label in sorted order wins.
    nearest : ndarray of shape (n, k)
        Numbers of the nearest rows of the table that was learned from (the first is 0), nearest first.
    distance : ndarray of shape (n, k)
        Distances to them, in the learned space.
    """

    label: np.ndarray
    probability: np.ndarray
    nearest: np.ndarray
    distance: np.ndarray


def embed(model: Model, X: Any, progress: Progress = ignore) -> Any:
    """Return the learned coordinates of encoded rows, computed by blocks; O(n p m)."""
    n_rows = X.shape[0]
    blocks = []
    for block in row_blocks(n_rows, 1, ROWS_PER_BLOCK):
        blocks.append(model.transform(X[block]))
        progress(block.stop, n_rows)
    return vstack(blocks, format="csr") if issparse(blocks[0]) else np.concatenate(blocks)


def predict(model: Model, X: Any, progress: Progress = ignore) -> Prediction:
    """Return labels, votes and nearest training rows of encoded rows; n distances to every row that votes."""
    vote = KNeighborsClassifier(model.n_neighbors, algorithm="brute").fit(model.voters(), model.codes)
    n_rows = X.shape[0]
    width = max(model.n_neighbors + len(model.classes), VOTES_PER_BLOCK // ROWS_PER_BLOCK)
    parts = []
    for block in row_blocks(n_rows, width, VOTES_PER_BLOCK):
        distance, nearest = vote.kneighbors(model.transform(X[block]))
        votes = np.apply_along_axis(np.bincount, 1, model.codes[nearest], minlength=len(model.classes))
        parts.append((model.classes[votes.argmax(axis=1)], votes.max(axis=1) / model.n_neighbors, nearest, distance))
        progress(block.stop, n_rows)
    return Prediction(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def learned_model(comparison: Comparison, table: Table) -> Model:
    """Return the winner of a comparison on the table, which it was refitted on, as a model."""
    assert comparison.winner is not None
    best, raw = comparison.best, comparison[RAW]
    classes, codes = np.unique(table.y, return_inverse=True)
    unlearned = Model(
        format=FORMAT,
        method=best.name,
        encoder=table.encoder,
        steps=[_bare(step) for _, step in comparison.winner.steps[:-1]],
        coordinates=np.empty((0, 0)),
        codes=codes.astype(np.int32),
        classes=classes,
        n_neighbors=comparison.n_neighbors,
        target=_name(table.target),
        table=_name(table.name),
        held_out={
            "accuracy": float(best.accuracy.mean()),
            "std": float(best.accuracy.std(ddof=1)),
            "raw_accuracy": float(raw.accuracy.mean()),
            "folds": len(comparison.folds),
        }
        | ({} if best is raw else {"p_value": float(best.p_value)}),
        versions={"nearkin": __version__, "scikit-learn": sklearn.__version__},
    )
    return replace(unlearned, coordinates=_stored(embed(unlearned, table.X)))


def _bare(step: Any) -> Any:
    """Return a fitted step without what new rows do not need: random generators and callbacks cannot be kept safely."""
    bare = type(step)(**step.get_params(deep=False))
    vars(bare).update({name: getattr(step, name) for name in KEPT[type(step)]})
    return bare


def _name(text: str) -> str:
    """Return a name that can be written and drawn: names of files may hold bytes that are no text."""
    return text.encode(errors="replace").decode()[:MAX_NAME]


def _stored(rows: Any) -> Any:
    if not issparse(rows):
        return rows
    return {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape)}
