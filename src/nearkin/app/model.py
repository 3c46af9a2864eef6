"""What `nearkin compare --save` keeps, its automatic choice: the steps that map new rows and the
voters as arrays, what is known of them as a header, and the file of both.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, get_origin, get_type_hints

import numpy as np
from scipy.sparse import csr_array, issparse, vstack
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from .. import __version__
from .._blocks import require_memory, row_blocks
from .._messages import counted
from ..estimators import TDL, GraphExtension, HeatGraph
from ..evaluation import (
    CLASSIFICATION,
    SCORES,
    TASKS,
    Comparison,
    Doubt,
    MethodResult,
    OwnVote,
    Vote,
)
from ..linalg import svd
from ..neighbors import searcher
from ..plotting import feature_stretch
from ..tables import (
    BinnedEncoder,
    NCAClassifier,
    NCARegressor,
    TableEncoder,
    features_of,
    indicator_names,
)
from .readers import MAX_TEXT, Progress, ignore
from .tables import Table

MAX_NAME = 200
MAX_DOUBT = 1000
MAX_NEIGHBORS = 1000
NAMED_VOTERS = (
    5  # columns for the nearest in a table; where k rows vote, an NPZ file holds all of them
)
NO_PROBABILITY = 1e-9  # written as 0: no table has rows enough to know
MOST_SHOWN = 10  # classes whose probabilities are all written
FAR = 30  # standard deviations
ROWS_PER_BLOCK = 4096
VOTES_PER_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Model:
    """Encoder, scaler, map and voters, fitted on a whole table.

    A linear map is `Z = ((X - mean) / scale) components' - offset`; for the raw features, only as
    far as they are scaled. Missing numbers are filled after scaling, and then indicated by more
    features. A map of kind "graph" places these rows by the rule of TDL.

    A model with a `soft_vote` predicts as `NCAClassifier` and `NCARegressor` do: all voters vote.
    With `bins` missing numbers stay, the columns are binned and standardized, and `Z = X
    components'`.

    Attributes
    ----------
    task, score : str
        "classification" or "regression"; the name of the score by which it was chosen, one of
        `SCORES`.
    method, prefix : str
        Name of the chosen method; what the names of its coordinates begin with, "" for the raw
        features.
    columns : dict
        State of the `TableEncoder`.
    classes : list
        Labels, sorted: strings, integers or booleans; empty in a regression.
    graph : dict
        Numbers of `GraphExtension` and its `HeatGraph`; empty for an affine map.
    bins, soft_vote : dict
        States of a `BinnedEncoder`, empty for sparse rows, and of a vote of all rows; both are
        empty for a vote of k.
    n_neighbors, soft : int, bool
        k of the vote, at most `MAX_NEIGHBORS`, and whether near rows count more than far ones, see
        `Vote`; with a `soft_vote` the number of rows that are named.
    n_rows : int
        Rows of the table, those without a label included.
    target, table : str
        Names of the target and of the table; cut after `MAX_NAME` characters.
    held_out : dict
        Figures of the comparison: "score", the mean over the held-out folds of what a choice made
        like this one scores; "raw", that of the raw features; "folds", how many there were; and
        where they are known "low" and "high", the 95 % interval of the difference "score" - "raw",
        and its corrected "p_value".
    group : str
        Name of the column of groups that held-out folds kept together; "" without any.
    doubts : list of str
        Why new rows may be predicted worse than "score" says, a sentence each.
    version : str
        Of nearkin.
    arrays : dict of str to ndarray
        Those of the map; "fill" (p,), what missing numbers become, and "indicated", the features
        that have a further one that says where they were missing; and of the v voters: "voters" (v,
        m), their coordinates; "rows" (v,), their row numbers in the file, where empty rows count;
        "answers" (v,), positions of their labels in `classes`, or their numbers; "spectrum"; and
        with a `soft_vote` "effects" (c,), how far each column moves the rows, as the root of the
        mean square, and "class_weights" (n_classes,), times which a class counts when a row is
        labelled, where classes were weighted. "groups" are hashes of the names of the groups,
        ascending. A sparse matrix is stored as "name.data", "name.indices" and "name.indptr".
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
    def steps(self) -> list[Any]:
        """Return what maps encoded rows into the learned space, one step after the other."""
        arrays = self.arrays
        if self.bins:
            binned = BinnedEncoder.from_dict(self.bins, features_of(self.encoder))
            return [binned, AffineMap.from_arrays(arrays)]
        steps = [Scaling.from_arrays(arrays), Filling.from_arrays(arrays)]
        if self.graph:
            return [*steps, tdl_from_arrays(arrays, self.graph, len(self.feature_names))]
        return steps if self.is_raw else [*steps, AffineMap.from_arrays(arrays)]

    @cached_property
    def predictor(self) -> NCAClassifier | NCARegressor:
        """Return the predictor for tables whose rows all vote, where there is a `soft_vote`."""
        kind = NCAClassifier if self.classes else NCARegressor
        arrays = self.arrays | {"voters": self.voters}
        return kind.from_arrays(arrays, vars(self), features_of(self.encoder), self.classes)

    def transform(self, X: Any) -> Any:
        """Return the learned coordinates of encoded rows, in float64."""
        for step in self.steps:
            X = step.transform(X)
        return X

    @cached_property
    def feature_names(self) -> list[str]:
        """Return the names of the features that are mapped, such as "width", "colour=red" and "age
        (missing)".
        """
        indicated = self.arrays.get("indicated", np.empty(0, dtype=int)).tolist()
        names: list[str] = self.encoder.get_feature_names_out().tolist()
        return [*names, *indicator_names(self.encoder.columns_, indicated)]

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
        if self.soft_vote:
            return [column.name for column in self.encoder.columns_]
        return self.feature_names

    @property
    def stretch(self) -> np.ndarray:
        """Return how far a unit step along each feature moves a row, relative to the root mean
        square of all.

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
        return loaded(self.arrays, "voters", (self.n_voters, self.n_components))

    def answers(self, Z: Any, far: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return shares of the classes (n, n_classes), or numbers (n,), for rows with these nearest
        voters.
        """
        if self.soft_vote:
            return self.predictor.vote(Z)
        return self.vote.predict(far, self.arrays["answers"][near], len(self.classes))


def group_hashes(labels: Any) -> np.ndarray:
    """Return a number for the name of every group, ascending: 3, 3.0 and "3 " are one."""
    names = set[str]()
    for label in dict.fromkeys(np.asarray(labels).tolist()):
        name = str(label).strip()
        with suppress(ValueError):  # a number is written as Python does
            name = f"{float(name):.17g}"
        names.add(name)
    hashes = [
        int.from_bytes(blake2b(name.encode(errors="replace"), digest_size=8).digest()) >> 1
        for name in names
    ]
    return np.unique(np.array(hashes, dtype=np.int64))


def far_features(model: Model, X: Any) -> list[str]:
    """Return the features of encoded rows that lie far from the mean, perhaps in another unit."""
    if issparse(X) or not {"mean", "scale"} <= set(model.arrays):
        return []
    p = X.shape[1]
    far = np.abs(X - model.arrays["mean"][:p]) > FAR * model.arrays["scale"][:p]
    names = model.encoder.get_feature_names_out()
    return [
        f"{names[at]} ({counted(int(far[:, at].sum()), 'row')})"
        for at in np.flatnonzero(far.any(axis=0))
    ]


def embed(mapping: Any, X: Any, progress: Progress = ignore) -> Any:
    """Return what a model, or a step, maps encoded rows to, computed by blocks; O(n p m)."""
    n_rows = X.shape[0]
    blocks = []
    for block in row_blocks(n_rows, 1, ROWS_PER_BLOCK):
        blocks.append(mapping.transform(X[block]))
        progress(block.stop, n_rows)
    return vstack(blocks, format="csr") if issparse(blocks[0]) else np.concatenate(blocks)


def predict(
    model: Model, X: Any, progress: Progress = ignore, search: str = "exact"
) -> dict[str, np.ndarray]:
    """Return answers and nearest voters of n encoded rows; an approximate `search` builds its lists
    first.

    Returns
    -------
    dict of str to ndarray
        Of a classification "label" and its share of the weights of the votes: with a `soft_vote` of
        all rows, which held-out rows have calibrated, it is called "probability", and for up to
        `MOST_SHOWN` classes those of all follow, as "probability of ..."; of k rows "vote" (of
        equal shares the first label in sorted order wins). Of a regression "value", the weighted
        mean of the numbers. A hard vote gives each of the k rows the weight 1, a soft one
        `gaussian_weights`. "nearest", of shape (n, k), are row numbers of the nearest voters in
        their table (the first is 0), nearest first, and "distance" is how far they are in the
        learned space.
    """
    index = searcher(search, model.n_voters).index(model.voters, model.n_neighbors)
    n_rows, classes = X.shape[0], np.array(model.classes)
    width = max(model.n_neighbors + len(classes), VOTES_PER_BLOCK // ROWS_PER_BLOCK)
    found: list[dict[str, np.ndarray]] = []
    for block in row_blocks(n_rows, width, VOTES_PER_BLOCK):
        Z = model.transform(X[block])
        far, near = index(Z, model.n_neighbors)
        votes = model.answers(Z, far, near)
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
        found.append(answer | {"nearest": model.arrays["rows"][near], "distance": far})
        progress(block.stop, n_rows)
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}


# The steps that map encoded rows, as arrays under the names that they have in the file.


class Step:
    """A step whose attributes are arrays, or None; `transform` maps rows."""

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """Return the step of those arrays that are its own."""
        return cls(**{name: arrays.get(name) for name in get_type_hints(cls)})


@dataclass(frozen=True)
class Scaling(Step):
    """Features about their mean and over their deviation, in float64; sparse ones have no mean."""

    mean: np.ndarray | None
    scale: np.ndarray | None

    def transform(self, X: Any) -> Any:
        """Return scaled rows."""
        X = X.astype(np.float64, copy=False)
        if self.mean is not None:
            X = (X.toarray() if issparse(X) else X) - self.mean
        if self.scale is not None:
            X = csr_array(X.multiply(1 / self.scale)) if issparse(X) else X / self.scale
        return X


@dataclass(frozen=True)
class Filling(Step):
    """Missing numbers become `fill`; one more feature for each of the `indicated` says where it was
    missing.
    """

    fill: np.ndarray | None
    indicated: np.ndarray | None

    def transform(self, X: Any) -> Any:
        """Return rows without gaps."""
        if self.indicated is not None and issparse(X):
            X = X.toarray()
        if self.fill is None or issparse(X):
            return X
        missing = np.isnan(X)
        X = np.where(missing, self.fill, X)
        return X if self.indicated is None else np.hstack([X, missing[:, self.indicated]])


@dataclass(frozen=True)
class AffineMap(Step):
    """The map `X components' - offset`, and what is shown of it."""

    components: np.ndarray
    offset: np.ndarray | None = None
    spectrum: np.ndarray | None = None

    @classmethod
    def of(cls, fitted: Any) -> AffineMap:
        """Return a fitted linear map."""
        if isinstance(fitted, LinearDiscriminantAnalysis):
            spectrum = fitted.explained_variance_ratio_
            components = fitted.scalings_[:, : len(spectrum)].T
        else:  # NCA and LMNN have no eigenvalues but those of the metric
            components = fitted.components_
            values = getattr(fitted, "eigenvalues_", svd(components, full_matrices=False)[1] ** 2)
            spectrum = getattr(fitted, "explained_variance_", values)
        offset = -fitted.transform(np.zeros((1, components.shape[1])))[0]
        return cls(components, offset, spectrum)

    def transform(self, X: Any) -> Any:
        """Return mapped rows."""
        Z = X @ self.components.T
        return Z if self.offset is None else Z - self.offset


def tdl_arrays(tdl: TDL) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return TDL's map of new rows as arrays, and the numbers of its graph."""
    rule: Any = tdl.extension_
    graph = rule.graph
    arrays = {
        "rule.sources": rule.sources,
        "rule.values": rule.eigenvalues,
        "rule.constant": rule.constant,
        "graph.origin": graph.origin,
        "spectrum": tdl.eigenvalues_,
    }
    numbers = {
        "n_neighbors": int(graph.n_neighbors),
        "bandwidth": float(graph.bandwidth),
        "normalized": bool(rule.normalized),
    }
    return arrays | stored("graph.rows", graph.rows), numbers


def tdl_from_arrays(arrays: dict[str, np.ndarray], numbers: dict[str, Any], p: int) -> TDL:
    """Return a TDL that maps new rows of p features."""
    tdl = TDL()
    tdl.n_features_in_ = p
    tdl.extension_ = GraphExtension(
        HeatGraph(
            loaded(arrays, "graph.rows", (len(arrays["rule.sources"]), p)),
            arrays.get("graph.origin"),
            numbers["n_neighbors"],
            numbers["bandwidth"],
        ),
        arrays["rule.sources"],
        arrays["rule.values"],
        arrays["rule.constant"],
        numbers["normalized"],
    )
    return tdl


def stored(name: str, rows: Any) -> dict[str, np.ndarray]:
    """Return a matrix as arrays."""
    if not issparse(rows):
        return {name: rows}
    return {f"{name}.{part}": getattr(rows, part) for part in ("data", "indices", "indptr")}


def loaded(arrays: dict[str, np.ndarray], name: str, shape: tuple[int, int]) -> Any:
    """Return a matrix that `stored` gave as arrays."""
    if name in arrays:
        return arrays[name]
    parts = tuple(arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    matrix = csr_array(parts, shape=shape)
    matrix.check_format(full_check=True)
    return matrix


# From what a comparison has fitted to a `Model`: what `nearkin compare --save` keeps.


def new_model(
    fitted: Sequence[Any],
    encoder: TableEncoder,
    result: MethodResult,
    raw: MethodResult,
    *,
    groups: tuple[str, Any] = ("", ()),
    doubts: Sequence[Doubt] = (),
    **header: Any,
) -> Model:
    """Return a model that maps rows as fitted steps (a scaler, an imputer, a map, as far as there
    are any) do, and has no voters yet.

    `result` and `raw` are those of what was chosen and of the raw features; figures of them that
    are no finite numbers are left out: no p-value is NaN. `header` are task, score, method,
    classes, n_neighbors, soft, n_rows, target and table, see `Model`.
    """
    arrays: dict[str, Any] = {}
    header |= {"graph": {}, "bins": {}, "soft_vote": {}, "group": groups[0]}
    for step in fitted:
        if isinstance(step, StandardScaler):
            # NaN: a column without a value in the rows learned from. It is filled with 0, and so is
            # that of new rows
            mean = np.nan_to_num(step.mean_) if step.with_mean else None
            scale = np.nan_to_num(step.scale_, nan=np.finfo(np.float64).max)
            arrays |= vars(Scaling(mean, scale))
        elif isinstance(step, SimpleImputer):
            arrays |= vars(Filling(step.statistics_, step.indicator_.features_))
        elif isinstance(step, TDL):
            of_step, header["graph"] = tdl_arrays(step)
            arrays |= of_step
        elif isinstance(step, (NCAClassifier, NCARegressor)):
            of_step, states = step.to_arrays()
            arrays, header = arrays | of_step, header | states
        else:
            arrays |= vars(AffineMap.of(step))
    if header["group"]:
        arrays["groups"] = group_hashes(groups[1])
    for name in ("target", "table", "group"):
        header[name] = _encodable(header[name])[:MAX_NAME]
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
        doubts=[_encodable(doubt.text)[:MAX_DOUBT] for doubt in doubts],
        version=__version__,
        arrays={name: array for name, array in arrays.items() if array is not None},
        **header,
    )


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


def with_voters(model: Model, voters: Any, rows: np.ndarray, answers: np.ndarray) -> Model:
    """Return a model with these voters; none need to travel where rows are only mapped."""
    return replace(
        model, arrays=model.arrays | stored("voters", voters) | {"rows": rows, "answers": answers}
    )


def learned_model(comparison: Comparison, table: Table) -> Model:
    """Return the automatic choice of a comparison on the table, which it was refitted on, as a
    model.
    """
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
        groups=(table.group_name, table.groups),
        doubts=comparison.doubts,
    )
    X = protocol.X if len(rows) == table.X.shape[0] else protocol.X[rows]
    if not all_vote and not issparse(X) and "fill" not in model.arrays:
        # missing numbers of new rows, though none was met, are filled by the medians of these
        medians = np.array([np.median(column) for column in X.T])
        fill = (medians - model.arrays.get("mean", 0)) / model.arrays.get("scale", 1)
        model.arrays["fill"] = fill.astype(np.float64)
    Z = embed(model, X)
    if all_vote:
        columns = list(dict.fromkeys(feature.column for feature in features_of(table.encoder)))
        model.arrays["effects"] = model.arrays["effects"][columns]
        model.arrays["spectrum"] = Z.var(axis=0)
    return with_voters(model, Z, table.in_file(rows), protocol.y[rows])


# Models on disk: a safetensors file, that is arrays and a JSON header. There is no object in it to
# build or run.
#
# safetensors checks that the arrays fill the file exactly, and a checksum that nothing in it was
# damaged; what is left to check is that header and arrays fit together. What none of this can
# detect is a file that was forged: that takes a signature.

# 1 to 3 were skops files, 4 knew no soft votes, 5 had no checksum and refused missing values, 6
# knew no NCA for tables, 7 no doubts
FORMAT = 8
SUFFIX = ".safetensors"
ARCHIVE = b"PK\3\4"
AGAIN = f"make it again with `nearkin compare TABLE --save model{SUFFIX}`."
# The shape of every array: p features, f with those that say where one is missing or that bins
# make, c columns, k classes, m coordinates, v voters, n rows of a graph; d, e, g, h, i, j and q are
# free.
SHAPES = {
    "mean": "p",
    "scale": "p",
    "fill": "p",
    "indicated": "g",
    "components": "mf",
    "offset": "m",
    "spectrum": "q",
    "effects": "c",
    "class_weights": "k",
    "groups": "h",
    "voters": "vm",
    "voters.data": "d",
    "voters.indices": "d",
    "voters.indptr": "i",
    "rows": "v",
    "answers": "v",
    "graph.rows": "nf",
    "graph.rows.data": "e",
    "graph.rows.indices": "e",
    "graph.rows.indptr": "j",
    "graph.origin": "f",
    "rule.sources": "nm",
    "rule.values": "m",
    "rule.constant": "m",
}
GRAPH = {"n_neighbors": int, "bandwidth": float, "normalized": bool}


class ModelFileError(Exception):
    """A file that is no usable model; the text is one line."""


def save_model(model: Model, path: Path) -> None:
    """Write a model as a safetensors file."""
    header = {field.name: getattr(model, field.name) for field in fields(model)}
    arrays = {name: np.ascontiguousarray(array) for name, array in header.pop("arrays").items()}
    # save_file would hide the file from other users
    path.write_bytes(pack(json.dumps({"format": FORMAT} | header), arrays))
    load_model(path)  # nothing is kept that could not be read again


def pack(header: str, arrays: dict[str, np.ndarray]) -> bytes:
    """Return the content of a model file."""
    from safetensors.numpy import save

    return save(arrays, {"nearkin": header, "checksum": _checksum(header, arrays)})


def _checksum(header: str, arrays: dict[str, np.ndarray]) -> str:
    """Return a number that every flipped byte of header and arrays changes."""
    total = zlib.crc32(header.encode())
    for name, array in sorted(arrays.items()):
        total = zlib.crc32(
            array.data, zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), total)
        )
    return str(total)


def load_model(path: Path) -> Model:
    """Return the model in a file; raise a ModelFileError where there is none, or one that is
    damaged or newer.
    """
    with whole_file(path, "compare"):
        header, arrays, intact = read_parts(Path(path))
        if "adapter" in header:
            raise ModelFileError(
                "is an adapter of vectors, which labels nothing: give it to `nearkin transform`."
            )
        written = header.pop("format")
        if written == 6:
            header |= {"bins": {}, "soft_vote": {}}
        if written in (6, 7):
            header |= {"group": "", "doubts": []}
            written = FORMAT
        if type(written) is int and written > FORMAT:
            raise ModelFileError(
                f"was written by a newer nearkin (format {written}): install a newer nearkin."
            )
        differing = header.keys() ^ {field.name for field in fields(Model)} - {"arrays"}
        if written != FORMAT or differing:
            found = f"fields {_line(sorted(differing))}"
            if written != FORMAT:
                found = f"format {_line(written)}"
            raise ModelFileError(f"is no nearkin model of this version ({found}): {AGAIN}")
        _require(intact, "checksum")
        model = Model(**header, arrays=arrays)
        _check_header(model)
        _check_arrays(model)
        with np.errstate(all="ignore"):
            row: Any = np.zeros((1, len(model.encoder.get_feature_names_out())))
            predict(model, csr_array(row) if issparse(model.voters) else row)
        return model


@contextmanager
def whole_file(path: Path, writer: str) -> Iterator[None]:
    """Turn whatever a file that should hold what a command wrote raises, into one line."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{path} {error}") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise ModelFileError(f"{path} does not fit into memory ({_line(error)}).") from error
    except Exception as error:  # a header may hold anything
        raise ModelFileError(
            f"{path} is no nearkin model, or a damaged one ({_line(error)}): give a file written "
            f"by `nearkin {writer} --save`."
        ) from error


def _line(error: Any) -> str:
    """Return the beginning of a text that may be anything, as one printable line."""
    return ascii(str(error).partition("\n")[0][:MAX_NAME])[1:-1]


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a file; its arrays are not read."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return json.loads((file.metadata() or {})["nearkin"])


def read_parts(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], bool]:
    """Return the header and the arrays of a file, and whether they have the checksum that they were
    written with.
    """
    from safetensors import safe_open

    if path.exists() and not path.is_file():  # to read a pipe or a device may take forever
        raise ModelFileError("is no file.")
    with path.open("rb") as file:
        if file.read(len(ARCHIVE)) == ARCHIVE:
            raise ModelFileError(
                f"is an archive, as models were before nearkin wrote safetensors: {AGAIN}"
            )
    require_memory(2.0 * path.stat().st_size, "reading it", "close other programs")
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        header = json.loads(metadata["nearkin"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return header, arrays, metadata.get("checksum") == _checksum(metadata["nearkin"], arrays)


def _require(holds: Any, what: str) -> None:
    if not holds:
        raise ValueError(f"its {what}")


def _check_header(model: Model) -> None:
    """Raise an error unless every field is of its type, and those that belong together agree."""
    for name, kind in get_type_hints(Model).items():
        value = getattr(model, name)
        _require(type(value) is (get_origin(kind) or kind), name)
        _require(kind is not str or len(value) <= MAX_NAME, "words")
    json.dumps(
        {**vars(model), "arrays": None}, ensure_ascii=False
    ).encode()  # no half of a surrogate pair
    doubts = [type(doubt) is str and len(doubt) <= MAX_DOUBT for doubt in model.doubts]
    _require(all(doubts), "doubts")
    kinds = {type(label) for label in model.classes}
    encoder = model.encoder
    features = encoder.get_feature_names_out().tolist()
    _require(encoder.missing == "keep" and len(features) > len(encoder.indicated_) == 0, "columns")
    for names in (features, model.classes if kinds == {str} else []):
        longest = max(map(len, names), default=0)
        _require(longest <= 3 * MAX_TEXT, "names")
        require_memory(4.0 * longest * len(names), "reading it", "close other programs")
    _require(
        len(kinds) == (TASKS[model.task] is CLASSIFICATION)
        and kinds <= {str, int, bool}
        and model.classes == sorted(set(model.classes))
        and np.array(model.classes).dtype.kind != "O",
        "labels",
    )
    graph = model.graph
    _require(
        not graph
        or (
            {name: type(value) for name, value in graph.items()} == GRAPH
            and min(graph["n_neighbors"], graph["bandwidth"]) > 0
        ),
        "graph",
    )
    _require(not (model.soft_vote and graph), "vote")
    _require(model.soft_vote or not model.bins, "bins")
    _require(model.score in SCORES[model.task], "score")
    figures, known = model.held_out, {"score", "raw", "folds"}
    interval = [figures[name] for name in ("low", "high") if name in figures]
    _require(
        known <= set(figures) <= known | {"low", "high", "p_value"}
        and all(type(value) is float and np.isfinite(value) for value in figures.values())
        and len(interval) != 1
        and interval == sorted(interval)
        and figures["folds"] >= 1,
        "held-out figures",
    )


def _check_arrays(model: Model) -> None:
    """Raise an error unless every array is finite and of the shape that the header and the others
    give it.
    """
    arrays = model.arrays
    sizes = {
        "p": len(model.encoder.get_feature_names_out()),
        "f": len(model.steps[0].groups_ if model.bins else model.feature_names),
        "m": model.n_components,
        "c": len(model.encoder.columns_),
        "k": len(model.classes),
    }
    for name, array in arrays.items():
        integers = name in ("rows", "indicated", "groups") or name.endswith((".indices", ".indptr"))
        integers |= name == "answers" and bool(model.classes)
        _require(array.dtype.kind == ("i" if integers else "f") and np.isfinite(array).all(), name)
        _require(array.ndim == len(SHAPES[name]), name)
        for letter, size in zip(SHAPES[name], array.shape, strict=True):
            _require(sizes.setdefault(letter, size) == size, name)
    indicated = arrays.get("indicated", np.empty(0))
    _require((np.diff(indicated) > 0).all() and not (indicated < 0).any(), "indicated")
    _require(("effects" in arrays) == bool(model.soft_vote) <= ("components" in arrays), "effects")
    _require("fill" in arrays or "indicated" not in arrays, "fill")
    _require(("groups" in arrays) == bool(model.group), "groups")
    for name in ("scale", "class_weights"):
        _require((arrays.get(name, np.ones(1)) > 0).all(), name)
    rows, answers = arrays["rows"], arrays["answers"]
    _require((np.diff(rows) > 0).all() and rows[0] >= 0 and len(rows) <= model.n_rows, "rows")
    if model.classes:
        _require(0 <= answers.min() <= answers.max() < len(model.classes), "labels")
    _require(1 <= model.n_neighbors <= min(model.n_voters, MAX_NEIGHBORS), "number of neighbours")
    graph = [model.steps[-1].extension_.graph.rows] if model.graph else []
    for matrix in (model.voters, *graph):
        _require(not issparse(matrix) or matrix.has_canonical_format, "matrices")
