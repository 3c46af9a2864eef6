"""`nearkin export`: the map of an adapter in the format of another program."""

from __future__ import annotations

import argparse
import json
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ..._messages import listed, shown
from ...vectors import LARGEST
from ..endings import TableError
from ..output import Outputs, check_writable
from .adapter_file import SavedAdapter, load_adapter

# The map of an adapter as an ONNX model.

# Opset 13 and IR version 7 are from 2020: runtimes read older versions, and nothing newer is
# needed. Rows of zeros stay zero; the LpNormalization of runtimes would give NaN. Signs become
# bytes as sums of powers of two, which are exact.
ONNX = """
<ir_version: 7, opset_import: ["": 13], producer_name: "nearkin", producer_version: "{version}">
adapter (float[n, {p}] embeddings) => ({kind}[n, {width}] vectors{outputs}) {{
    length = ReduceL2 <axes = [1], keepdims = 1> (embeddings)
    is_zero = Equal (length, zero)
    divisor = Where (is_zero, one, length)
    unit = Div (embeddings, divisor)

    mapped = Gemm <transB = 1> (unit, A, b)

    mapped_length = ReduceL2 <axes = [1], keepdims = 1> (mapped)
    mapped_is_zero = Equal (mapped_length, zero)
    mapped_divisor = Where (mapped_is_zero, one, mapped_length)
    z = Div (mapped, mapped_divisor)
    {codes}
    {thresholds}
}}
"""
# The type of the vectors, and how they are computed from z; 1, 2 and 3 are float32, uint8 and int8.
CODES = {
    None: ("float", "vectors = Identity (z)"),
    "int8": (
        "int8",
        """
    steps = Mul (z, steps_of_one)
    rounded = Round (steps)
    clipped = Clip (rounded, least, most)
    vectors = Cast <to = 3> (clipped)
""",
    ),
    "binary": (
        "uint8",
        """
    is_positive = Greater (z, zero)
    bits = Cast <to = 1> (is_positive)
    sums = MatMul (bits, places)
    vectors = Cast <to = 2> (sums)
""",
    ),
}


def onnx_bytes(adapter: SavedAdapter) -> bytes:
    """Return a checked model from "embeddings", float32 (n, p), to "vectors", float32 or codes.

    The result is that of `transform`. The constants "thresholds" are the lowest cosines of a match
    for each of the "precisions".
    """
    import onnx
    from onnx import helper, numpy_helper, parser

    A, b, quantize = adapter.map.components_, adapter.map.bias_, adapter.map.quantize
    width, p = A.shape
    kind, codes = CODES[quantize]
    constants: dict[str, Any] = {"zero": 0, "one": 1}
    if quantize == "int8":
        constants |= {"steps_of_one": LARGEST / adapter.scale, "least": -LARGEST, "most": LARGEST}
    if quantize == "binary":
        # zero coordinates, up to a multiple of eight; the first one is the highest bit
        width, more = adapter.bytes, -width % 8
        A, b = np.pad(A, ((0, more), (0, 0))), np.pad(b, (0, more))
        constants["places"] = np.kron(np.eye(width), 2.0 ** np.arange(7, -1, -1)[:, None])
    matches = threshold_arrays(adapter)
    constants |= {f"{name}_found": array for name, array in matches.items()}
    model = parser.parse_model(
        ONNX.format(
            version=__version__,
            p=p,
            kind=kind,
            width=width,
            codes=codes,
            outputs="".join(f", float[{len(array)}] {name}" for name, array in matches.items()),
            thresholds="\n".join(f"{name} = Identity ({name}_found)" for name in matches),
        )
    )
    for name, value in (constants | {"A": A, "b": b}).items():
        array = np.asarray(value, dtype=np.float32, order="C")
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    facts: dict[str, Any] = {
        "name": adapter.name,
        "side": adapter.map.side,
        "codes": quantize,
        "scale": adapter.scale,
    }
    if matches and adapter.pair_rules is not None:
        facts["matches"] = [*adapter.pair_rules.expecting(adapter.expect).parts]
    helper.set_model_props(model, {"nearkin": json.dumps(facts)})
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


# The map of an adapter as a script for PostgreSQL with pgvector.

MOST_BYTES = 63  # of a name in PostgreSQL, which truncates longer ones
MOST_OF_VECTOR = 16_000  # dimensions
MOST_OF_INDEX = {"vector": 2_000, "halfvec": 4_000}  # dimensions; more for bits than for a vector


def script(
    adapter: SavedAdapter, table: str, column: str = "embedding", into: str | None = None
) -> str:
    """Return statements that adapt the vectors of a table into a new column, and index them.

    The name of the table may include its schema. An empty name raises an error.
    """
    *schema, name = table.split(".")
    if len(schema) > 1:
        raise TableError(f"--table {shown(table)} has too many dots: give TABLE or SCHEMA.TABLE.")
    into = f"{column}_adapted" if into is None else into
    if into == column:
        raise TableError(f"--into {shown(into)} is the column of the vectors: name a new one.")
    place = "".join(f"{_quoted(part, '--table')}." for part in schema)
    vectors = place + _quoted(name, "--table")
    column, new_column = _quoted(column, "--column"), _quoted(into, "--into")
    rows = place + _quoted(f"{name}_{into}_rows", "--into")
    function = place + _quoted(f"{name}_{into}_of", "--into")
    index = _quoted(f"{name}_{into}_hnsw", "--into")
    kind, m, p = column_type(adapter), adapter.map.n_components_, adapter.map.n_features_in_
    distance, measure = ("<~>", "hamming") if kind == "bit" else ("<=>", "cosine")
    unit = f"l2_normalize((array_agg(bias - (weights <#> unit.x) ORDER BY component))::vector({m}))"
    value = {
        "vector": unit,
        "halfvec": f"{unit}::halfvec({m})",
        "bit": f"binary_quantize({unit})::bit({m})",
    }[kind]
    of_query = f"{function}($1)"
    new_row = f"({column}, {new_column}) VALUES ($1, {function}($1))"
    if adapter.map.side == "document":  # queries and new rows are of the new model
        of_query, new_row = "$1", f"({new_column}) VALUES ($1)"
    to_query = f"{new_column} {distance} {of_query}"
    # their text is read back as the same float32
    bias, weights = adapter.map.bias_.astype(str), adapter.map.components_.astype(str)
    inserts = "\n".join(
        f"INSERT INTO {rows} VALUES ({number}, {b}, '[{','.join(row)}]');"
        for number, (b, row) in enumerate(zip(bias, weights, strict=True), 1)
    )
    return f"""\
-- {shown(adapter.name)} of {shown(adapter.table)}, {_sizes(adapter)}, by nearkin {__version__}.
-- Needs PostgreSQL 14 and pgvector 0.7, or newer. Either all of it is done, or nothing. It may be
-- run again, also for another adapter of the same sizes.
BEGIN;
CREATE EXTENSION IF NOT EXISTS vector;

-- The map: one row for each dimension of an adapted vector.
CREATE TABLE IF NOT EXISTS {rows} (\
component integer PRIMARY KEY, bias double precision NOT NULL, weights vector({p}) NOT NULL);
ALTER TABLE {rows} ALTER COLUMN weights SET STORAGE MAIN;\
  -- beside the numbers, where it is read fastest
DELETE FROM {rows};
{inserts}
ANALYZE {rows};

-- Adapts one vector. <#> is minus the inner product.
CREATE OR REPLACE FUNCTION {function}(x vector) RETURNS {kind} \
LANGUAGE sql STABLE STRICT PARALLEL SAFE RETURN (
  SELECT {value}
  FROM {rows}, (SELECT l2_normalize(x) AS x OFFSET 0) AS unit\
  -- OFFSET: once a vector, not once a row
);

ALTER TABLE {vectors} ADD COLUMN IF NOT EXISTS {new_column} {kind}({m});
UPDATE {vectors} SET {new_column} = {function}({column}::vector) \
WHERE {column} IS NOT NULL;
CREATE INDEX IF NOT EXISTS {index} ON {vectors} USING hnsw ({new_column} {kind}_{measure}_ops);
COMMIT;
ANALYZE {vectors};

-- The ten most similar rows; $1 is the vector of a query as the model gives it:
--   SELECT * FROM {vectors} \
ORDER BY {to_query} LIMIT 10;
{_best_match(adapter, vectors, to_query)}\
-- A new row:
--   INSERT INTO {vectors} {new_row};
"""


def _best_match(adapter: SavedAdapter, vectors: str, distance: str) -> str:
    """Return comments with the query for the best match within a distance.

    Return "" if no precision is guaranteed.
    """
    m = adapter.map.n_components_
    limits = {
        # h of m bits differ: the cosine is 1 - 2 h / m
        precision: f"{int(m * (1 - t) / 2 + 1e-9)}"
        if adapter.map.quantize == "binary"
        else f"{1 - t:.6f}"
        for precision, t in adapter.thresholds().items()
    }
    if not limits:
        return ""
    most = list(limits)[min(1, len(limits) - 1)]
    shares = listed([f"{100 * share:.0f} % up to {limit}" for share, limit in limits.items()])
    return f"""\
-- The best match, or no row. At least these shares are right, with 95 % confidence by held-out
-- queries, by the distance: {shares}.
--   SELECT * FROM {vectors} WHERE ({distance}) <= {limits[most]} \
ORDER BY {distance} LIMIT 1;
"""


def column_type(adapter: SavedAdapter) -> str:
    """Return the type of the new column; raise an error if pgvector has none of this size."""
    m, p = adapter.map.n_components_, adapter.map.n_features_in_
    kind = {"int8": "halfvec", "binary": "bit"}.get(adapter.map.quantize or "", "vector")
    kind = "halfvec" if kind == "vector" and m > MOST_OF_INDEX["vector"] else kind
    if max(m, p) > MOST_OF_VECTOR:
        raise TableError(
            f"a vector of pgvector has at most {MOST_OF_VECTOR:,} dimensions, but the adapter maps "
            f"{p:,} to {m:,}: export to npz or onnx, and adapt vectors before storing them."
        )
    if m > MOST_OF_INDEX.get(kind, MOST_OF_VECTOR):
        raise TableError(
            f"an index of pgvector takes at most {MOST_OF_INDEX[kind]:,} dimensions, but the "
            f"adapter gives {m:,}: learn a shorter one with `nearkin adapt --sizes`."
        )
    return kind


def _quoted(name: str, option: str) -> str:
    """Return a name in quotation marks, with inner ones doubled, which preserves capitals."""
    if not name.isprintable() or not 0 < len(name.encode()) <= MOST_BYTES:
        raise TableError(
            f"{option}: {shown(name)} is not a name in PostgreSQL: give 1 to {MOST_BYTES} "
            "printable bytes."
        )
    return '"' + name.replace('"', '""') + '"'


# The map of an adapter for other programs.


def threshold_arrays(adapter: SavedAdapter) -> dict[str, np.ndarray]:
    """Return "precisions" and "thresholds", the lowest cosine of a match for each.

    The result is empty if no precision is guaranteed.
    """
    found = adapter.thresholds()
    numbers = np.array([*found.items()], dtype=np.float32).T
    return dict(zip(("precisions", "thresholds"), numbers, strict=True)) if found else {}


def npz_bytes(adapter: SavedAdapter) -> bytes:
    """Return an archive of arrays."""
    arrays: dict[str, Any] = {"components": adapter.map.components_, "bias": adapter.map.bias_}
    arrays["feature_names"] = np.array(adapter.columns)
    if adapter.map.quantize == "int8":
        arrays["scale"] = np.float32(adapter.scale)
    arrays |= threshold_arrays(adapter)
    file = BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


# The command.


def export(options: argparse.Namespace) -> int:
    """Write the map of an adapter for another program."""
    target, path, table = options.to, options.output, options.sql_table
    for_sql = {"--table": table, "--column": options.column, "--into": options.into}
    surplus = [option for option, value in for_sql.items() if value is not None]
    if target != "sql" and surplus:
        raise TableError(f"{surplus[0]} is for --to sql: leave it out with --to {target}.")
    if target == "sql" and table is None:
        raise TableError(
            "--to sql writes a script for a table of PostgreSQL: name the table with --table."
        )
    check_writable(path, [f".{target}"], "-o")
    adapter = load_adapter(options.adapter)
    if target == "sql" and adapter.map.side == "query":
        raise TableError(
            f"{options.adapter} adapts only queries, but sql would also map documents: leave the "
            "index of documents as it is, export to npz or onnx, and adapt each query before the "
            "search."
        )
    if target == "onnx" and find_spec("onnx") is None:
        raise ImportError('--to onnx needs onnx: pip install "nearkin[export]".')
    outputs = Outputs(quiet=options.quiet)
    outputs.note(*(f"  {note}" for note in _notes(adapter, target)))
    if target == "sql":
        content = script(adapter, table, options.column or "embedding", options.into).encode()
    else:
        content = (onnx_bytes if target == "onnx" else npz_bytes)(adapter)

    def write(part: Path) -> None:
        part.write_bytes(content)

    done = f"{adapter.name}, {_sizes(adapter)}, for {target}: {path}"
    outputs.write(path, "-o", write, done)
    return outputs.code


def _sizes(adapter: SavedAdapter) -> str:
    return f"{adapter.map.n_features_in_} to {adapter.map.n_components_} dimensions"


def _notes(adapter: SavedAdapter, target: str) -> list[str]:
    """Return notes on an exported adapter."""
    notes = [
        f"{100 * precision:.0f} % of best matches with a cosine of at least {cosine:.4f} are right"
        for precision, cosine in adapter.thresholds().items()
    ]
    if adapter.map.side == "query":
        notes.append("adapt queries only: documents stay as they are")
    if adapter.map.side == "document":
        notes.append("map documents only: queries of the new model stay as they are")
    codes = {
        "int8": f"np.clip(np.rint(z * ({LARGEST} / {adapter.scale:.9g})), -{LARGEST}, "
        f"{LARGEST}).astype(np.int8)",
        "binary": "np.packbits(z > 0, axis=1)",
    }.get(adapter.map.quantize or "")
    if codes and target == "npz":
        notes.append(f"it gives vectors z in float32; their codes: {codes}")
    if target == "sql" and column_type(adapter) == "halfvec":
        why = (
            "pgvector has no int8"
            if codes
            else "pgvector indexes longer float32 vectors as float16"
        )
        notes.append(f"{why}, so the column is halfvec, with two bytes per dimension")
    return notes
