"""Models on disk: a safetensors file, that is arrays and a JSON header. There is no object in it to build or run.

safetensors checks that the arrays fill the file exactly, and a checksum that nothing in it was damaged; what is left to
check is that header and arrays fit together. What none of this can detect is a file that was forged: that takes a
signature.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import numpy as np
from scipy.sparse import csr_array, issparse

from .._memory import require_memory
from ..estimators.soft_votes import vote_from
from ..evaluation import CLASSIFICATION, SCORES, TASKS
from .model import MAX_DOUBT, MAX_NAME, MAX_NEIGHBORS, Model, predict
from .refusals import MAX_TEXT

# 1 to 3 were skops files, 4 knew no soft votes, 5 had no checksum and refused missing values, 6 knew no NCA for
# tables, 7 no doubts
FORMAT = 8
SUFFIX = ".safetensors"
ARCHIVE = b"PK\3\4"
AGAIN = f"make it again with `nearkin compare TABLE --save model{SUFFIX}`."
# The shape of every array: p features, f with those that say where one is missing or that bins make, c columns, m
# coordinates, v voters, n rows of a graph; d, e, g, i, j and q are free.
SHAPES = {
    **{"effects": "c", "mean": "p", "scale": "p", "components": "mf", "offset": "m", "spectrum": "q"},
    **{"fill": "p", "indicated": "g", "class_weights": "k", "groups": "h"},
    **{"voters": "vm", "voters.data": "d", "voters.indices": "d", "voters.indptr": "i", "rows": "v", "answers": "v"},
    **{"graph.rows": "nf", "graph.rows.data": "e", "graph.rows.indices": "e", "graph.rows.indptr": "j"},
    **{"graph.origin": "f", "rule.sources": "nm", "rule.values": "m", "rule.constant": "m"},
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


def pack(header: str, arrays: dict[str, np.ndarray]) -> bytes:
    """Return the content of a model file."""
    from safetensors.numpy import save

    return save(arrays, {"nearkin": header, "checksum": _checksum(header, arrays)})


def _checksum(header: str, arrays: dict[str, np.ndarray]) -> str:
    """Return a number that every flipped byte of header and arrays changes."""
    total = zlib.crc32(header.encode())
    for name, array in sorted(arrays.items()):
        total = zlib.crc32(array.data, zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), total))
    return str(total)


def load_model(path: Path) -> Model:
    """Return the model in a file; raise a ModelFileError where there is none, or one that is damaged or newer."""
    with whole_file(path, "compare"):
        return _load(Path(path))


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
            f"{path} is no nearkin model, or a damaged one ({_line(error)}): give a file written by `nearkin {writer} "
            "--save`."
        ) from error


def _line(error: Any) -> str:
    """Return the beginning of a text that may be anything, as one printable line."""
    return ascii(str(error).partition("\n")[0][:MAX_NAME])[1:-1]


def _load(path: Path) -> Model:
    header, arrays, intact = read_parts(path)
    if "adapter" in header:
        raise ModelFileError("is an adapter of vectors, which labels nothing: give it to `nearkin transform`.")
    written = header.pop("format")
    if written == 7:
        header |= {"group": "", "doubts": []}
        written = FORMAT
    if type(written) is int and written > FORMAT:
        raise ModelFileError(f"was written by a newer nearkin (format {written}): install a newer nearkin.")
    differing = header.keys() ^ {field.name for field in fields(Model)} - {"arrays"}
    if written != FORMAT or differing:
        found = f"format {_line(written)}" if written != FORMAT else f"fields {_line(sorted(differing))}"
        raise ModelFileError(f"is no nearkin model of this version ({found}): {AGAIN}")
    _require(intact, "checksum")
    model = Model(**header, arrays=arrays)
    _check_header(model)
    _check_arrays(model)
    with np.errstate(all="ignore"):
        row: Any = np.zeros((1, len(model.encoder.get_feature_names_out())))
        predict(model, csr_array(row) if issparse(model.voters) else row)
    return model


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a file; its arrays are not read."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return json.loads((file.metadata() or {})["nearkin"])


def read_parts(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], bool]:
    """Return the header and the arrays of a file, and whether they have the checksum that they were written with."""
    from safetensors import safe_open

    if path.exists() and not path.is_file():  # to read a pipe or a device may take forever
        raise ModelFileError("is no file.")
    with path.open("rb") as file:
        if file.read(len(ARCHIVE)) == ARCHIVE:
            raise ModelFileError(f"is an archive, as models were before nearkin wrote safetensors: {AGAIN}")
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
        _require(type(getattr(model, name)) is (get_origin(kind) or kind), name)
    json.dumps({**vars(model), "arrays": None}, ensure_ascii=False).encode()  # no half of a surrogate pair
    for words in (model.method, model.prefix, model.target, model.table, model.group, model.version):
        _require(type(words) is str and len(words) <= MAX_NAME, "words")
    for doubt in model.doubts:
        _require(type(doubt) is str and len(doubt) <= MAX_DOUBT, "doubts")
    kinds = {type(label) for label in model.classes}
    labels = model.classes if kinds == {str} else []
    encoder = model.encoder
    features = encoder.get_feature_names_out().tolist()
    _require(encoder.missing == "keep" and len(features) > len(encoder.indicated_) == 0, "columns")
    for names in (features, labels):
        _require(
            type(names) is list and all(type(name) is str and len(name) <= 3 * MAX_TEXT for name in names), "names"
        )
        require_memory(4.0 * max(map(len, names), default=0) * len(names), "reading it", "close other programs")
    is_classification = TASKS[model.task] is CLASSIFICATION
    _require(len(kinds) == is_classification and kinds <= {str, int, bool}, "labels")
    _require(model.classes == sorted(set(model.classes)) and np.array(model.classes).dtype.kind != "O", "labels")
    _require(not model.graph or {name: type(value) for name, value in model.graph.items()} == GRAPH, "graph")
    _require(not model.graph or (model.graph["n_neighbors"] > 0 and model.graph["bandwidth"] > 0), "graph")
    _require(not model.soft_vote or (vote_from(model.soft_vote) and not model.graph), "vote")
    _require(not model.bins or (model.soft_vote and model.binned), "bins")
    _require(model.score in SCORES[model.task], "score")
    _check_figures(model.held_out)


def _check_figures(held_out: dict[str, float]) -> None:
    """Raise an error unless the held-out figures are those of `Model`, and numbers."""
    known = {"score", "raw", "folds"}
    _require(known <= set(held_out) <= known | {"low", "high", "p_value"}, "held-out figures")
    _require(all(type(value) is float and np.isfinite(value) for value in held_out.values()), "held-out figures")
    interval = [held_out[name] for name in ("low", "high") if name in held_out]
    _require(len(interval) != 1 and interval == sorted(interval) and held_out["folds"] >= 1, "held-out figures")


def _check_arrays(model: Model) -> None:
    """Raise an error unless every array is finite and of the shape that the header and the others give it."""
    arrays = model.arrays
    p, f = len(model.encoder.get_feature_names_out()), len(model.feature_names)
    f = len(model.binned.groups_) if model.bins else f
    sizes = {"p": p, "f": f, "m": model.n_components, "c": len(model.encoder.columns_)}
    for name, array in arrays.items():
        integers = name in ("rows", "indicated", "groups") or name.endswith((".indices", ".indptr"))
        integers |= name == "answers" and model.question is CLASSIFICATION
        _require(array.dtype.kind == ("i" if integers else "f") and np.isfinite(array).all(), name)
        _require(array.ndim == len(SHAPES[name]), name)
        for letter, size in zip(SHAPES[name], array.shape, strict=True):
            _require(sizes.setdefault(letter, size) == size, name)
    indicated = arrays.get("indicated", np.empty(0))
    _require((np.diff(indicated) > 0).all() and not (indicated < 0).any(), "indicated")
    _require(("effects" in arrays) == bool(model.soft_vote) <= ("components" in arrays), "effects")
    _require("fill" in arrays or "indicated" not in arrays, "fill")
    weights = arrays.get("class_weights", np.ones(len(model.classes)))
    _require(len(weights) == len(model.classes) and (weights > 0).all(), "class_weights")
    _require(("groups" in arrays) == bool(model.group), "groups")
    _require("scale" not in arrays or (arrays["scale"] > 0).all(), "scale")
    rows, answers = arrays["rows"], arrays["answers"]
    _require((np.diff(rows) > 0).all() and rows[0] >= 0 and len(rows) <= model.n_rows, "rows")
    if model.question is CLASSIFICATION:
        _require(0 <= answers.min() <= answers.max() < len(model.classes), "labels")
    _require(1 <= model.n_neighbors <= min(model.n_voters, MAX_NEIGHBORS), "number of neighbours")
    for matrix in (model.voters, *([model.extension.graph.rows] if model.graph else [])):
        _require(not issparse(matrix) or matrix.has_canonical_format, "matrices")
