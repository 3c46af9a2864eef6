"""The file of `nearkin compare --save`: the automatic choice.

The map and the voting rows are arrays; metadata is a header. The last part of this module reads and
writes the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse, vstack
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from .. import __version__
from .._blocks import row_blocks
from .._messages import counted
from ..comparison import Comparison, Doubt, MethodResult, OwnVote, Vote
from ..estimators import TDL
from ..linalg import svd
from ..neighbors import searcher
from ..plotting import feature_stretch
from ..tables import (
    Encodings,
    HeldOutRows,
    NCAClassifier,
    NCARegressor,
    TableEncoder,
    features_of,
    indicator_names,
)
from .readers import Progress, TableError, ignore
from .saved_fields import Sizes, model_fields, require_size
from .saved_file import FORMATS, saved_parts, write_parts
from .tables import Table

# columns for the nearest rows in a table; an NPZ file has all of them for a vote of k rows
NAMED_VOTERS = 5
NO_PROBABILITY = 1e-9  # written as 0: no table has enough rows to know
MOST_SHOWN = 10  # classes whose probabilities are all written
FAR = 30  # standard deviations
ROWS_PER_BLOCK = 4096
VOTES_PER_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Model:
    """Encoder, scaler, map and voters, fitted on a whole table.

    A linear map is `Z = ((X - mean) / scale) components' - offset`; for the raw features, it only
    scales. Missing numbers are filled after scaling, and indicated by additional features. With a
    `graph`, rows are placed by the rule of TDL.

    A model with a `soft_vote` predicts like `NCAClassifier` and `NCARegressor`, with a vote of all
    voters. With `bins`, missing numbers are kept, columns are binned and standardized, and `Z = X
    components'`.

    Attributes
    ----------
    task, score : str
        "classification" or "regression"; the name of the score by which it was chosen, one of
        `SCORES`.
    method, prefix : str
        Name of the chosen method; the prefix of the names of its coordinates, "" for the raw
        features.
    columns : dict
        State of the `TableEncoder`.
    classes : list
        Sorted labels: strings, integers or booleans; empty for a regression.
    n_neighbors, soft : int, bool
        k of the vote, and whether near rows have larger weights, see `Vote`; with a `soft_vote` the
        number of rows that are listed.
    n_rows : int
        Number of rows of the table, including unlabelled ones.
    target, table : str
        Names of the target and of the table.
    held_out : dict
        Results of the comparison: "score", the mean held-out score of the choice; "raw", that of
        the raw features; "folds", their number; and, if known, "low" and "high", the 95 % interval
        of the difference "score" - "raw", and its corrected "p_value".
    version : str
        Of nearkin.
    arrays : dict of str to ndarray or csr_array
        Those of the map. "fill" (p,), the values for missing numbers, and "indicated", the features
        that have an indicator of missing values. For the v voters: "voters" (v, m), their
        coordinates; "rows" (v,), their row numbers in the file, including empty rows; "answers"
        (v,), their class codes or numbers. "spectrum". With a `soft_vote`: "effects" (c,), how far
        each column moves the rows, as a root mean square; "class_weights" (n_classes,), factors for
        labelling a row, if classes were weighted; and "held_out_...", the state of `HeldOutRows`.
        "groups" are hashes of the group names, ascending. The voters
        of raw features, and the rows of a graph, may be a csr_array.
    graph : dict
        Numbers of `GraphExtension` and its `HeatGraph`; empty for a linear map.
    bins, soft_vote : dict
        States of `Encodings`, empty for sparse rows, and of a mixture of votes of all rows; both
        are empty for a vote of k rows.
    group : str
        Name of the column of groups that held-out folds kept together, or "".
    doubts : list of str
        Reasons why predictions for new rows may be worse than "score" says, a sentence each.
    """

    task: str
    score: str
    method: str
    prefix: str
    columns: dict[str, Any]
    classes: list[Any]
    n_neighbors: int
    soft: bool
    n_rows: int
    target: str
    table: str
    held_out: dict[str, float]
    version: str
    arrays: dict[str, Any]
    graph: dict[str, Any] = field(default_factory=dict)
    bins: dict[str, Any] = field(default_factory=dict)
    soft_vote: dict[str, Any] = field(default_factory=dict)
    group: str = ""
    doubts: list[str] = field(default_factory=list)

    @property
    def vote(self) -> Vote:
        """Return the vote of the nearest voters; as text e.g. "soft 25-NN" or "all rows"."""
        return OwnVote(self.n_voters) if self.soft_vote else Vote(self.n_neighbors, self.soft)

    @property
    def n_voters(self) -> int:
        """Return the number of rows of the table that vote."""
        return len(self.arrays["rows"])

    @cached_property
    def encoder(self) -> TableEncoder:
        """Return the encoder of the columns of a table."""
        return TableEncoder.from_dict(self.columns)

    @cached_property
    def predictor(self) -> NCAClassifier | NCARegressor:
        """Return the predictor for tables of a `soft_vote`."""
        kind = NCAClassifier if self.classes else NCARegressor
        return kind.from_arrays(self.arrays, vars(self), features_of(self.encoder), self.classes)

    @property
    def takes_gaps(self) -> bool:
        """Return whether missing numbers of dense rows are filled or kept."""
        return "fill" in self.arrays or bool(self.bins)

    @property
    def of_gaps(self) -> str:
        """Return what is done with missing numbers."""
        return "kept as missing" if self.bins else "filled by the median"

    @property
    def held_out_rows(self) -> HeldOutRows | None:
        """Return the training rows with votes of maps that have not seen them, or None.

        They exist with a `soft_vote`.
        """
        return self.predictor.held_out if self.soft_vote else None

    @cached_property
    def _bins(self) -> Encodings:
        return Encodings.from_dict(self.bins, features_of(self.encoder))

    @cached_property
    def _tdl(self) -> TDL:
        return TDL.from_arrays(self.arrays, vars(self), len(self.feature_names))

    def transform(self, X: Any) -> Any:
        """Return the learned coordinates of encoded rows in float64."""
        X = self._bins.transform(X) if self.bins else self._scaled_and_filled(X)
        if self.graph:
            return self._tdl.transform(X)
        if self.is_raw:
            return X
        return X @ self.arrays["components"].T - self.arrays.get("offset", 0)

    def _scaled_and_filled(self, X: Any) -> Any:
        arrays = self.arrays
        X = X.astype(np.float64, copy=False)
        if issparse(X) and ("mean" in arrays or "indicated" in arrays):
            X = X.toarray()
        if "mean" in arrays:
            X = X - arrays["mean"]
        if "scale" in arrays:
            scale = arrays["scale"]
            X = csr_array(X.multiply(1 / scale)) if issparse(X) else X / scale
        if "fill" in arrays and not issparse(X):
            missing = np.isnan(X)
            X = np.where(missing, arrays["fill"], X)
            if "indicated" in arrays:
                X = np.hstack([X, missing[:, arrays["indicated"]]])
        return X

    def as_columns(self, Z: Any, suffix: str) -> dict[str, Any]:
        """Return coordinates as the columns of a file, or the arrays of an NPZ file."""
        if issparse(Z):
            if suffix != ".npz":
                raise TableError("sparse coordinates are not a table: write an .npz file with -o.")
            parts = {"data": Z.data, "indices": Z.indices, "indptr": Z.indptr}
            return parts | {"shape": np.array(Z.shape), "format": "csr"}
        if suffix == ".npz":
            return {"X": Z, "feature_names": np.array(self.names)}
        return dict(zip(self.names, Z.T, strict=True))

    @cached_property
    def feature_names(self) -> list[str]:
        """Return the names of the mapped features, such as "colour=red" or "age (missing)"."""
        indicated = self.arrays.get("indicated", np.empty(0, dtype=int)).tolist()
        names: list[str] = self.encoder.get_feature_names_out().tolist()
        return [*names, *indicator_names(self.encoder.columns_, indicated)]

    @property
    def is_raw(self) -> bool:
        """Return whether the model has no map: the features vote, possibly scaled."""
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
        """Return the names for `stretch`: features, or with a `soft_vote` columns."""
        if self.soft_vote:
            return [column.name for column in self.encoder.columns_]
        return self.feature_names

    @property
    def stretch(self) -> np.ndarray:
        """Return how far a unit step along each feature moves a row.

        It is relative to the root mean square over all features. With a `soft_vote`, it is the root
        mean square displacement of the rows by each column.
        """
        if self.soft_vote:
            return self.arrays["effects"]
        if self.is_raw:
            return np.ones(len(self.feature_names))
        return feature_stretch(self.arrays["components"])

    def knows_no_group(self, labels: Any) -> bool:
        """Return whether none of these groups was among those of the table."""
        return not np.isin(group_hashes(labels), self.arrays["groups"]).any()


def group_hashes(labels: Any) -> np.ndarray:
    """Return a hash of every group name, ascending: 3, 3.0 and "3 " are the same."""
    names = set[str]()
    for label in dict.fromkeys(np.asarray(labels).tolist()):
        name = str(label).strip()
        with suppress(ValueError):  # numbers are written as in Python
            name = f"{float(name):.17g}"
        names.add(name)
    hashes = [
        int.from_bytes(blake2b(name.encode(errors="replace"), digest_size=8).digest()) >> 1
        for name in names
    ]
    return np.unique(np.array(hashes, dtype=np.int64))


def far_features(model: Model, X: Any) -> list[str]:
    """Return the features of encoded rows that are far from the mean, perhaps in another unit."""
    if issparse(X) or not {"mean", "scale"} <= set(model.arrays):
        return []
    p = X.shape[1]
    far = np.abs(X - model.arrays["mean"][:p]) > FAR * model.arrays["scale"][:p]
    # a value of few rows is far from the mean, too
    far &= [column.ordered for column in model.encoder.columns_ for _ in column.names]
    names = model.encoder.get_feature_names_out()
    return [
        f"{names[at]} ({counted(int(far[:, at].sum()), 'row')})"
        for at in np.flatnonzero(far.any(axis=0))
    ]


def embed(model: Model, X: Any, progress: Progress = ignore) -> Any:
    """Return the coordinates of encoded rows, computed in blocks; O(n p m)."""
    n_rows = X.shape[0]
    blocks = []
    for block in row_blocks(n_rows, 1, ROWS_PER_BLOCK):
        blocks.append(model.transform(X[block]))
        progress(block.stop, n_rows)
    return vstack(blocks, format="csr") if issparse(blocks[0]) else np.concatenate(blocks)


def predict(
    model: Model,
    X: Any,
    progress: Progress = ignore,
    search: str = "exact",
    coverage: float | None = None,
) -> dict[str, np.ndarray]:
    """Return predictions and nearest voters of n encoded rows.

    An approximate `search` first builds its lists. A `coverage` requires a model with held-out
    rows.

    Returns
    -------
    dict of str to ndarray
        For a classification, "label" and its share of the votes. With a `soft_vote` of all rows,
        calibrated by held-out rows, the share is called "probability", and for up to `MOST_SHOWN`
        classes those of all follow as "probability of ...". With k rows it is called "vote", and
        ties go to the first label in sorted order. For a regression, "value", the weighted mean of
        the numbers. A hard vote gives each of the k rows the weight 1, a soft one
        `gaussian_weights`. "nearest", of shape (n, k), holds the row numbers of the nearest voters
        in their table (the first is 0), nearest first, and "distance" their distances in the
        learned space.

        With a coverage, "label_set", bool of shape (n, n_classes), or "low" and "high" follow: the
        sets of labels, or the intervals, that contain the true one for this share of the rows. For
        models with held-out rows, "familiarity" is next, see `nearkin.NCAClassifier.familiarity`.
    """
    return predicting(model, search, coverage)(X, progress)


def predicting(
    model: Model, search: str = "exact", coverage: float | None = None
) -> Callable[..., dict[str, np.ndarray]]:
    """Return `predict` as a function of rows and a progress; search lists are built only once."""
    index = searcher(search, model.n_voters).index(model.arrays["voters"], model.n_neighbors)
    classes, held_out = np.array(model.classes), model.held_out_rows

    def answers(X: Any) -> dict[str, np.ndarray]:
        Z = model.transform(X)
        far, near = index(Z, model.n_neighbors)
        if model.soft_vote:
            votes = model.predictor.vote(Z)
        else:
            votes = model.vote.predict(far, model.arrays["answers"][near], len(classes))
        further: dict[str, np.ndarray] = {}
        if coverage is not None:
            further = covered(model, Z, votes, coverage)
        if held_out is not None:
            further["familiarity"] = held_out.familiarity(X)
        if model.classes:
            label = (votes * model.arrays.get("class_weights", 1.0)).argmax(axis=1)
            share = votes[np.arange(len(votes)), label]
            answer = {"label": classes[label], "probability" if model.soft_vote else "vote": share}
            if model.soft_vote and len(classes) <= MOST_SHOWN:
                votes = np.where(votes < NO_PROBABILITY, 0.0, votes)
                answer |= {
                    f"probability of {name}": votes[:, place]
                    for place, name in enumerate(model.classes)
                }
        else:
            answer = {"value": votes}
        answer |= further
        return answer | {"nearest": model.arrays["rows"][near], "distance": far}

    def predicted(X: Any, progress: Progress = ignore) -> dict[str, np.ndarray]:
        n_rows = X.shape[0]
        width = max(model.n_neighbors + len(classes), VOTES_PER_BLOCK // ROWS_PER_BLOCK)
        found: list[dict[str, np.ndarray]] = []
        for block in row_blocks(n_rows, width, VOTES_PER_BLOCK):
            found.append(answers(X[block]))
            progress(block.stop, n_rows)
        return {name: np.concatenate([part[name] for part in found]) for name in found[0]}

    return predicted


def as_table(model: Model, found: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the result of `predict` as the columns of a table, with the nearest few voters."""
    columns: dict[str, Any] = {}
    for name, cells in found.items():
        if name in ("nearest", "distance"):
            for rank, column in enumerate(cells.T[:NAMED_VOTERS], 1):
                columns[f"{name}_{rank}"] = column
        elif name == "label_set":
            columns["labels"] = joined_labels(cells, model.classes)
        else:
            columns[name] = cells
    return columns


def covered(model: Model, Z: Any, votes: np.ndarray, coverage: float) -> dict[str, np.ndarray]:
    """Return the sets of labels of embedded rows with votes, or the intervals of their numbers."""
    held_out = model.held_out_rows
    assert held_out is not None
    if not model.classes:
        tail = (1 - coverage) / 2
        ends = model.predictor.quantiles(Z, np.array([tail, 1 - tail]))
        return dict(zip(("low", "high"), ends.T, strict=True))
    # if classes were weighted, so were the votes for the held-out rows
    votes = votes * model.arrays.get("class_weights", 1.0)
    votes /= votes.sum(axis=1, keepdims=True)
    return {"label_set": held_out.label_sets(votes, coverage, by_class=False, allow_empty=False)}


def joined_labels(label_sets: np.ndarray, classes: Sequence[Any]) -> np.ndarray:
    """Return sets of labels, bool of shape (n, n_classes), as texts such as "cat | dog"."""
    names = np.array([str(name) for name in classes], dtype=object)
    return np.array([" | ".join(names[labels]) for labels in label_sets], dtype=object)


# From the result of a comparison to the `Model` of `nearkin compare --save`.


def new_model(
    fitted: Sequence[Any],
    encoder: TableEncoder,
    result: MethodResult,
    raw: MethodResult,
    *,
    groups: Any = (),
    doubts: Sequence[Doubt] = (),
    **header: Any,
) -> Model:
    """Return a model with the map of fitted steps, without voters.

    Steps are a scaler, an imputer and a map, as far as they exist. `result` and `raw` are those of
    the choice and of the raw features; values that are not finite are omitted (there is no p-value
    if it is NaN). `header` has task, score, method, classes, n_neighbors, soft, n_rows, target,
    table and group, see `Model`.
    """
    arrays: dict[str, Any] = {}
    for step in fitted:
        if isinstance(step, StandardScaler):
            # NaN for a column without known values in the training rows; it is filled with 0, and
            # new rows are treated alike
            if step.with_mean:
                arrays["mean"] = np.nan_to_num(step.mean_)
            arrays["scale"] = np.nan_to_num(step.scale_, nan=np.finfo(np.float64).max)
        elif isinstance(step, SimpleImputer):
            arrays |= {"fill": step.statistics_, "indicated": step.indicator_.features_}
        elif isinstance(step, (TDL, NCAClassifier, NCARegressor)):
            of_step, states = step.to_arrays()
            arrays, header = arrays | of_step, header | states
        else:
            arrays |= linear_arrays(step)
    if header.get("group"):
        arrays["groups"] = group_hashes(groups)
    # a file name may contain invalid text
    header["table"] = header["table"].encode(errors="replace").decode()
    low, high = result.interval
    figures = {
        "score": result.score.mean(),
        "raw": raw.score.mean(),
        "low": low,
        "high": high,
        "folds": len(result.score),
        "p_value": result.p_value,
    }
    return Model(
        prefix=type(fitted[-1]).__name__.lower() if fitted else "",
        columns=encoder.to_dict(),
        held_out={name: float(figure) for name, figure in figures.items() if np.isfinite(figure)},
        doubts=[doubt.text for doubt in doubts],
        version=__version__,
        arrays=arrays,
        **header,
    )


def with_voters(model: Model, voters: Any, rows: np.ndarray, answers: np.ndarray) -> Model:
    """Return a model with these voters; workers that only map rows need none."""
    of_voters = {"voters": voters, "rows": rows, "answers": answers}
    return replace(model, arrays=model.arrays | of_voters)


def with_spectrum(model: Model, Z: np.ndarray) -> Model:
    """Return the model of a predictor for tables with the variances of its rows along the axes."""
    return replace(model, arrays=model.arrays | {"spectrum": Z.var(axis=0)})


def learned_model(comparison: Comparison, table: Table) -> Model:
    """Return the automatic choice of a comparison, refitted on the table, as a model."""
    assert comparison.winner is not None
    protocol, rows = comparison.protocol, comparison.winner_rows
    *fitted, last = [step for name, step in comparison.winner.steps if name != "encode"]
    all_vote = isinstance(last, (NCAClassifier, NCARegressor))
    model = new_model(
        [last] if all_vote else fitted,
        table.encoder,
        comparison.choice,
        comparison.raw,
        task=comparison.task.name,
        score=comparison.score.name,
        method=comparison.winner_method,
        classes=comparison.classes.tolist(),
        n_neighbors=min(NAMED_VOTERS, len(rows)) if all_vote else last.n_neighbors,
        soft=all_vote or last.weights != "uniform",
        n_rows=table.X.shape[0],
        target=table.target,
        table=table.name,
        group=table.group_name,
        groups=table.groups,
        doubts=comparison.doubts,
    )
    X = protocol.X if len(rows) == table.X.shape[0] else protocol.X[rows]
    if not all_vote and not issparse(X) and "fill" not in model.arrays:
        # medians for missing numbers of new rows, even if none were missing in training
        medians = np.array([np.median(column) for column in X.T])
        fill = (medians - model.arrays.get("mean", 0)) / model.arrays.get("scale", 1)
        model.arrays["fill"] = fill.astype(np.float64)
    Z = embed(model, X)
    if all_vote:
        columns = list(dict.fromkeys(feature.column for feature in features_of(table.encoder)))
        model.arrays["effects"] = model.arrays["effects"][columns]
        model = with_spectrum(model, Z)
        # rows keep their frequencies in the table, even if classes were weighted
        model.arrays["held_out_weights"] = np.ones(len(model.arrays["held_out_places"]))
    return with_voters(model, Z, table.in_file(rows), protocol.y[rows])


def linear_arrays(fitted: Any) -> dict[str, Any]:
    """Return a fitted linear map as arrays, and its spectrum for display."""
    if isinstance(fitted, LinearDiscriminantAnalysis):
        spectrum = fitted.explained_variance_ratio_
        components = fitted.scalings_[:, : len(spectrum)].T
    else:  # NCA and LMNN only have eigenvalues of the metric
        components = fitted.components_
        values = getattr(fitted, "eigenvalues_", svd(components, full_matrices=False)[1] ** 2)
        spectrum = getattr(fitted, "explained_variance_", values)
    offset = -fitted.transform(np.zeros((1, components.shape[1])))[0]
    return {"components": components, "offset": offset, "spectrum": spectrum}


# The file.


def save_model(model: Model, path: Path) -> None:
    """Write a model as a safetensors file."""
    header = {part.name: getattr(model, part.name) for part in fields(model)}
    arrays = header.pop("arrays")
    write_parts(path, {"format": FORMATS["compare"][-1]} | header, arrays)
    load_model(path)  # reading it back verifies the file


def load_model(path: str | Path) -> Model:
    """Return the model in a file.

    Raise a TableError that says what is wrong if the file holds none, is damaged, or was written by
    a newer nearkin.
    """
    with saved_parts(path, "compare") as (header, arrays):
        if "adapter" in header:
            raise TableError(
                f"{path} is an adapter of vectors, which does not predict: give it to `nearkin "
                "transform`."
            )
        sizes = Sizes()
        checked = model_fields(header, arrays)(header | {"arrays": arrays}, "", sizes)
        del checked["format"]
        model = Model(**checked)
        n_inputs = len(model._bins.groups_ if model.bins else model.feature_names)
        require_size("coordinates" if model.is_raw else "inputs", n_inputs, "columns", sizes)
        if model.bins:
            n_ranges = len({expert.axes for expert in model.predictor.vote_.experts})
            require_size(str(len(model._bins.encoders)), n_ranges, "soft_vote.experts", sizes)
        with np.errstate(all="ignore"):
            row: Any = np.zeros((1, sizes["features"]))
            predict(model, csr_array(row) if issparse(model.arrays["voters"]) else row)
        return model
