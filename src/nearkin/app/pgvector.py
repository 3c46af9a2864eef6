"""The map of an adapter as a script for PostgreSQL with pgvector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import __version__
from .adapter_file import SavedAdapter
from .refusals import TableError, shown

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
        """Return the names for a table, with its schema or without; raise an error where one cannot be a name."""
        *schema, name = table.split(".")
        if len(schema) > 1:
            raise TableError(f"--table {shown(table)} has too many dots: give TABLE or SCHEMA.TABLE.")
        into = f"{column}_adapted" if into is None else into
        if into == column:
            raise TableError(f"--into {shown(into)} is the column of the vectors: name a new one.")
        for option, part in [*(("--table", part) for part in (*schema, name)), ("--column", column), ("--into", into)]:
            _check_name(part, option)
        own = [f"{name}_{into}_{end}" for end in ("rows", "of", "hnsw")]
        if any(len(one.encode()) > MOST_BYTES for one in own):
            raise TableError(
                f"--into {shown(into)}: {shown(own[0])} is longer than the {MOST_BYTES} bytes of a name: choose a "
                "shorter one."
            )
        rows, function, index = own
        within = [f"{_quoted(part)}." for part in schema]
        place = "".join(within)
        return cls(
            place + _quoted(name), _quoted(column), _quoted(into), place + _quoted(rows), place + _quoted(function),
            _quoted(index),
        )  # fmt: skip


def _check_name(name: str, option: str) -> None:
    if not name or not name.isprintable() or len(name.encode()) > MOST_BYTES:
        raise TableError(
            f"{option} {shown(name)} is no name of PostgreSQL: give 1 to {MOST_BYTES} bytes that can be printed."
        )


def _quoted(name: str) -> str:
    """Return a name between quotation marks, which are doubled inside: it means what it says, capitals included."""
    return '"' + name.replace('"', '""') + '"'


def script(adapter: SavedAdapter, names: Names) -> str:
    """Return statements that adapt the vectors of a table, and index them."""
    kind = column_type(adapter)
    m, p = adapter.n_components, adapter.n_features
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
CREATE TABLE {names.rows} (component integer PRIMARY KEY, bias double precision NOT NULL, weights vector({p}) NOT NULL);
ALTER TABLE {names.rows} ALTER COLUMN weights SET STORAGE MAIN;  -- beside the numbers, where it is read fastest
{_rows(adapter, names)}
ANALYZE {names.rows};

-- Adapts one vector. <#> is minus the inner product.
CREATE FUNCTION {names.function}(x vector) RETURNS {kind} LANGUAGE sql STABLE STRICT PARALLEL SAFE RETURN (
  SELECT {value}
  FROM {names.rows}, (SELECT l2_normalize(x) AS x OFFSET 0) AS unit  -- OFFSET: once a vector, not once a row
);

ALTER TABLE {names.table} ADD COLUMN {names.into} {kind}({m});
UPDATE {names.table} SET {names.into} = {names.function}({names.column}::vector) WHERE {names.column} IS NOT NULL;
CREATE INDEX {names.index} ON {names.table} USING hnsw ({names.into} {CLASSES[kind]});
COMMIT;
ANALYZE {names.table};

-- The ten most similar rows; $1 is the vector of a query as the model gives it:
--   SELECT * FROM {names.table} ORDER BY {names.into} {OPERATORS[kind]} {names.function}($1) LIMIT 10;
-- A new row:
--   INSERT INTO {names.table} ({names.column}, {names.into}) VALUES ($1, {names.function}($1));
"""


def column_type(adapter: SavedAdapter) -> str:
    """Return the type of the new column; raise an error where pgvector has none for so many dimensions."""
    m, p = adapter.n_components, adapter.n_features
    kind = {"int8": "halfvec", "binary": "bit"}.get(adapter.header.quantize or "", "vector")
    kind = "halfvec" if kind == "vector" and m > MOST_OF_INDEX["vector"] else kind
    if max(m, p) > MOST_OF_VECTOR:
        raise TableError(
            f"a vector of pgvector has at most {MOST_OF_VECTOR:,} dimensions, and the adapter maps {p:,} to {m:,}: "
            "export to npz, onnx or torch, and adapt before the vectors are stored."
        )
    if m > MOST_OF_INDEX.get(kind, MOST_OF_VECTOR):
        raise TableError(
            f"an index of pgvector takes at most {MOST_OF_INDEX[kind]:,} dimensions, and the adapter gives {m:,}: "
            "learn a shorter one by `nearkin adapt --sizes`."
        )
    return kind


def _comment(adapter: SavedAdapter) -> str:
    header = adapter.header
    sizes = f"{adapter.n_features} to {adapter.n_components} dimensions"
    return f"{shown(header.name)} of {shown(header.table)}, {sizes}, by nearkin {__version__}."


def _rows(adapter: SavedAdapter, names: Names) -> str:
    """Return a statement for each row of the map, whose numbers are read as the float32 that they are."""
    bias, weights = adapter.bias.astype(str), np.ascontiguousarray(adapter.components).astype(str)
    return "\n".join(
        f"INSERT INTO {names.rows} VALUES ({number}, {b}, '[{','.join(row)}]');"
        for number, (b, row) in enumerate(zip(bias, weights, strict=True), 1)
    )
