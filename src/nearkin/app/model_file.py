"""Models on disk: a skops archive that holds arrays, numbers and strings, and never runs anything.

skops refuses types it does not know, but it knows all of scikit-learn, and believes the sizes that a file claims. So a
file is read in four steps, each of which refuses what the next one could be fooled by: the archive (nothing compressed,
nothing larger than the file), the arrays (plain types, of the size that is there), the schema (only the nodes and types
that `save_model` writes), and then, loaded by skops, the model (its parts must fit together).

What none of this can detect is a well-formed file with other numbers in it: that takes a signature.
"""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import csr_array, issparse

from .encoder import ColumnEncoder
from .model import FORMAT, Model, predict

# Every class of ours that a model may hold, by name: never what a file asks for.
TRUSTED = [
    "nearkin.app.model.Model",
    "nearkin.app.encoder.ColumnEncoder",
    "nearkin.estimators.dne.DNE",
    "nearkin.estimators.nmmp.NMMP",
    "nearkin.estimators.lpp.LPP",
]
NODES = {
    "ObjectNode": [
        *TRUSTED,
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.decomposition._pca.PCA",
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        "sklearn.neighbors._nca.NeighborhoodComponentsAnalysis",
    ],
    "DictNode": ["builtins.dict"],
    "ListNode": ["builtins.list"],
    "TupleNode": ["builtins.tuple"],
    "JsonNode": ["builtins.str"],
    "TypeNode": ["builtins.str"],
    "NdArrayNode": ["numpy.ndarray", "numpy.float64", "numpy.float32", "numpy.int64"],
}
ATTRIBUTES: dict[str, Any] = {
    "format": int,
    "method": str,
    "encoder": ColumnEncoder,
    "steps": list,
    "coordinates": (np.ndarray, dict),
    "codes": np.ndarray,
    "classes": np.ndarray,
    "n_neighbors": int,
    "target": str,
    "table": str,
    "held_out": dict,
    "versions": dict,
}
MAPS = ["DNE", "NMMP", "LPP", "PCA", "LinearDiscriminantAnalysis", "NeighborhoodComponentsAnalysis"]
SCHEMA = "schema.json"
PROTOCOL = 2
MAX_SCHEMA = 2**22
MAX_MEMBERS = 1000
MAX_DEPTH = 30


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
        return _load(path)
    except ModelFileError:
        raise
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise ModelFileError(f"{path} does not fit into memory.") from error
    except Exception as error:  # a damaged archive may raise anything
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ModelFileError(f"{path} is damaged, or no nearkin model ({reason[:200]}): save it again.") from error


def _load(path: Path) -> tuple[Model, list[str]]:
    from skops.io import load

    if path.is_dir() or not zipfile.is_zipfile(path):
        raise ModelFileError(f"{path} is no nearkin model: give a file written by `nearkin compare --save`.")
    with zipfile.ZipFile(path) as archive:
        _check_archive(path, archive)
        schema = json.loads(archive.read(SCHEMA))
        _check_schema(path, schema, [name for name in archive.namelist() if name != SCHEMA])
    remarks = _version_remarks(path, schema["content"]["content"]["versions"]["content"])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # another version of scikit-learn is told once, by the remarks
            model = load(path, trusted=TRUSTED)
            _check_model(model)
    except Exception as error:
        if remarks:
            raise ModelFileError(f"{remarks[0]} It could not be read.") from error
        raise
    return model, remarks


def _check_archive(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse members that are compressed, too many, or claim more bytes than the file has."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if SCHEMA not in names:
        raise ModelFileError(f"{path} is no nearkin model: give a file written by `nearkin compare --save`.")
    plain = all(
        member.compress_type == zipfile.ZIP_STORED
        and member.compress_size == member.file_size
        and not member.flag_bits & 1
        for member in members
    )
    if not plain:
        raise ModelFileError(f"{path} holds compressed or encrypted members, which nearkin never writes: refused.")
    too_large = sum(member.file_size for member in members) > path.stat().st_size
    if too_large or archive.getinfo(SCHEMA).file_size > MAX_SCHEMA:
        raise ModelFileError(f"{path} claims to hold more than it can: refused.")
    if len(names) > MAX_MEMBERS or len(set(names)) < len(names):
        raise ModelFileError(f"{path} holds too many members, or two of one name: refused.")
    for member in members:
        if member.filename != SCHEMA:
            _check_array(path, archive, member)


def _check_array(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Refuse a member that is no plain array of just the size that its header claims."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read_header[version](file)
        size = member.file_size - file.tell()
    if dtype.kind not in "biufU" or np.prod(shape, dtype=object) * dtype.itemsize != size:
        raise ModelFileError(f"{path}: the array {member.filename!r} is not what its header claims: refused.")


def _check_schema(path: Path, schema: Any, arrays: list[str]) -> None:
    """Refuse a newer format, and every node and type that `save_model` does not write."""
    if _type(schema) != "nearkin.app.model.Model":
        raise ModelFileError(f"{path} is a skops file of {_type(schema)}, no nearkin model: refused.")
    written = json.loads(schema["content"]["content"]["format"]["content"])
    if not isinstance(written, int) or written > FORMAT:
        raise ModelFileError(f"{path} was written by a newer nearkin (format {written}): install a newer nearkin.")
    if schema["protocol"] < PROTOCOL:
        raise ModelFileError(f"{path} is of skops protocol {schema['protocol']}, below {PROTOCOL}: refused.")
    owners: dict[str, Any] = {}
    for node in _nodes(path, schema, []):
        if _type(node) not in NODES.get(node["__loader__"], ()):
            raise ModelFileError(f"{path} holds {_type(node)} ({node['__loader__']}), which no model has: refused.")
        if node["__loader__"] == "NdArrayNode":
            if node["type"] != "numpy" or node["file"] not in arrays:
                raise ModelFileError(f"{path} names an array that it does not hold: refused.")
            if owners.setdefault(node["file"], node["__id__"]) != node["__id__"]:
                raise ModelFileError(f"{path} uses one array for several: refused.")


def _type(node: Any) -> str:
    return f"{node['__module__']}.{node['__class__']}"


def _nodes(path: Path, node: dict[str, Any], above: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield a node and all below it; refuse those that hold themselves."""
    if node["__id__"] in above or len(above) > MAX_DEPTH:
        raise ModelFileError(f"{path} holds parts within themselves, or too deep: refused.")
    yield node
    for child in _children(node):
        yield from _nodes(path, child, [*above, node["__id__"]])


def _children(node: dict[str, Any]) -> list[dict[str, Any]]:
    match node["__loader__"]:
        case "ObjectNode":
            return [node["content"]]
        case "DictNode":
            return [*node["content"].values(), node["key_types"]]
        case "ListNode" | "TupleNode":
            return node["content"]
    return []


def _version_remarks(path: Path, stored: dict[str, Any]) -> list[str]:
    """Return a warning when the file comes from another minor version of scikit-learn."""
    version = str(json.loads(stored["scikit-learn"]["content"]))[:20]
    if version.split(".")[:2] == sklearn.__version__.split(".")[:2]:
        return []
    return [
        f"{path} was saved with scikit-learn {version}, this is {sklearn.__version__}, and what it gives may differ: "
        "save it again with this one."
    ]


def _check_model(model: Model) -> None:
    """Raise a ValueError unless the parts have the types they should have, and fit together."""
    if set(vars(model)) != set(ATTRIBUTES):
        raise ValueError("other attributes than a model's")
    for name, kind in ATTRIBUTES.items():
        if not isinstance(getattr(model, name), kind):
            raise ValueError(f"{name} is no {kind}")
    _check_encoder(model.encoder)
    for part in (model, *model.steps):
        _check_state(vars(part))
    maps = [type(step).__name__ for step in model.steps[model.is_standardized :]]
    if len(maps) > 1 or not set(maps) <= set(MAPS):
        raise ValueError(f"the steps {maps}")
    _check_vote(model)


def _check_state(state: dict[str, Any]) -> None:
    for name, value in state.items():
        if name == "_skl_callbacks":
            raise ValueError("callbacks")
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ValueError(f"{name} is not finite")
        if isinstance(value, np.ndarray) and value.dtype.kind == "U":
            "".join(value.ravel().tolist()).encode()  # no code points that cannot be printed


def _check_vote(model: Model) -> None:
    """Let a row of zeros be transformed and labelled."""
    rows, codes = model.voters(), model.codes
    if (
        codes.dtype.kind != "i"
        or codes.shape != (rows.shape[0],)
        or codes.min() < 0
        or codes.max() >= len(model.classes)
    ):
        raise ValueError("labels")
    row: Any = np.zeros((1, len(model.encoder.feature_names)))
    row = csr_array(row) if issparse(rows) else row
    coordinates = model.transform(row)
    if coordinates.shape != (1, rows.shape[1]) or len(model.names) != rows.shape[1]:
        raise ValueError("dimensions")
    predict(model, row)


def _check_encoder(encoder: ColumnEncoder) -> None:
    texts = [encoder.numbers, encoder.text, *encoder.categories]
    if any(text.dtype.kind != "U" or text.ndim != 1 for text in texts) or len(encoder.text) != len(encoder.categories):
        raise ValueError("names of columns")
    _check_state({f"text {number}": text for number, text in enumerate(texts)})
