"""The file of `nearkin compare --save`: the automatic choice, as steps and rows that vote.

The last part of this module reads and writes the file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array, issparse, vstack
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from ... import __version__
from ..._blocks import row_blocks
from ..._messages import counted
from ...comparison import Comparison, OwnVote, Vote
from ...estimators import TDL
from ...linalg import svd
from ...neighbors import searcher
from ...plotting import ColumnsDisplay, FeatureDisplay, SpectrumDisplay, feature_stretch
from ...tables import (
    Encodings,
    HeldOutRows,
    Mixture,
    NCAClassifier,
    NCARegressor,
    TableEncoder,
    features_of,
    indicator_names,
)
from ..endings import TableError
from ..files.readers import Progress, ignore
from ..saved_fields import MAPS, STATES, Sizes, model_fields
from ..saved_file import FORMATS, saved_parts, write_parts
from .reading import Table

# The steps between an encoder and the voters, whose arrays the file holds.


@dataclass(frozen=True)
class Step:
    """A step whose fields are arrays; the file has them by the same names."""

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the arrays, and no state."""
        return {name: array for name, array in vars(self).items() if array is not None}, {}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any], states: Any = None) -> Self:
        """Return the step from the arrays of a model; other names are ignored."""
        return cls(**{part.name: arrays.get(part.name) for part in fields(cls)})


@dataclass(frozen=True)
class Scale(Step):
    """Centre and scale features; sparse rows are only scaled."""

    scale: np.ndarray
    mean: np.ndarray | None

    @classmethod
    def of(cls, scaler: StandardScaler) -> Self:
        """Return the step of a fitted scaler."""
        # NaN for a column without known values in the training rows; it is filled with 0, and new
        # rows are treated alike
        mean = np.nan_to_num(scaler.mean_) if scaler.with_mean else None
        return cls(np.nan_to_num(scaler.scale_, nan=np.finfo(np.float64).max), mean)

    def transform(self, X: Any) -> Any:
        """Return scaled rows."""
        if self.mean is not None:
            return ((X.toarray() if issparse(X) else X) - self.mean) / self.scale
        return csr_array(X.multiply(1 / self.scale)) if issparse(X) else X / self.scale


@dataclass(frozen=True)
class Fill(Step):
    """Fill missing numbers of dense rows; then come features that say where some were missing."""

    fill: np.ndarray
    indicated: np.ndarray | None

    def transform(self, X: Any) -> Any:
        """Return filled rows."""
        if self.indicated is not None and issparse(X):
            X = X.toarray()
        if issparse(X):
            return X
        missing = np.isnan(X)
        X = np.where(missing, self.fill, X)
        return X if self.indicated is None else np.hstack([X, missing[:, self.indicated]])


@dataclass(frozen=True)
class LinearMap(Step):
    """Z = X components' - offset; the spectrum is for display."""

    components: np.ndarray
    offset: np.ndarray | None
    spectrum: np.ndarray

    @classmethod
    def of(cls, fitted: Any) -> Self:
        """Return the step of a fitted linear map."""
        if isinstance(fitted, LinearDiscriminantAnalysis):
            spectrum = fitted.explained_variance_ratio_
            components = fitted.scalings_[:, : len(spectrum)].T
        else:  # NCA and LMNN only have eigenvalues of the metric
            components = fitted.components_
            values = getattr(fitted, "eigenvalues_", svd(components, full_matrices=False)[1] ** 2)
            spectrum = getattr(fitted, "explained_variance_", values)
        offset = -fitted.transform(np.zeros((1, components.shape[1])))[0]
        return cls(components, offset, spectrum)

    def transform(self, X: Any) -> Any:
        """Return mapped rows."""
        Z = X @ self.components.T
        return Z if self.offset is None else Z - self.offset


# by an array that each has, in their order
STEPS: dict[str, Any] = {
    "scale": Scale,
    "fill": Fill,
    "components": LinearMap,
    "rule.sources": TDL,
}


def saved_step(step: Any) -> Any:
    """Return a fitted step as one that has `to_arrays`."""
    if isinstance(step, SimpleImputer):
        return Fill(step.statistics_, step.indicator_.features_)
    if isinstance(step, StandardScaler):
        return Scale.of(step)
    return step if hasattr(step, "to_arrays") else LinearMap.of(step)


# The model.

# columns for the nearest rows in a table; an NPZ file has all of them for a vote of k rows
NAMED_VOTERS = 5
NO_PROBABILITY = 1e-9  # written as 0: no table has enough rows to know
MOST_SHOWN = 10  # classes whose probabilities are all written
FAR = 30  # standard deviations
ROWS_PER_BLOCK = 4096
VOTES_PER_BLOCK = 2**22

Answers = dict[str, np.ndarray]


class Effects(NamedTuple):
    """How far features or columns move a row, and in what unit."""

    names: list[str]
    lengths: np.ndarray
    unit: str


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What the file of a model holds: an encoder, steps after it, and rows that vote.

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
        Number of nearest voters that are listed. If these alone vote, it is k of the vote, and
        `soft` whether near rows have larger weights, see `Vote`.
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
        Those of the steps. For the v voters: "voters" (v, m), their coordinates, which may be
        sparse without a map; "rows" (v,), their row numbers in the file, including empty rows;
        "answers" (v,), their class codes or numbers. "spectrum". "groups" are hashes of the group
        names, ascending.
    states : dict of str to dict
        Numbers and texts of the steps, by all names in `STATES`, empty for others.
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
    states: dict[str, dict[str, Any]]
    group: str = ""
    doubts: list[str] = field(default_factory=list)

    @property
    def n_voters(self) -> int:
        """Return the number of rows of the table that vote."""
        return len(self.arrays["rows"])

    @cached_property
    def encoder(self) -> TableEncoder:
        """Return the encoder of the columns of a table."""
        return TableEncoder.from_dict(self.columns)

    @cached_property
    def feature_names(self) -> list[str]:
        """Return the names of the mapped features, such as "colour=red" or "age (missing)"."""
        indicated = self.arrays.get("indicated", np.empty(0, dtype=int)).tolist()
        names: list[str] = self.encoder.get_feature_names_out().tolist()
        return [*names, *indicator_names(self.encoder.columns_, indicated)]

    @cached_property
    def steps(self) -> list[Any]:
        """Return the steps, which encoded rows pass in this order."""
        kinds = [kind for name, kind in STEPS.items() if name in self.arrays]
        return [kind.from_arrays(self.arrays, self.states) for kind in kinds]

    def transform(self, X: Any) -> Any:
        """Return the coordinates of encoded rows in float64."""
        for step in self.steps:
            X = step.transform(X)
        return X

    @property
    def is_raw(self) -> bool:
        """Return whether the model has no map: the features vote, possibly scaled."""
        return not self.arrays.keys() & MAPS

    @property
    def n_components(self) -> int:
        """Return the number of coordinates."""
        return self.arrays["voters"].shape[1]

    @property
    def names(self) -> list[str]:
        """Return the names of the coordinates."""
        if self.is_raw:
            return self.feature_names
        return [f"{self.prefix}{number}" for number in range(self.n_components)]

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

    def with_voters(self, voters: Any, rows: np.ndarray, answers: np.ndarray) -> Self:
        """Return the model with these voters; workers that only map rows need none."""
        of_voters = {"voters": voters, "rows": rows, "answers": answers}
        return replace(self, arrays=self.arrays | of_voters)

    def knows_no_group(self, labels: Any) -> bool:
        """Return whether none of these groups was among those of the table."""
        return not np.isin(group_hashes(labels), self.arrays["groups"]).any()


class MapModel(ModelFile):
    """A scaler, an imputer and a map, as far as they exist, then a vote of the k nearest rows.

    The map is linear, or that of TDL.
    """

    voting, share = "{}", "vote"
    of_gaps = "filled by the median"
    spectrum_is = "Eigenvalues"
    held_out_rows = None
    encoding_shares: ClassVar[dict[str, float]] = {}

    @property
    def vote(self) -> Vote:
        """Return the vote; as text e.g. "soft 25-NN"."""
        return Vote(self.n_neighbors, self.soft)

    @property
    def takes_gaps(self) -> bool:
        """Return whether dense rows may have missing numbers."""
        return "fill" in self.arrays

    def transform(self, X: Any) -> Any:
        """Return the coordinates of encoded rows in float64."""
        return super().transform(X.astype(np.float64, copy=False))

    @property
    def effects(self) -> Effects | None:
        """Return how far a unit step along each feature moves a row, if equally far everywhere.

        It is relative to the root mean square over all features.
        """
        if "rule.sources" in self.arrays:
            return None
        components = self.arrays.get("components")
        names = self.feature_names
        lengths = np.ones(len(names)) if components is None else feature_stretch(components)
        step = "a standard deviation" if "scale" in self.arrays else "a unit"
        step += ", or a missing cell," * ("indicated" in self.arrays)
        unit = f"{step} of a feature moves a row, relative to the average (above 1: stretched; "
        return Effects(names, lengths, f"{unit}near 0: ignored)")

    def displays(self) -> list[Any]:
        """Return what can be drawn of the map."""
        displays, effects, spectrum = list[Any](), self.effects, self.arrays.get("spectrum", ())
        if effects:
            displays.append(FeatureDisplay(effects.lengths, effects.names, self.method))
        if len(spectrum):
            displays.append(SpectrumDisplay(spectrum, self.n_components, self.method))
        return displays

    def votes(self, Z: Any, far: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return the votes of the nearest rows for mapped rows, see `predict`."""
        return self.vote.predict(far, self.arrays["answers"][near], len(self.classes))

    def beside(self, X: Any, Z: Any, votes: np.ndarray, coverage: float | None) -> Answers:
        """Return nothing: these votes are not calibrated by held-out rows."""
        return {}


class PredictorModel(ModelFile):
    """`NCAClassifier` or `NCARegressor`: encodings and a map, then a vote of all rows.

    Held-out rows say how far its predictions can be trusted.
    """

    voting, share = "vote of {}", "probability"
    of_gaps = "kept as missing"
    spectrum_is = "Variances along the axes of each encoding"

    @cached_property
    def predictor(self) -> NCAClassifier | NCARegressor:
        """Return the predictor of encoded rows."""
        kind = NCAClassifier if self.classes else NCARegressor
        return kind.from_arrays(self.arrays, self.states, features_of(self.encoder), self.classes)

    @property
    def held_out_rows(self) -> HeldOutRows:
        """Return the training rows with votes of maps that have not seen them."""
        return self.predictor.held_out

    @property
    def encoding_shares(self) -> dict[str, float]:
        """Return the share of each encoding in a prediction."""
        return self.predictor.encoding_shares_

    @property
    def vote(self) -> Vote:
        """Return the vote; as text "all rows"."""
        return OwnVote(self.n_voters)

    @property
    def takes_gaps(self) -> bool:
        """Return whether rows may have missing numbers, as dense ones may."""
        return not self.steps[0].is_sparse

    @cached_property
    def steps(self) -> list[Any]:
        """Return the steps, which encoded rows pass in this order."""
        return [
            Encodings.from_dict(self.states[Encodings.saved_as], features_of(self.encoder)),
            *super().steps,
        ]

    @property
    def effects(self) -> Effects:
        """Return how far each column moves the rows, as a root mean square."""
        names = [column.name for column in self.encoder.columns_]
        unit = "each column moves the rows, as a root mean square (near 0: ignored)"
        return Effects(names, self.arrays["effects"], unit)

    def with_voters(self, voters: Any, rows: np.ndarray, answers: np.ndarray) -> Self:
        """Return the model with these voters, and their variances along the axes."""
        model = super().with_voters(voters, rows, answers)
        model.arrays["spectrum"] = voters.var(axis=0)
        return model

    def displays(self) -> list[Any]:
        """Return what can be drawn of the columns, including those that were left out."""
        names, (learned, lengths, _) = list(self.encoder.feature_names_in_), self.effects
        known = dict(zip(learned, lengths, strict=True))
        effects = np.array([known.get(name, 0.0) for name in names])
        return [ColumnsDisplay.of(effects, names, self.predictor.curves(), self.method)]

    def votes(self, Z: Any, far: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return the votes of all rows for mapped rows, see `predict`."""
        return self.predictor.vote(Z)

    def beside(self, X: Any, Z: Any, votes: np.ndarray, coverage: float | None) -> Answers:
        """Return what is said beside a label or number, see `predict`."""
        found, predictor = Answers(), self.predictor
        if isinstance(predictor, NCARegressor):
            if coverage is not None:
                tail = (1 - coverage) / 2
                ends = predictor.quantiles(Z, np.array([tail, 1 - tail]))
                found = dict(zip(("low", "high"), ends.T, strict=True))
        else:
            if len(self.classes) <= MOST_SHOWN:
                shown = np.where(votes < NO_PROBABILITY, 0.0, votes).T
                names = (f"probability of {name}" for name in self.classes)
                found = dict(zip(names, shown, strict=True))
            if coverage is not None:
                # if classes were weighted, so were the votes for the held-out rows
                weighted = votes * self.arrays.get("class_weights", 1.0)
                weighted /= weighted.sum(axis=1, keepdims=True)
                found["label_set"] = self.held_out_rows.label_sets(
                    weighted, coverage, by_class=False, allow_empty=False
                )
        return found | {"familiarity": self.held_out_rows.familiarity(X)}


Model = MapModel | PredictorModel


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


def in_blocks(compute: Callable[..., Any], X: Any, width: int, progress: Progress) -> list[Any]:
    """Return what is computed of blocks of rows, whose results have so many numbers a row."""
    found, width = list[Any](), max(width, VOTES_PER_BLOCK // ROWS_PER_BLOCK)
    for block in row_blocks(X.shape[0], width, VOTES_PER_BLOCK):
        found.append(compute(X[block]))
        progress(block.stop, X.shape[0])
    return found


def embed(model: Model, X: Any, progress: Progress = ignore) -> Any:
    """Return the coordinates of encoded rows, computed in blocks; O(n p m)."""
    blocks = in_blocks(model.transform, X, 0, progress)
    return vstack(blocks, format="csr") if issparse(blocks[0]) else np.concatenate(blocks)


def predict(
    model: Model,
    X: Any,
    progress: Progress = ignore,
    search: str = "exact",
    coverage: float | None = None,
) -> Answers:
    """Return predictions and nearest voters of n encoded rows.

    An approximate `search` first builds its lists. A `coverage` requires a model with held-out
    rows.

    Returns
    -------
    dict of str to ndarray
        For a classification, "label" and its share of the votes. With a vote of all rows,
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
) -> Callable[..., Answers]:
    """Return `predict` as a function of rows and a progress; search lists are built only once."""
    index = searcher(search, model.n_voters).index(model.arrays["voters"], model.n_neighbors)

    def answers(X: Any) -> Answers:
        Z = model.transform(X)
        far, near = index(Z, model.n_neighbors)
        votes = model.votes(Z, far, near)
        found = {"value": votes}
        if model.classes:
            label = (votes * model.arrays.get("class_weights", 1.0)).argmax(axis=1)
            share = votes[np.arange(len(votes)), label]
            found = {"label": np.array(model.classes)[label], model.share: share}
        found |= model.beside(X, Z, votes, coverage)
        return found | {"nearest": model.arrays["rows"][near], "distance": far}

    def predicted(X: Any, progress: Progress = ignore) -> Answers:
        found = in_blocks(answers, X, model.n_neighbors + len(model.classes), progress)
        return {name: np.concatenate([part[name] for part in found]) for name in found[0]}

    return predicted


def as_table(model: Model, found: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the result of `predict` as the columns of a table, with the nearest few voters.

    Sets of labels become texts such as "cat | dog".
    """
    columns, classes = dict[str, Any](), np.array(list(map(str, model.classes)), dtype=object)
    for name, cells in found.items():
        if name in ("nearest", "distance"):
            for rank, column in enumerate(cells.T[:NAMED_VOTERS], 1):
                columns[f"{name}_{rank}"] = column
        elif name == "label_set":
            joined = [" | ".join(classes[labels]) for labels in cells]
            columns["labels"] = np.array(joined, dtype=object)
        else:
            columns[name] = cells
    return columns


# From the result of a comparison to the `Model` of `nearkin compare --save`.


class Voters(NamedTuple):
    """Rows that vote: encoded rows, their codes or numbers, and their row numbers in the file.

    `classes` are the labels of the codes, and `n_rows` is the number of rows they stand for.
    """

    X: Any
    answers: np.ndarray
    rows: np.ndarray
    classes: np.ndarray
    n_rows: int


def learned_model(comparison: Comparison, table: Table, voters: Voters | None = None) -> Model:
    """Return the automatic choice of a comparison, fitted to all rows, as a model.

    Its steps are a scaler, an imputer and a map, as far as they exist, or a predictor for tables.
    Figures that are not finite are omitted: there is no p-value if it is NaN. The rows of the table
    vote, unless others are given.
    """
    assert comparison.winner is not None
    if voters is None:
        protocol, rows, n = comparison.protocol, comparison.winner_rows, table.X.shape[0]
        X = protocol.X if len(rows) == n else protocol.X[rows]
        in_file = table.in_file(rows)
        voters = Voters(X, protocol.y[rows], in_file, comparison.classes, n)
    X = voters.X
    *fitted, last = [step for name, step in comparison.winner.steps if name != "encode"]
    all_vote = isinstance(last, (NCAClassifier, NCARegressor))
    if all_vote:
        fitted = [last]
    arrays, states = dict[str, Any](), {name: dict[str, Any]() for name in STATES}
    for step in map(saved_step, fitted):
        of_step, state = step.to_arrays()
        arrays, states = arrays | of_step, states | state
    if table.group_name:
        arrays["groups"] = group_hashes(table.groups)
    choice = comparison.choice
    figures = {
        "score": choice.score.mean(),
        "raw": comparison.raw.score.mean(),
        "low": choice.interval[0],
        "high": choice.interval[1],
        "folds": len(choice.score),
        "p_value": choice.p_value,
    }
    model: Model = (PredictorModel if all_vote else MapModel)(
        task=comparison.task.name,
        score=comparison.score.name,
        method=comparison.winner_method,
        prefix=type(fitted[-1]).__name__.lower() if fitted else "",
        columns=table.encoder.to_dict(),
        classes=voters.classes.tolist(),
        n_neighbors=min(NAMED_VOTERS, len(voters.rows)) if all_vote else last.n_neighbors,
        soft=all_vote or last.weights != "uniform",
        n_rows=voters.n_rows,
        target=table.target,
        table=table.name.encode(errors="replace").decode(),  # a file name may be invalid text
        held_out={name: float(figure) for name, figure in figures.items() if np.isfinite(figure)},
        version=__version__,
        arrays=arrays,
        states=states,
        group=table.group_name,
        doubts=[doubt.text for doubt in comparison.doubts],
    )
    if not model.takes_gaps and not issparse(X):
        # medians for missing numbers of new rows, even if none were missing in training
        medians = np.array([np.median(column) for column in X.T])
        fill = (medians - model.arrays.get("mean", 0)) / model.arrays.get("scale", 1)
        model.arrays["fill"] = fill.astype(np.float64)
    return model.with_voters(embed(model, X), voters.rows, voters.answers)


# The file.


def save_model(model: Model, path: Path) -> None:
    """Write a model as a safetensors file."""
    header = {part.name: getattr(model, part.name) for part in fields(model)}
    arrays, states = header.pop("arrays"), header.pop("states")
    write_parts(path, {"format": FORMATS["compare"][-1]} | header | states, arrays)
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
        states = {name: checked.pop(name, {}) for name in STATES}
        kind = PredictorModel if states[Mixture.saved_as] else MapModel
        model = kind(states=states, **checked)
        with np.errstate(all="ignore"):
            row: Any = np.zeros((1, sizes["features"]))
            predict(model, csr_array(row) if issparse(model.arrays["voters"]) else row)
        return model
