"""`nearkin export`: the map of an adapter as another program reads it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._messages import shown
from ..neighbors.approximate import import_faiss
from ..vectors import LARGEST
from .adapter_file import SavedAdapter, load_adapter
from .output import Outputs, atomic_folder, check_writable
from .readers import TableError

# The map of an adapter as a graph of ONNX.

# Of 2020: a runtime reads what is older than itself, and nothing here is newer.
OPSET, IR_VERSION = 13, 7
INPUT, OUTPUT = "embeddings", "vectors"
KINDS: dict[str | None, type] = {None: np.float32, "int8": np.int8, "binary": np.uint8}


def onnx_bytes(adapter: SavedAdapter) -> bytes:
    """Return a checked model: float32 (n, p) "embeddings" to "vectors", float32 or codes, as by
    `transform`.
    """
    import onnx

    graph = _Graph()
    Z = graph.unit_rows(graph.affine(graph.unit_rows(INPUT), *_whole_bytes(adapter)))
    codes = {"int8": _int8, "binary": _binary}.get(adapter.map.quantize or "")
    last = codes(graph, Z, adapter) if codes else Z
    graph.add("Identity", last, name=OUTPUT)
    model = graph.model(adapter)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


class _Graph:
    """Nodes in the order of their computation, each named by what it gives."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(
        self,
        kind: str,
        *inputs: str | np.ndarray | np.generic,
        name: str | None = None,
        **attributes: Any,
    ) -> str:
        """Add a node of names and constants, and return the name of what it gives."""
        from onnx import helper

        name = name or f"{kind.lower()}_{len(self._nodes)}"
        names = [self._named(value, f"{name}_{place}") for place, value in enumerate(inputs)]
        self._nodes.append(helper.make_node(kind, names, [name], name=name, **attributes))
        return name

    def _named(self, value: str | np.ndarray | np.generic, name: str) -> str:
        if isinstance(value, str):
            return value
        from onnx import numpy_helper

        self._constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def unit_rows(self, rows: str) -> str:
        """Scale rows to unit length; a row of zeros stays, of which runtimes make NaN in their
        LpNormalization.
        """
        lengths = self.add("ReduceL2", rows, axes=[1], keepdims=1)
        is_zero = self.add("Equal", lengths, np.float32(0))
        return self.add("Div", rows, self.add("Where", is_zero, np.float32(1), lengths))

    def cast(self, values: str, kind: type) -> str:
        """Turn numbers into others, without rounding."""
        return self.add("Cast", values, to=_number(kind))

    def affine(self, rows: str, A: np.ndarray, b: np.ndarray) -> str:
        """Return A x + b of rows x."""
        return self.add("Gemm", rows, A, b, transB=1)

    def model(self, adapter: SavedAdapter) -> Any:
        """Return the graph as a model."""
        from onnx import helper

        kind, width = (
            KINDS[adapter.map.quantize],
            adapter.bytes if adapter.map.quantize == "binary" else adapter.map.n_components_,
        )
        given = helper.make_tensor_value_info(
            INPUT, _number(np.float32), ["n", adapter.map.n_features_in_]
        )
        gives = helper.make_tensor_value_info(OUTPUT, _number(kind), ["n", width])
        model = helper.make_model(
            helper.make_graph(self._nodes, "adapter", [given], [gives], self._constants),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="nearkin",
            producer_version=__version__,
        )
        facts = {
            "name": adapter.name,
            "side": adapter.map.side,
            "codes": adapter.map.quantize,
            "scale": adapter.scale,
        }
        helper.set_model_props(model, {"nearkin": json.dumps(facts)})
        return model


def _number(kind: type) -> int:
    """Return the number that stands for a type of NumPy."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


def _whole_bytes(adapter: SavedAdapter) -> tuple[np.ndarray, np.ndarray]:
    """Return the map; for bits with coordinates that are always 0 up to a multiple of eight."""
    A, b = adapter.map.components_, adapter.map.bias_
    more = -len(A) % 8 if adapter.map.quantize == "binary" else 0
    return np.pad(A, ((0, more), (0, 0))), np.pad(b, (0, more))


def _int8(graph: _Graph, Z: str, adapter: SavedAdapter) -> str:
    """Return coordinates times 127 / scale, rounded half to even, clipped, as int8."""
    rounded = graph.add("Round", graph.add("Mul", Z, np.float32(LARGEST / adapter.scale)))
    clipped = graph.add("Clip", rounded, np.float32(-LARGEST), np.float32(LARGEST))
    return graph.cast(clipped, np.int8)


def _binary(graph: _Graph, Z: str, adapter: SavedAdapter) -> str:
    """Return signs, eight a byte, the first the highest bit: as sums of powers of two, which are
    exact.
    """
    bits = graph.cast(graph.add("Greater", Z, np.float32(0)), np.float32)
    places = np.kron(np.eye(adapter.bytes), 2.0 ** np.arange(7, -1, -1)[:, None]).astype(np.float32)
    return graph.cast(graph.add("MatMul", bits, places), np.uint8)


# The map of an adapter as a script for PostgreSQL with pgvector.

MOST_BYTES = 63  # of a name in PostgreSQL, which cuts longer ones
MOST_OF_VECTOR = 16_000  # dimensions
MOST_OF_INDEX = {"vector": 2_000, "halfvec": 4_000}  # dimensions; of bits more than of a vector
OPERATORS = {"vector": "<=>", "halfvec": "<=>", "bit": "<~>"}
CLASSES = {"vector": "vector_cosine_ops", "halfvec": "halfvec_cosine_ops", "bit": "bit_hamming_ops"}


@dataclass(frozen=True)
class Names:
    """Names in a database, quoted.

    Attributes
    ----------
    table, column, into : str
        Where the vectors are, and the column that adapted ones are written to.
    rows, function : str
        A table of the rows of the map, and the function that adapts a vector.
    index : str
    """

    table: str
    column: str
    into: str
    rows: str
    function: str
    index: str

    @classmethod
    def of(cls, table: str, column: str, into: str | None) -> Names:
        """Return the names for a table, with its schema or without; raise an error where one cannot
        be a name.
        """
        *schema, name = table.split(".")
        if len(schema) > 1:
            raise TableError(
                f"--table {shown(table)} has too many dots: give TABLE or SCHEMA.TABLE."
            )
        into = f"{column}_adapted" if into is None else into
        if into == column:
            raise TableError(f"--into {shown(into)} is the column of the vectors: name a new one.")
        for option, part in [
            *(("--table", part) for part in (*schema, name)),
            ("--column", column),
            ("--into", into),
        ]:
            _check_name(part, option)
        own = [f"{name}_{into}_{end}" for end in ("rows", "of", "hnsw")]
        if any(len(one.encode()) > MOST_BYTES for one in own):
            raise TableError(
                f"--into {shown(into)}: {shown(own[0])} is longer than the {MOST_BYTES} bytes of a "
                "name: choose a shorter one."
            )
        rows, function, index = own
        within = [f"{_quoted(part)}." for part in schema]
        place = "".join(within)
        return cls(
            place + _quoted(name),
            _quoted(column),
            _quoted(into),
            place + _quoted(rows),
            place + _quoted(function),
            _quoted(index),
        )


def _check_name(name: str, option: str) -> None:
    if not name or not name.isprintable() or len(name.encode()) > MOST_BYTES:
        raise TableError(
            f"{option} {shown(name)} is no name of PostgreSQL: give 1 to {MOST_BYTES} bytes that "
            "can be printed."
        )


def _quoted(name: str) -> str:
    """Return a name between quotation marks, which are doubled inside: it means what it says,
    capitals included.
    """
    return '"' + name.replace('"', '""') + '"'


def script(adapter: SavedAdapter, names: Names) -> str:
    """Return statements that adapt the vectors of a table, and index them."""
    kind = column_type(adapter)
    m, p = adapter.map.n_components_, adapter.map.n_features_in_
    unit = f"l2_normalize((array_agg(bias - (weights <#> unit.x) ORDER BY component))::vector({m}))"
    value = {
        "vector": unit,
        "halfvec": f"{unit}::halfvec({m})",
        "bit": f"binary_quantize({unit})::bit({m})",
    }[kind]
    return f"""\
-- {_comment(adapter)}
-- Needs PostgreSQL 14 and pgvector 0.7, or newer. All of it is done, or nothing.
BEGIN;
CREATE EXTENSION IF NOT EXISTS vector;

-- The map: one row for each dimension of an adapted vector.
CREATE TABLE {names.rows} (\
component integer PRIMARY KEY, bias double precision NOT NULL, weights vector({p}) NOT NULL);
ALTER TABLE {names.rows} ALTER COLUMN weights SET STORAGE MAIN;\
  -- beside the numbers, where it is read fastest
{_rows(adapter, names)}
ANALYZE {names.rows};

-- Adapts one vector. <#> is minus the inner product.
CREATE FUNCTION {names.function}(x vector) RETURNS {kind} \
LANGUAGE sql STABLE STRICT PARALLEL SAFE RETURN (
  SELECT {value}
  FROM {names.rows}, (SELECT l2_normalize(x) AS x OFFSET 0) AS unit\
  -- OFFSET: once a vector, not once a row
);

ALTER TABLE {names.table} ADD COLUMN {names.into} {kind}({m});
UPDATE {names.table} SET {names.into} = {names.function}({names.column}::vector) \
WHERE {names.column} IS NOT NULL;
CREATE INDEX {names.index} ON {names.table} USING hnsw ({names.into} {CLASSES[kind]});
COMMIT;
ANALYZE {names.table};

-- The ten most similar rows; $1 is the vector of a query as the model gives it:
--   SELECT * FROM {names.table} \
ORDER BY {names.into} {OPERATORS[kind]} {names.function}($1) LIMIT 10;
-- A new row:
--   INSERT INTO {names.table} ({names.column}, {names.into}) VALUES ($1, {names.function}($1));
"""


def column_type(adapter: SavedAdapter) -> str:
    """Return the type of the new column; raise an error where pgvector has none for so many
    dimensions.
    """
    m, p = adapter.map.n_components_, adapter.map.n_features_in_
    kind = {"int8": "halfvec", "binary": "bit"}.get(adapter.map.quantize or "", "vector")
    kind = "halfvec" if kind == "vector" and m > MOST_OF_INDEX["vector"] else kind
    if max(m, p) > MOST_OF_VECTOR:
        raise TableError(
            f"a vector of pgvector has at most {MOST_OF_VECTOR:,} dimensions, and the adapter maps "
            f"{p:,} to {m:,}: export to npz, onnx or torch, and adapt before the vectors are "
            "stored."
        )
    if m > MOST_OF_INDEX.get(kind, MOST_OF_VECTOR):
        raise TableError(
            f"an index of pgvector takes at most {MOST_OF_INDEX[kind]:,} dimensions, and the "
            f"adapter gives {m:,}: learn a shorter one by `nearkin adapt --sizes`."
        )
    return kind


def _comment(adapter: SavedAdapter) -> str:

    sizes = f"{adapter.map.n_features_in_} to {adapter.map.n_components_} dimensions"
    return f"{shown(adapter.name)} of {shown(adapter.table)}, {sizes}, by nearkin {__version__}."


def _rows(adapter: SavedAdapter, names: Names) -> str:
    """Return a statement for each row of the map, whose numbers are read as the float32 that they
    are.
    """
    bias, weights = (
        adapter.map.bias_.astype(str),
        np.ascontiguousarray(adapter.map.components_).astype(str),
    )
    return "\n".join(
        f"INSERT INTO {names.rows} VALUES ({number}, {b}, '[{','.join(row)}]');"
        for number, (b, row) in enumerate(zip(bias, weights, strict=True), 1)
    )


SUFFIXES = {"npz": [".npz"], "onnx": [".onnx"], "faiss": [".faiss", ".index"], "sql": [".sql"]}
OF_DOCUMENTS = ("faiss", "sql")  # an index that maps whatever it is given
NEEDED = {"onnx": "export", "faiss": "ann"}  # a package, and the extra that has it


def export(options: argparse.Namespace) -> int:
    """Write the map of an adapter for another program."""
    target, given = options.to, Path(options.adapter)
    names = _names(options)
    path = (
        Path(options.output)
        if target == "torch"
        else check_writable(options.output, SUFFIXES[target], "-o")
    )
    adapter = load_adapter(given)
    _check_target(adapter, given, target)
    outputs = Outputs(quiet=options.quiet)
    sizes = f"{adapter.map.n_features_in_} to {adapter.map.n_components_} dimensions"
    said = f"{adapter.name}, {sizes}, for {target}: {path}"
    outputs.note(*(f"  {note}" for note in _notes(adapter, target)))
    if target == "torch":
        with atomic_folder(path) as folder:
            _write_dense(adapter, folder)
        outputs.note(said)
        return 0
    write: dict[str, Callable[..., Any]]
    write = {
        "npz": _write_npz,
        "onnx": _write_onnx,
        "faiss": _write_faiss,
        "sql": partial(_write_sql, names=names),
    }
    outputs.write(path, "-o", partial(write[target], adapter), said)
    return outputs.code


def _names(options: argparse.Namespace) -> Names | None:
    """Return the names for a script in SQL; raise an error where they are missing, or given without
    one.
    """
    given = {"--table": options.sql_table, "--column": options.column, "--into": options.into}
    if options.to == "sql":
        if options.sql_table is None:
            raise TableError(
                "--to sql writes a script for a table of PostgreSQL: name that by --table."
            )
        return Names.of(options.sql_table, options.column or "embedding", options.into)
    surplus = [option for option, value in given.items() if value is not None]
    if surplus:
        raise TableError(f"{surplus[0]} is for --to sql: leave it out with --to {options.to}.")
    return None


def _check_target(adapter: SavedAdapter, path: Path, target: str) -> None:
    """Refuse what a target cannot do, or needs, with the remedy."""
    if adapter.map.side == "query" and target in OF_DOCUMENTS:
        raise TableError(
            f"{path} adapts queries alone, {target} would map documents, too: leave the index of "
            "documents as it is, export to npz, onnx or torch, and adapt each query before the "
            "search."
        )
    if adapter.map.quantize == "binary" and target == "faiss":
        raise TableError(
            f"{path} makes binary codes, which faiss does not make of vectors: add the codes that "
            f"`nearkin transform` writes to a faiss.IndexBinaryFlat({8 * adapter.bytes}), and "
            "search it with codes."
        )
    if target in NEEDED and find_spec(target) is None:
        raise ImportError(f'--to {target} needs {target}: pip install "nearkin[{NEEDED[target]}]".')


def _notes(adapter: SavedAdapter, target: str) -> list[str]:
    """Return what to know of an exported adapter."""
    notes = []
    if adapter.map.side == "query":
        notes.append("adapt queries alone: documents stay as they are")
    if target == "torch":
        notes.append("put it between two modules Normalize: it is linear")
    codes = {
        "int8": f"np.clip(np.rint(z * ({LARGEST} / {adapter.scale:.9g})), -{LARGEST}, "
        f"{LARGEST}).astype(np.int8)",
        "binary": "np.packbits(z > 0, axis=1)",
    }.get(adapter.map.quantize or "")
    if codes and target in ("npz", "torch"):
        notes.append(f"it gives vectors z in float32; their codes: {codes}")
    if codes and target == "faiss":
        notes.append("a byte a dimension for what is added; queries stay float32")
    if target == "sql" and column_type(adapter) == "halfvec":
        why = (
            "pgvector has no int8"
            if codes
            else "pgvector indexes longer float32 vectors as float16"
        )
        notes.append(f"{why}: a column of halfvec, two bytes a dimension")
    return notes


def _write_npz(adapter: SavedAdapter, path: Path) -> None:
    arrays: dict[str, Any] = {"components": adapter.map.components_, "bias": adapter.map.bias_}
    arrays["feature_names"] = np.array(adapter.columns)
    if adapter.map.quantize == "int8":
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
    """Write a module Dense of sentence-transformers into a folder; a key that is absent has its
    default.
    """
    from safetensors.numpy import save

    config = {
        "in_features": adapter.map.n_features_in_,
        "out_features": adapter.map.n_components_,
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=4), encoding="utf-8")
    arrays = {"linear.weight": adapter.map.components_, "linear.bias": adapter.map.bias_}
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    (folder / "model.safetensors").write_bytes(save(arrays, {"format": "pt"}))


def _faiss_index(adapter: SavedAdapter) -> Any:
    """Return an empty index of inner products that maps what is added or searched for."""
    faiss, m, p = import_faiss(), adapter.map.n_components_, adapter.map.n_features_in_
    linear = faiss.LinearTransform(p, m, True)
    faiss.copy_array_to_vector(adapter.map.components_.ravel(), linear.A)
    faiss.copy_array_to_vector(adapter.map.bias_, linear.b)
    linear.is_trained = True
    index = faiss.IndexPreTransform(
        _int8_codes(adapter) if adapter.map.quantize else faiss.IndexFlatIP(m)
    )
    for step in (faiss.NormalizationTransform(m), linear, faiss.NormalizationTransform(p)):
        index.prepend_transform(step)
    return index


def _int8_codes(adapter: SavedAdapter) -> Any:
    """Return an index that rounds coordinates to the adapter's codes; nothing has to be learned
    from rows for it.

    faiss cuts u = 255 (z - a) / d, from a on, to a whole number, and takes it for a + (u + 1/2) d /
    255. With a step of d / 255 = scale / 127 and a half a step below the code -127, u is the code +
    127. The one level that is left, 128, takes what is larger, and is clipped to 127 elsewhere.
    """
    faiss, step = import_faiss(), adapter.scale / LARGEST
    codes = faiss.IndexScalarQuantizer(
        adapter.map.n_components_, faiss.ScalarQuantizer.QT_8bit_uniform, faiss.METRIC_INNER_PRODUCT
    )
    start, width = -(LARGEST + 0.5) * step, (2 * LARGEST + 1) * step
    faiss.copy_array_to_vector(np.array([start, width], np.float32), codes.sq.trained)
    codes.is_trained = True
    return codes
