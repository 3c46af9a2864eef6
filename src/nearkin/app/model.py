"""What `nearkin compare --save` keeps: its automatic choice as arrays and a header, ready for new rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from .._blocks import row_blocks
from ..estimators.soft_votes import vote_from
from ..estimators.transductive import GraphExtension, HeatGraph
from ..evaluation import CLASSIFICATION, TASKS, OwnVote, Task, Vote
from ..neighbors import searcher
from ..plotting import feature_stretch
from ..preprocessing import BinnedEncoder, TableEncoder, features_of, indicator_names
from .refusals import Progress, counted, ignore

MAX_NAME = 200
MAX_DOUBT = 1000
MAX_NEIGHBORS = 1000
NAMED_VOTERS = 5  # columns for the nearest in a table; where k rows vote, an NPZ file holds all of them
NO_PROBABILITY = 1e-9  # written as 0: no table has rows enough to know
MOST_SHOWN = 10  # classes whose probabilities are all written
FAR = 30  # standard deviations
ROWS_PER_BLOCK = 4096
VOTES_PER_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Model:
    """Encoder, scaler, map and voters, fitted on a whole table.

    A linear map is `Z = ((X - mean) / scale) components' - offset`; for the raw features, only as far as they are
    scaled. Missing numbers are filled after scaling, and then indicated by more features. A map of kind "graph" places
    these rows by the rule of TDL.

    A model with a `soft_vote` predicts as `NCAClassifier` and `NCARegressor` do: all voters vote. With `bins` missing
    numbers stay, the columns are binned and standardized, and `Z = X components'`.

    Attributes
    ----------
    task, score : str
        "classification" or "regression"; the name of the score by which it was chosen, one of `SCORES`.
    method, prefix : str
        Name of the chosen method; what the names of its coordinates begin with, "" for the raw features.
    columns : dict
        State of the `TableEncoder`.
    classes : list
        Labels, sorted: strings, integers or booleans; empty in a regression.
    graph : dict
        Numbers of `GraphExtension` and its `HeatGraph`; empty for an affine map.
    bins, soft_vote : dict
        States of a `BinnedEncoder`, empty for sparse rows, and of a vote of all rows; both are empty for a vote of k.
    n_neighbors, soft : int, bool
        k of the vote, at most `MAX_NEIGHBORS`, and whether near rows count more than far ones, see `Vote`; with a
        `soft_vote` the number of rows that are named.
    n_rows : int
        Rows of the table, those without a label included.
    target, table : str
        Names of the target and of the table; cut after `MAX_NAME` characters.
    held_out : dict
        Figures of the comparison: "score", the mean over the held-out folds of what a choice made like this one scores;
        "raw", that of the raw features; "folds", how many there were; and where they are known "low" and "high", the
        95 % interval of the difference "score" - "raw", and its corrected "p_value".
    group : str
        Name of the column of groups that held-out folds kept together; "" without any.
    doubts : list of str
        Why new rows may be predicted worse than "score" says, a sentence each.
    version : str
        Of nearkin.
    arrays : dict of str to ndarray
        Those of the map; "fill" (p,), what missing numbers become, and "indicated", the features that have a further
        one that says where they were missing; and of the v voters: "voters" (v, m), their coordinates; "rows" (v,),
        their row numbers in the file, where empty rows count; "answers" (v,), positions of their labels in `classes`,
        or their numbers; "spectrum"; and with a `soft_vote` "effects" (c,), how far each column moves the rows, as the
        root of the mean square, and "class_weights" (n_classes,), times which a class counts when a row is labelled,
        where classes were weighted. "groups" are hashes of the names of the groups, ascending. A sparse matrix is
        stored as "name.data", "name.indices" and "name.indptr".
    """

    task: str
    score: str
    method: str
    prefix: str
    columns: dict[str, Any]
    classes: list[Any]
    graph: dict[str, Any]
    bins: dict[str, Any]
    soft_vote: dict[str, Any]
    n_neighbors: int
    soft: bool
    n_rows: int
    target: str
    table: str
    held_out: dict[str, float]
    group: str
    doubts: list[str]
    version: str
    arrays: dict[str, np.ndarray]

    @property
    def question(self) -> Task:
        """Return the task as the evaluation knows it."""
        return TASKS[self.task]

    @property
    def vote(self) -> Vote:
        """Return how the nearest voters answer; as text e.g. "soft 25-NN" or "all rows"."""
        return OwnVote(self.n_voters) if self.soft_vote else Vote(self.n_neighbors, self.soft)

    @property
    def n_voters(self) -> int:
        """Return how many rows of the table vote."""
        return len(self.arrays["rows"])

    @cached_property
    def encoder(self) -> TableEncoder:
        """Return what makes features of the columns of a table."""
        return TableEncoder.from_dict(self.columns)

    @cached_property
    def binned(self) -> BinnedEncoder:
        """Return what bins the encoded columns."""
        return BinnedEncoder.from_dict(self.bins, features_of(self.encoder))

    @cached_property
    def targets(self) -> tuple[np.ndarray, float, float]:
        """Return what all rows vote about, (v, q): indicators of classes, or standardized numbers; mean and deviation.

        The latter are 0 and 1 for classes.
        """
        answers = self.arrays["answers"]
        if self.classes:
            return np.eye(len(self.classes))[answers], 0.0, 1.0
        centre, unit = answers.mean(), answers.std()
        return ((answers - centre) / unit)[:, None], centre, unit

    @cached_property
    def feature_names(self) -> list[str]:
        """Return the names of the features that are mapped, such as "width", "colour=red" and "age (missing)"."""
        names, indicated = self.encoder.get_feature_names_out().tolist(), self.arrays.get("indicated")
        more = [] if indicated is None else indicator_names(self.encoder.columns_, indicated.tolist())
        return [*names, *more]

    @property
    def is_raw(self) -> bool:
        """Return whether it has no map: the features vote as they are, or scaled."""
        return not self.graph and "components" not in self.arrays

    @property
    def n_components(self) -> int:
        """Return the number of coordinates."""
        if self.graph:
            return self.arrays["rule.sources"].shape[1]
        return len(self.feature_names if self.is_raw else self.arrays["components"])

    @property
    def names(self) -> list[str]:
        """Return the names of the coordinates."""
        if self.is_raw:
            return self.feature_names
        return [f"{self.prefix}{number}" for number in range(self.n_components)]

    @property
    def stretched(self) -> list[str]:
        """Return the names of what `stretch` is of: features, or with a `soft_vote` columns."""
        return [column.name for column in self.encoder.columns_] if self.soft_vote else self.feature_names

    @property
    def stretch(self) -> np.ndarray:
        """Return how far a unit step along each feature moves a row, relative to the root mean square of all.

        With a `soft_vote` how far each column does, in the root mean square of the rows.
        """
        if self.soft_vote:
            return self.arrays["effects"]
        if self.is_raw:
            return np.ones(len(self.feature_names))
        return feature_stretch(self.arrays["components"])

    def knows_no_group(self, labels: Any) -> bool:
        """Say whether none of these groups was among those of the table."""
        return not np.isin(group_hashes(labels), self.arrays["groups"]).any()

    @cached_property
    def voters(self) -> Any:
        """Return the coordinates of the rows that vote, an array or a csr_array."""
        return self._matrix("voters", (self.n_voters, self.n_components))

    @cached_property
    def extension(self) -> Any:  # GraphExtension
        """Return TDL's map of new rows."""
        a, g = self.arrays, self.graph
        rows = self._matrix("graph.rows", (len(a["rule.sources"]), len(self.feature_names)))
        graph = HeatGraph(rows, a.get("graph.origin"), g["n_neighbors"], g["bandwidth"])
        return GraphExtension(graph, a["rule.sources"], a["rule.values"], a["rule.constant"], g["normalized"])

    def _matrix(self, name: str, shape: tuple[int, int]) -> Any:
        if name in self.arrays:
            return self.arrays[name]
        matrix = csr_array(tuple(self.arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr")), shape=shape)
        matrix.check_format(full_check=True)
        return matrix

    def transform(self, X: Any) -> Any:
        """Return the learned coordinates of encoded rows, in float64."""
        a = self.arrays
        if self.bins:
            return self.binned.transform(X) @ a["components"].T
        X = X.astype(np.float64, copy=False)
        if "mean" in a:
            X = (X.toarray() if issparse(X) else X) - a["mean"]
        if "scale" in a:
            X = csr_array(X.multiply(1 / a["scale"])) if issparse(X) else X / a["scale"]
        if "indicated" in a and issparse(X):
            X = X.toarray()
        if "fill" in a and not issparse(X):
            missing = np.isnan(X)
            X = np.where(missing, a["fill"], X)
            X = np.hstack([X, missing[:, a["indicated"]]]) if "indicated" in a else X
        if self.graph:
            return self.extension(X)
        return X if self.is_raw else X @ a["components"].T - a["offset"]

    def answers(self, Z: Any, far: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return shares of the classes (n, n_classes), or numbers (n,), for rows with these nearest voters."""
        if not self.soft_vote:
            return self.vote.predict(far, self.arrays["answers"][near], len(self.classes))
        Y, centre, unit = self.targets
        votes = centre + unit * vote_from(self.soft_vote).predict(Z, self.voters, Y)
        return votes if self.classes else votes[:, 0]


def group_hashes(labels: Any) -> np.ndarray:
    """Return a number for the name of every group, ascending: 3, 3.0 and "3 " are one."""
    names = {_canonical(str(label).strip()) for label in dict.fromkeys(np.asarray(labels).tolist())}
    hashes = [int.from_bytes(blake2b(name.encode(errors="replace"), digest_size=8).digest()) >> 1 for name in names]
    return np.unique(np.array(hashes, dtype=np.int64))


def _canonical(name: str) -> str:
    """Return a number as Python writes it, other names as they are."""
    try:
        return f"{float(name):.17g}"
    except ValueError:
        return name


def far_features(model: Model, X: Any) -> list[str]:
    """Return the features of encoded rows that lie far from the mean, perhaps in another unit."""
    if issparse(X) or not {"mean", "scale"} <= set(model.arrays):
        return []
    p = X.shape[1]
    far = np.abs(X - model.arrays["mean"][:p]) > FAR * model.arrays["scale"][:p]
    names = model.encoder.get_feature_names_out()
    return [f"{names[at]} ({counted(int(far[:, at].sum()), 'row')})" for at in np.flatnonzero(far.any(axis=0))]


def embed(model: Model, X: Any, progress: Progress = ignore) -> Any:
    """Return the learned coordinates of encoded rows, computed by blocks; O(n p m)."""
    n_rows = X.shape[0]
    blocks = []
    for block in row_blocks(n_rows, 1, ROWS_PER_BLOCK):
        blocks.append(model.transform(X[block]))
        progress(block.stop, n_rows)
    return vstack(blocks, format="csr") if issparse(blocks[0]) else np.concatenate(blocks)


def predict(model: Model, X: Any, progress: Progress = ignore, search: str = "exact") -> dict[str, np.ndarray]:
    """Return answers and nearest voters of n encoded rows; an approximate `search` builds its lists first.

    Returns
    -------
    dict of str to ndarray
        Of a classification "label" and its share of the weights of the votes: with a `soft_vote` of all rows, which
        held-out rows have calibrated, it is called "probability", and for up to `MOST_SHOWN` classes those of all
        follow, as "probability of ..."; of k rows "vote" (of equal shares the first label in sorted order wins). Of a
        regression "value", the weighted mean of the numbers. A hard vote gives each of the k rows the weight 1, a soft
        one `gaussian_weights`.
        "nearest", of shape (n, k), are row numbers of the nearest voters in their table (the first is 0), nearest
        first, and "distance" is how far they are in the learned space.
    """
    index = searcher(search, model.n_voters).index(model.voters, model.n_neighbors)
    n_rows, classes = X.shape[0], np.array(model.classes)
    width = max(model.n_neighbors + len(classes), VOTES_PER_BLOCK // ROWS_PER_BLOCK)
    found: list[dict[str, np.ndarray]] = []
    for block in row_blocks(n_rows, width, VOTES_PER_BLOCK):
        Z = model.transform(X[block])
        far, near = index(Z, model.n_neighbors)
        votes = model.answers(Z, far, near)
        if model.question is CLASSIFICATION:
            label = (votes * model.arrays.get("class_weights", 1.0)).argmax(axis=1)
            share = votes[np.arange(len(votes)), label]
            answer = {"label": classes[label], "probability" if model.soft_vote else "vote": share}
            if model.soft_vote and len(classes) <= MOST_SHOWN:
                votes = np.where(votes < NO_PROBABILITY, 0.0, votes)
                answer |= {f"probability of {name}": votes[:, place] for place, name in enumerate(model.classes)}
        else:
            answer = {"value": votes}
        found.append(answer | {"nearest": model.arrays["rows"][near], "distance": far})
        progress(block.stop, n_rows)
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}
