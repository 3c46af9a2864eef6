"""What `nearkin compare --save` keeps: the winner, ready for rows that nobody labelled."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import csr_array, issparse, vstack
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import StandardScaler

from .. import __version__
from .._blocks import row_blocks
from ..estimators import DNE, LDE, LFDA, LMNN, LPP, MFA, NCA, NMMP, RCA, TDL, DiscriminativeProjections
from ..evaluation import CLASSIFICATION, RAW, TASKS, Comparison, Task
from ..neighbors import searcher
from ..plotting import feature_stretch
from .columns import Progress, ignore
from .encoder import ColumnEncoder
from .table import Table

FORMAT = 3
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
    NCA: ("n_features_in_", "components_"),
    LMNN: ("n_features_in_", "components_"),
    RCA: ("n_features_in_", "components_", "eigenvalues_"),
    LPP: ("n_features_in_", "components_", "eigenvalues_"),
    LFDA: ("n_features_in_", "components_", "eigenvalues_"),
    LDE: ("n_features_in_", "components_", "eigenvalues_"),
    MFA: ("n_features_in_", "components_", "eigenvalues_"),
    DiscriminativeProjections: ("n_features_in_", "components_", "eigenvalues_"),
    DNE: ("n_features_in_", "components_", "eigenvalues_"),
    NMMP: ("n_features_in_", "components_", "eigenvalues_"),
    TDL: ("n_features_in_", "eigenvalues_", "_rule", "_graph"),
}


@dataclass(frozen=True, eq=False)
class Model:
    """Encoder, scaler, map and vote, fitted on a whole table; its state is arrays, numbers and strings.

    Attributes
    ----------
    format : int
        Version of this list of attributes.
    task : str
        "classification" or "regression".
    method : str
        Name of the winner.
    encoder : ColumnEncoder
        Columns of a table to features.
    steps : list of fitted transformers
        Scaler and map, as far as there are any.
    coordinates : ndarray of shape (n, m), or dict of the parts of a sparse matrix
        The rows that vote: every row with a label, scaled and mapped.
    rows : ndarray of shape (n,)
        Their numbers in the table, ascending.
    n_rows : int
        Rows of the table, those without a label included.
    codes : ndarray of shape (n,)
        Positions of their labels, or numbers, in `classes`.
    classes : ndarray of shape (c,)
        Labels, sorted; of a regression the different numbers, sorted, in float64.
    n_neighbors : int
        k of the vote, at most `MAX_NEIGHBORS`.
    target, table : str
        Name of the column of the labels or numbers, and of the table; cut after `MAX_NAME` characters.
    held_out : dict
        The figures of the comparison: mean and standard deviation of the score of the winner, the mean of the raw
        features, the number of folds, and Holm's p-value (absent when the raw features won). The scores are named
        "accuracy" and "raw_accuracy", or "r2" and "raw_r2".
    versions : dict
        Of nearkin and scikit-learn.
    """

    format: int
    task: str
    method: str
    encoder: ColumnEncoder
    steps: list[Any]
    coordinates: Any
    rows: np.ndarray
    n_rows: int
    codes: np.ndarray
    classes: np.ndarray
    n_neighbors: int
    target: str
    table: str
    held_out: dict[str, float]
    versions: dict[str, str]

    @property
    def asked(self) -> Task:
        """Return what the neighbours are asked for."""
        return TASKS[self.task]

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
    def is_linear(self) -> bool:
        """Tell whether the map, if any, is linear: one that follows a graph stretches no feature alike everywhere."""
        return not isinstance(self.map, TDL)

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
            X = _ready(step).transform(X)
        return X

    def voters(self) -> Any:
        """Return the coordinates of the rows that vote, an array or a csr_array."""
        return restored(self.coordinates)


@dataclass(frozen=True)
class Prediction:
    """Labels or numbers with their explanation: the nearest rows that were learned from.

    Attributes
    ----------
    answer : dict of str to ndarray of shape (n,)
        Of a classification "label" and "probability", its share of the k votes (of equally many votes the first label
        in sorted order wins); of a regression "value", the mean of the k numbers.
    nearest : ndarray of shape (n, k)
        Numbers of the nearest rows of the table that was learned from (the first is 0), nearest first.
    distance : ndarray of shape (n, k)
        Distances to them, in the learned space.
    """

    answer: dict[str, np.ndarray]
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


def predict(model: Model, X: Any, progress: Progress = ignore, search: str = "exact") -> Prediction:
    """Return answers and nearest training rows of encoded rows; each is compared with every row that votes.

    An approximate `search` compares it with a part of them; its lists of all that vote are made first.
    """
    voters = model.voters()
    index = searcher(search, voters.shape[0]).index(voters, model.n_neighbors)
    votes = model.asked is CLASSIFICATION
    n_rows = X.shape[0]
    width = max(model.n_neighbors + votes * len(model.classes), VOTES_PER_BLOCK // ROWS_PER_BLOCK)
    answers, nearest, distance = [], [], []
    for block in row_blocks(n_rows, width, VOTES_PER_BLOCK):
        far, near = index(model.transform(X[block]), model.n_neighbors)
        answers.append(_majority(model, near) if votes else _mean(model, near))
        nearest.append(model.rows[near])
        distance.append(far)
        progress(block.stop, n_rows)
    answer = {name: np.concatenate([part[name] for part in answers]) for name in answers[0]}
    return Prediction(answer, np.concatenate(nearest), np.concatenate(distance))


def _majority(model: Model, nearest: np.ndarray) -> dict[str, np.ndarray]:
    votes = np.apply_along_axis(np.bincount, 1, model.codes[nearest], minlength=len(model.classes))
    return {"label": model.classes[votes.argmax(axis=1)], "probability": votes.max(axis=1) / model.n_neighbors}


def _mean(model: Model, nearest: np.ndarray) -> dict[str, np.ndarray]:
    return {"value": model.classes[model.codes[nearest]].mean(axis=1)}


def learned_model(comparison: Comparison, table: Table) -> Model:
    """Return the winner of a comparison on the table, which it was refitted on, as a model."""
    assert comparison.winner is not None
    best, raw, score = comparison.best, comparison[RAW], comparison.task.score_name
    rows = table.labelled
    classes, codes = np.unique(table.labels, return_inverse=True)
    unlearned = Model(
        format=FORMAT,
        task=comparison.task.name,
        method=best.name,
        encoder=table.encoder,
        steps=[bare(step) for _, step in comparison.winner.steps[:-1]],
        coordinates=np.empty((0, 0)),
        rows=rows,
        n_rows=table.X.shape[0],
        codes=codes.astype(np.int32),
        classes=classes,
        n_neighbors=comparison.n_neighbors,
        target=short_name(table.target),
        table=short_name(table.name),
        held_out={
            score: float(best.score.mean()),
            "std": float(best.score.std(ddof=1)),
            f"raw_{score}": float(raw.score.mean()),
            "folds": len(comparison.folds),
        }
        | ({} if best is raw else {"p_value": float(best.p_value)}),
        versions={"nearkin": __version__, "scikit-learn": sklearn.__version__},
    )
    X = table.X if len(rows) == len(table.y) else table.X[rows]
    return replace(unlearned, coordinates=_stored(embed(unlearned, X)))


def bare(step: Any) -> Any:
    """Return a fitted step without what new rows do not need: random generators and callbacks cannot be kept safely."""
    bare = type(step)(**step.get_params(deep=False))
    vars(bare).update({name: getattr(step, name) for name in KEPT[type(step)]})
    return _with_rows(bare, _stored)


def _ready(step: Any) -> Any:
    """Return a kept step as it maps rows."""
    return _with_rows(step, restored)


def _with_rows(step: Any, change: Callable[[Any], Any]) -> Any:
    """Return a step that holds the rows of a graph with these changed, else the step itself."""
    if not isinstance(step, TDL) or step._graph is None:
        return step
    changed = copy(step)
    changed._graph = replace(step._graph, rows=change(step._graph.rows))
    return changed


def short_name(text: str) -> str:
    """Return a name that can be written and drawn: names of files may hold bytes that are no text."""
    return text.encode(errors="replace").decode()[:MAX_NAME]


def _stored(rows: Any) -> Any:
    if not issparse(rows):
        return rows
    return {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape)}


def restored(rows: Any) -> Any:
    """Return kept rows as an array, or a csr_array."""
    if not isinstance(rows, dict):
        return rows
    matrix = csr_array((rows["data"], rows["indices"], rows["indptr"]), shape=tuple(rows["shape"].tolist()))
    matrix.check_format(full_check=True)
    return matrix
