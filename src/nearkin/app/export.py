"""`nearkin export`: the map of an adapter as another program reads it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators.quantization import LARGEST
from ..neighbors.quantizer import import_faiss
from . import console
from .adapter_file import SavedAdapter, load_adapter
from .onnx_graph import onnx_bytes
from .output import Outputs, atomic_folder, check_writable
from .pgvector import Names, column_type, script
from .refusals import TableError

SUFFIXES = {"npz": [".npz"], "onnx": [".onnx"], "faiss": [".faiss", ".index"], "sql": [".sql"]}
OF_DOCUMENTS = ("faiss", "sql")  # an index that maps whatever it is given
NEEDED = {"onnx": "export", "faiss": "ann"}  # a package, and the extra that has it


def export(options: argparse.Namespace) -> int:
    """Write the map of an adapter for another program."""
    target, given = options.to, Path(options.adapter)
    names = _names(options)
    path = Path(options.output) if target == "torch" else check_writable(options.output, SUFFIXES[target], "-o")
    adapter = load_adapter(given)
    _check_target(adapter, given, target)
    remark = partial(console.remark, quiet=options.quiet)
    sizes = f"{adapter.n_features} to {adapter.n_components} dimensions"
    said = f"{adapter.header.name}, {sizes}, for {target}: {path}"
    remark([f"  {note}" for note in _notes(adapter, target)])
    if target == "torch":
        with atomic_folder(path) as folder:
            _write_dense(adapter, folder)
        remark([said])
        return 0
    write: dict[str, Callable[..., Any]]
    write = {"npz": _write_npz, "onnx": _write_onnx, "faiss": _write_faiss, "sql": partial(_write_sql, names=names)}
    outputs = Outputs(remark)
    outputs.write(path, "-o", partial(write[target], adapter), said)
    return outputs.code


def _names(options: argparse.Namespace) -> Names | None:
    """Return the names for a script in SQL; raise an error where they are missing, or given without one."""
    given = {"--table": options.sql_table, "--column": options.column, "--into": options.into}
    if options.to == "sql":
        if options.sql_table is None:
            raise TableError("--to sql writes a script for a table of PostgreSQL: name that by --table.")
        return Names.of(options.sql_table, options.column or "embedding", options.into)
    surplus = [option for option, value in given.items() if value is not None]
    if surplus:
        raise TableError(f"{surplus[0]} is for --to sql: leave it out with --to {options.to}.")
    return None


def _check_target(adapter: SavedAdapter, path: Path, target: str) -> None:
    """Refuse what a target cannot do, or needs, with the remedy."""
    if adapter.header.side == "query" and target in OF_DOCUMENTS:
        raise TableError(
            f"{path} adapts queries alone, {target} would map documents, too: leave the index of documents as it is, "
            "export to npz, onnx or torch, and adapt each query before the search."
        )
    if adapter.header.quantize == "binary" and target == "faiss":
        raise TableError(
            f"{path} makes binary codes, which faiss does not make of vectors: add the codes that `nearkin transform` "
            f"writes to a faiss.IndexBinaryFlat({8 * adapter.bytes}), and search it with codes."
        )
    if target in NEEDED and find_spec(target) is None:
        raise ImportError(f'--to {target} needs {target}: pip install "nearkin[{NEEDED[target]}]".')


def _notes(adapter: SavedAdapter, target: str) -> list[str]:
    """Return what to know of an exported adapter."""
    notes = []
    if adapter.header.side == "query":
        notes.append("adapt queries alone: documents stay as they are")
    if target == "torch":
        notes.append("put it between two modules Normalize: it is linear")
    codes = {
        "int8": f"np.clip(np.rint(z * ({LARGEST} / {adapter.scale:.9g})), -{LARGEST}, {LARGEST}).astype(np.int8)",
        "binary": "np.packbits(z > 0, axis=1)",
    }.get(adapter.header.quantize or "")
    if codes and target in ("npz", "torch"):
        notes.append(f"it gives vectors z in float32; their codes: {codes}")
    if codes and target == "faiss":
        notes.append("a byte a dimension for what is added; queries stay float32")
    if target == "sql" and column_type(adapter) == "halfvec":
        why = "pgvector has no int8" if codes else "pgvector indexes longer float32 vectors as float16"
        notes.append(f"{why}: a column of halfvec, two bytes a dimension")
    return notes


def _write_npz(adapter: SavedAdapter, path: Path) -> None:
    arrays: dict[str, Any] = {"components": adapter.components, "bias": adapter.bias}
    arrays["feature_names"] = np.array(adapter.header.columns)
    if adapter.header.quantize == "int8":
        arrays["scale"] = np.float32(adapter.scale)
    with path.open("wb") as file:  # by its name, savez would add a suffix
        np.savez(file, **arrays)


def _write_onnx(adapter: SavedAdapter, path: Path) -> None:
    path.write_bytes(onnx_bytes(adapter))


def _write_sql(adapter: SavedAdapter, path: Path, *, names: Names | None) -> None:
    assert names is not None
    path.write_text(script(adapter, names), encoding="utf-8", newline="\n")


def _write_faiss(adapter: SavedAdapter, path: Path) -> None:
    # not by write_index, whose errors are no OSError
    path.write_bytes(import_faiss().serialize_index(_faiss_index(adapter)).tobytes())


def _write_dense(adapter: SavedAdapter, folder: Path) -> None:
    """Write a module Dense of sentence-transformers into a folder; a key that is absent has its default."""
    from safetensors.numpy import save

    config = {
        "in_features": adapter.n_features,
        "out_features": adapter.n_components,
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=4), encoding="utf-8")
    arrays = {"linear.weight": adapter.components, "linear.bias": adapter.bias}
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    (folder / "model.safetensors").write_bytes(save(arrays, {"format": "pt"}))


def _faiss_index(adapter: SavedAdapter) -> Any:
    """Return an empty index of inner products that maps whatever is added to it, or searched for."""
    faiss, m, p = import_faiss(), adapter.n_components, adapter.n_features
    linear = faiss.LinearTransform(p, m, True)
    faiss.copy_array_to_vector(adapter.components.ravel(), linear.A)
    faiss.copy_array_to_vector(adapter.bias, linear.b)
    linear.is_trained = True
    index = faiss.IndexPreTransform(_int8_codes(adapter) if adapter.header.quantize else faiss.IndexFlatIP(m))
    for step in (faiss.NormalizationTransform(m), linear, faiss.NormalizationTransform(p)):
        index.prepend_transform(step)
    return index


def _int8_codes(adapter: SavedAdapter) -> Any:
    """Return an index that rounds coordinates to the adapter's codes; nothing has to be learned from rows for it.

    faiss cuts u = 255 (z - a) / d, from a on, to a whole number, and takes it for a + (u + 1/2) d / 255. With a step of
    d / 255 = scale / 127 and a half a step below the code -127, u is the code + 127. The one level that is left, 128,
    takes what is larger, and is clipped to 127 elsewhere.
    """
    faiss, step = import_faiss(), adapter.scale / LARGEST
    codes = faiss.IndexScalarQuantizer(
        adapter.n_components, faiss.ScalarQuantizer.QT_8bit_uniform, faiss.METRIC_INNER_PRODUCT
    )
    start, width = -(LARGEST + 0.5) * step, (2 * LARGEST + 1) * step
    faiss.copy_array_to_vector(np.array([start, width], np.float32), codes.sq.trained)
    codes.is_trained = True
    return codes
