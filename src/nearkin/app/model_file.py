"""Models on disk: a skops archive that holds arrays, numbers and strings, and never runs anything.

skops refuses types it does not know, but it knows all of scikit-learn, and believes the sizes that a file claims. So a
file is read in four steps, each of which refuses what the next one could be fooled by: the archive (nothing compressed,
nothing larger than the file), the arrays (plain types, of the size that is there), the schema (only the nodes and types
that `save_model` writes), and then, loaded by skops, the model (its parts must fit together).

What none of this can detect is a well-formed file with other numbers in it: that takes a signature.
"""

from __future__ import annotations

import json
import math
import re
import stat
import struct
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

import numpy as np
import sklearn
from scipy.sparse import csr_array, issparse
from sklearn.preprocessing import StandardScaler

from .._memory import require_memory
from ..estimators import TDL
from ..estimators._graph_prior import GraphRule, RowGraph
from ..evaluation import CLASSIFICATION, TASKS
from .encoder import MAX_ONE_HOT, ColumnEncoder
from .model import FORMAT, KEPT, MAX_NAME, MAX_NEIGHBORS, Model, predict, restored

# Every class of ours that a model may hold, written down: never what a file asks for.
TRUSTED = [
    "nearkin.app.model.Model",
    "nearkin.app.encoder.ColumnEncoder",
    "nearkin.estimators.discriminative_projections.DiscriminativeProjections",
    "nearkin.estimators.dne.DNE",
    "nearkin.estimators.lde.LDE",
    "nearkin.estimators.lfda.LFDA",
    "nearkin.estimators.lmnn.LMNN",
    "nearkin.estimators.lpp.LPP",
    "nearkin.estimators.mfa.MFA",
    "nearkin.estimators.nca.NCA",
    "nearkin.estimators.nmmp.NMMP",
    "nearkin.estimators.rca.RCA",
    "nearkin.estimators.tdl.TDL",
    "nearkin.estimators._graph_prior.GraphRule",
    "nearkin.estimators._graph_prior.RowGraph",
]
CLASSES = [
    *TRUSTED,
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.decomposition._pca.PCA",
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
]
NODES = {
    "ObjectNode": CLASSES,
    "DictNode": ["builtins.dict"],
    "ListNode": ["builtins.list"],
    "JsonNode": ["builtins.str"],
    "TypeNode": ["builtins.str"],
    "NdArrayNode": ["numpy.ndarray"],
}
ATTRIBUTES: dict[str, Any] = {
    "format": int,
    "task": str,
    "method": str,
    "encoder": ColumnEncoder,
    "steps": list,
    "coordinates": (np.ndarray, dict),
    "rows": np.ndarray,
    "n_rows": int,
    "codes": np.ndarray,
    "classes": np.ndarray,
    "n_neighbors": int,
    "target": str,
    "table": str,
    "held_out": dict,
    "versions": dict,
}
SCHEMA = "schema.json"
PROTOCOL = 2  # nodes of older protocols are less strict
END = 56 + 20 + 22  # bytes: above 2 GB an end of 64 bits and a pointer to it, and then the usual end
MAX_DIRECTORY = 2**20
MAX_SCHEMA = 2**20
MAX_DEPTH = 30
MAX_COLUMN_NAME = 10_000
MAX_VALUE = 1e140  # squares of larger ones are lost, and no axis can show them
MATRICES = ("components_", "scalings_")
NUMBERS = ("n_features_in_", "_max_components")
FOREIGN = "is no nearkin model, or not all of it: give a file written by `nearkin compare --save`."
ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|](?:b1|[iu][1248]|f[48]|U[1-9]\d{0,7}))', 'fortran_order': (?:True|False), "
    rb"'shape': \((?:(\d{1,18}),|([1-9]\d{0,17}), ([1-9]\d{0,17}))?\), \} {0,99}\n",
    re.DOTALL,
)


class ModelFileError(Exception):
    """A file that is no usable model; the text is one line."""


def save_model(model: Model, path: Path) -> None:
    """Write a model as a skops file."""
    from skops.io import dump

    dump(model, path)


def load_model(path: Path) -> tuple[Model, list[str]]:
    """Return the model in a file, and remarks on it.

    Raises
    ------
    ModelFileError
        If there is no such file, or it is damaged, foreign, newer than this nearkin, or holds anything but a model.
    """
    try:
        return _load(Path(path))
    except Exception as error:  # a damaged archive may raise anything
        raise ModelFileError(f"{path} {_reason(error)}") from error


def _reason(error: Exception) -> str:
    match error:
        case ModelFileError():
            return str(error)
        case OSError():
            return f"cannot be read: {error.strerror or error}."
        case MemoryError():
            return f"does not fit into memory ({_short(error)})."
        case zipfile.BadZipFile() | ValueError():
            return f"is damaged, or no nearkin model ({_short(error)}): save it again."
    return "is damaged, or no nearkin model: save it again."


def _short(text: Any) -> str:
    """Return the beginning of a text that may be anything, as one printable line."""
    line = str(text).partition("\n")[0][:MAX_NAME]
    return line if line.isprintable() else ascii(line)


def _load(path: Path) -> tuple[Model, list[str]]:
    from skops.io import load

    about = path.stat()
    size = about.st_size
    if not stat.S_ISREG(about.st_mode) or size < END:  # to read a pipe or a device may take forever
        raise ModelFileError(FOREIGN)
    with path.open("rb") as file:
        _check_directory(file, size)
        with zipfile.ZipFile(file) as archive:
            _check_archive(archive, size)
            schema = json.loads(archive.read(SCHEMA))
            _check_schema(schema, archive.namelist())
        require_memory(2.0 * size, "reading it", "close other programs")
        origin = _other_origin(schema["content"]["content"]["versions"]["content"])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of another version of scikit-learn: told once, by the remark
                model = load(file, trusted=TRUSTED)
                _check_model(model)
        except (TypeError, AttributeError, ValueError) as error:
            if origin:
                raise ModelFileError(f"{origin}, which cannot use it: save it again with this one.") from error
            raise
    return model, [f"{path} {origin}, and what it gives may differ: save it again with this one."] if origin else []


def _check_directory(file: BinaryIO, size: int) -> None:
    """Refuse a file that does not end as archives do, or whose list of members is longer than any model's."""
    file.seek(size - END)
    end = file.read(END)
    short, comment = struct.unpack("<12xL4xH", end[76:])
    long = int.from_bytes(end[40:48], "little") if end[56:60] == b"PK\6\7" else 0
    if end[76:80] != b"PK\5\6" or comment:
        raise ModelFileError(FOREIGN)
    if max(short, long) > MAX_DIRECTORY:
        raise ModelFileError("lists more members than a model has: refused.")


def _check_archive(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse members that are compressed, or claim more bytes than the file has."""
    members = {member.filename: member for member in archive.infolist()}
    if SCHEMA not in members:
        raise ModelFileError(FOREIGN)
    if len(members) < len(archive.infolist()):
        raise ModelFileError("holds two members of one name: refused.")
    for member in members.values():
        stored = member.compress_type == zipfile.ZIP_STORED and member.compress_size == member.file_size
        if member.flag_bits or not stored:
            raise ModelFileError("holds compressed or encrypted members, which nearkin never writes: refused.")
    if sum(member.file_size for member in members.values()) > size:
        raise ModelFileError("claims to hold more than it can: refused.")
    if members[SCHEMA].file_size > MAX_SCHEMA:
        raise ModelFileError("has a longer schema than any model: refused.")
    for member in members.values():
        if member.filename != SCHEMA:
            _check_array(archive, member)


def _check_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Refuse a member that is no plain array of just the size that its header claims."""
    with archive.open(member) as file:
        start = file.read(10)
        header = start + file.read(int.from_bytes(start[8:], "little"))
    plain = ARRAY.fullmatch(header)
    if plain:
        dtype, *shape = filter(None, plain.groups())
        n_bytes = math.prod(map(int, shape)) * np.dtype(dtype.decode()).itemsize
    if not plain or len(header) + n_bytes != member.file_size:
        raise ModelFileError(f"holds {_short(member.filename)!r}, which is not the array it claims to be: refused.")


def _check_schema(schema: Any, members: list[str]) -> None:
    """Refuse a newer format, and every node and type that `save_model` does not write."""
    try:
        if _type(schema) != TRUSTED[0]:
            raise ModelFileError(f"is a skops file of {_short(_type(schema))}, no nearkin model: refused.")
        _check_format(schema)
        known: dict[int, Any] = {}
        for node in _nodes(schema, []):
            if _type(node) not in NODES.get(node["__loader__"], ()):
                kind = f"{_type(node)} ({node['__loader__']})"
                raise ModelFileError(f"holds {_short(kind)}, which no model has: refused.")
            if type(node["__id__"]) is not int or known.setdefault(node["__id__"], node) != node:
                raise ModelFileError("gives one number to several parts: refused.")
        named = [node["file"] for node in _nodes(schema, []) if node["__loader__"] == "NdArrayNode"]
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ModelFileError("has a schema that nearkin does not write: refused.") from error
    if sorted([SCHEMA, *named]) != sorted(members):
        raise ModelFileError("does not hold just the arrays that it names: refused.")


def _check_format(schema: dict[str, Any]) -> None:
    written, protocol = json.loads(schema["content"]["content"]["format"]["content"]), schema["protocol"]
    if type(written) is not int or written < FORMAT:
        raise ModelFileError(f"is of no known format ({_short(written)}): save it again.")
    if written > FORMAT:
        raise ModelFileError(f"was written by a newer nearkin (format {_short(written)}): install a newer nearkin.")
    if type(protocol) is not int or protocol < PROTOCOL:
        raise ModelFileError(f"is of skops protocol {_short(protocol)}, nearkin writes {PROTOCOL} or newer: refused.")


def _type(node: dict[str, Any]) -> str:
    return f"{node['__module__']}.{node['__class__']}"


def _nodes(node: dict[str, Any], above: list[int]) -> Iterator[dict[str, Any]]:
    """Yield a node and all below it; refuse those that hold themselves."""
    if node["__id__"] in above or len(above) > MAX_DEPTH:
        raise ModelFileError("holds parts within themselves, or too deep: refused.")
    yield node
    for child in _children(node):
        yield from _nodes(child, [*above, node["__id__"]])


def _children(node: dict[str, Any]) -> list[dict[str, Any]]:
    match node["__loader__"]:
        case "ObjectNode":
            return [node["content"]]
        case "DictNode":
            return [*node["content"].values(), node["key_types"]]
        case "ListNode":
            return node["content"]
        case "NdArrayNode" if node["type"] != "numpy":
            raise ModelFileError("holds an array of objects, which no model has: refused.")
        case "JsonNode" if isinstance(json.loads(node["content"]), (list, dict)):
            raise ModelFileError("holds a list where a number or string should be: refused.")
    return []


def _other_origin(stored: dict[str, Any]) -> str:
    """Return which other minor version of scikit-learn a file comes from, or nothing."""
    version = str(json.loads(stored["scikit-learn"]["content"]))
    if version.split(".")[:2] == sklearn.__version__.split(".")[:2]:
        return ""
    return f"was saved with scikit-learn {_short(version)}, this is {sklearn.__version__}"


def _check_model(model: Model) -> None:
    """Raise a ValueError unless the parts are as `save_model` writes them, and fit together."""
    _require(set(vars(model)) == set(ATTRIBUTES), "attributes")
    for name, kind in ATTRIBUTES.items():
        value = getattr(model, name)
        _require(isinstance(value, kind) and not isinstance(value, bool), name)
    _check_words(model)
    _check_figures(model)
    _check_encoder(model.encoder)
    for step in model.steps:
        _check_step(step, len(model.encoder.feature_names))
    _require(len(model.steps) <= 1 + model.is_standardized and not isinstance(model.map, StandardScaler), "steps")
    _check_voters(model)
    _check_use(model)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"its {what}")


def _check_words(model: Model) -> None:
    _require(model.task in TASKS, "task")
    _require(set(model.versions) == {"nearkin", "scikit-learn"}, "versions")
    for word in (model.method, model.target, model.table, *model.versions.values()):
        _require(isinstance(word, str) and len(word) <= MAX_NAME and _is_text(np.array([word])), "words")


def _check_figures(model: Model) -> None:
    score, figures = model.asked.score_name, {name: value for name, value in model.held_out.items() if name != "folds"}
    _require(set(figures) - {"p_value"} == {score, "std", f"raw_{score}"}, "held-out figures")
    lowest = 0 if model.asked is CLASSIFICATION else -MAX_VALUE  # R² has no lower bound
    bounds = {"p_value": (0, 1), "std": (0, 1 - lowest), score: (lowest, 1), f"raw_{score}": (lowest, 1)}
    for name, value in figures.items():
        _require(type(value) is float and bounds[name][0] <= value <= bounds[name][1], "held-out figures")
    _require(type(model.held_out.get("folds")) is int and 1 <= model.held_out["folds"] < 2**31, "held-out figures")


def _check_encoder(encoder: ColumnEncoder) -> None:
    _require(set(vars(encoder)) == {"numbers", "text", "categories"}, "encoder")
    for names in (encoder.numbers, encoder.text, *encoder.categories):
        _require(names.ndim == 1 and names.dtype.kind == "U" and _is_text(names), "names of columns")
    for names in (encoder.numbers, encoder.text):
        _require(names.itemsize <= 4 * MAX_COLUMN_NAME, "names of columns")
    _require(len(set(encoder.columns)) == len(encoder.columns) > 0, "names of columns")
    _require(len(encoder.text) == len(encoder.categories), "values of text columns")
    _require(all(len(known) > 0 and _ascends(known) for known in encoder.categories), "values of text columns")
    _require(sum(map(len, encoder.categories)) <= MAX_ONE_HOT, "values of text columns")


def _check_step(step: Any, n_features: int) -> None:
    kept, state = KEPT[type(step)], vars(step)
    parameters = {name: value for name, value in state.items() if name not in kept}
    _require(set(kept) <= set(state), "steps")
    _require(set(parameters) <= set(type(step)().get_params(deep=False)), "parameters")
    _require(all(isinstance(value, (str, int, float, NoneType)) for value in parameters.values()), "parameters")
    _require(step.n_features_in_ == n_features, "number of features")
    if isinstance(step, TDL):
        _check_graph(step, n_features)
        return
    for name in kept:
        value = state[name]
        if name in NUMBERS:
            _require(type(value) is int, name)
        else:
            _require(isinstance(value, np.ndarray) and value.ndim == 1 + (name in MATRICES), name)
            _require(max(value.shape) <= n_features and _is_moderate(value), name)
            _require(not isinstance(step, StandardScaler) or len(value) == n_features, name)


def _check_graph(step: Any, n_features: int) -> None:
    """Raise a ValueError unless a map that follows a graph holds its rows, and a value a component for each."""
    rule, graph, values = step._rule, step._graph, step.eigenvalues_
    _require(type(rule) is GraphRule and type(graph) is RowGraph, "graph")
    _require(set(vars(rule)) == set(GraphRule.__match_args__), "rule")
    _require(set(vars(graph)) == set(RowGraph.__match_args__), "graph")
    m = _check_matrix(rule.sources, "rule").shape[1]
    for vector in (values, rule.values, rule.constant):
        _require(isinstance(vector, np.ndarray) and vector.shape == (m,) and _is_moderate(vector), "rule")
    _require(type(rule.normalized) is bool and type(rule.weighted) is bool, "rule")
    rows = _check_matrix(graph.rows, "graph")
    _require(rows.shape == (rule.sources.shape[0], n_features), "graph")
    origin = graph.origin
    known = isinstance(origin, np.ndarray) and origin.shape == (n_features,) and _is_moderate(origin)
    _require(known if origin is not None else issparse(rows), "graph")
    _require(type(graph.n_neighbors) is int and graph.n_neighbors >= 1, "graph")
    _require(type(graph.bandwidth) is float and graph.bandwidth > 0, "graph")


def _check_matrix(kept: Any, what: str) -> Any:
    """Return a matrix, dense or kept as its parts; raise a ValueError if it is none, or not finite."""
    if isinstance(kept, dict):
        _require(set(kept) == {"data", "indices", "indptr", "shape"}, what)
        _require(all(isinstance(part, np.ndarray) for part in kept.values()), what)
        _require(all(kept[name].dtype.kind == "i" for name in ("indices", "indptr", "shape")), what)
    values = kept["data"] if isinstance(kept, dict) else kept
    _require(isinstance(values, np.ndarray) and _is_moderate(values), what)
    matrix = restored(kept)
    _require(matrix.ndim == 2 and (not issparse(matrix) or matrix.has_canonical_format), what)
    return matrix


def _check_voters(model: Model) -> None:
    coordinates, rows, codes, classes = (
        _check_matrix(model.coordinates, "coordinates"),
        model.rows,
        model.codes,
        model.classes,
    )
    fit = classes.dtype.kind in "biuU" if model.asked is CLASSIFICATION else _is_moderate(classes)
    _require(classes.ndim == 1 and fit and _ascends(classes), "labels")
    _require(classes.dtype.kind != "U" or _is_text(classes), "labels")
    _require(codes.ndim == 1 and codes.dtype.kind == "i", "labels")
    _require(0 <= codes.min() <= codes.max() < len(classes), "labels")
    _require(coordinates.shape[0] == len(codes), "coordinates")
    _require(rows.shape == codes.shape and rows.dtype.kind == "i" and _ascends(rows), "numbers of rows")
    _require(0 <= rows[0] <= rows[-1] < model.n_rows, "numbers of rows")
    _require(1 <= model.n_neighbors <= min(len(codes), MAX_NEIGHBORS), "number of neighbours")


def _check_use(model: Model) -> None:
    """Let a row of zeros be mapped and answered."""
    n_features = len(model.encoder.feature_names)
    row: Any = np.zeros((1, n_features))
    row = csr_array(row) if issparse(model.voters()) else row
    _require(model.transform(row).shape == (1, model.n_components), "dimensions")
    predict(model, row)


def _is_moderate(values: np.ndarray) -> bool:
    return values.dtype.kind == "f" and bool((np.abs(values) < MAX_VALUE).all())


def _ascends(values: np.ndarray) -> bool:
    return bool((values[:-1] < values[1:]).all())


def _is_text(words: np.ndarray) -> bool:
    """Tell whether every character is one that can be written."""
    characters = np.ascontiguousarray(words).view(f"{words.dtype.byteorder}u4")
    return not ((characters > 0x10FFFF) | ((characters >= 0xD800) & (characters < 0xE000))).any()
