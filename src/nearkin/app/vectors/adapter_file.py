"""The file of `nearkin adapt --save`: the map of an adapter, with its metadata."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ... import __version__
from ...vectors import EmbeddingAdapter, Matcher, MatchRules
from ..endings import TableError
from ..saved_fields import RULES, Sizes, adapter_fields
from ..saved_file import FORMATS, saved_parts, write_parts

PRECISIONS = (0.9, 0.95, 0.99)  # for which thresholds are saved
VECTORS = "embedding"  # the output column, if the numbers had columns of their own


@dataclass(frozen=True, eq=False)
class SavedAdapter:
    """A fitted adapter in float32, with its metadata.

    Attributes
    ----------
    map : EmbeddingAdapter
        Its `side` is "document" for a migration that only maps documents, to be searched by the new
        model's queries. It may `quantize` to "int8" or "binary" codes.
    name : str
        Name of the chosen way, such as "adapter 64 int8".
    column : str
        Name of the column of vectors it was learned from; "" if every number had its own column.
    columns : list of str
        Names of the numbers of a vector, such as "embedding[0]".
    score, part : str
        The deciding score, and the deciding part of the held-out queries.
    held_out : dict of str to float
        This score of the "adapter" and of the "raw" vectors; the 95 % interval of their difference,
        "low" and "high"; its "p_value"; and "n_queries".
    table : str
        Name of the file.
    version : str
        Of nearkin.
    pair_rules, list_rules : MatchRules or None
        Rules for matches, see `Matcher`, for known and for new classes.
    unanswerable : float
        Share of queries without an answer that the rules expect.
    expect : {"both", "known", "new"}
        The classes that are expected, unless `match` is told otherwise.
    baseline : str
        What the "raw" score belongs to: "raw" vectors, or the reference of a migration.
    """

    map: EmbeddingAdapter
    name: str
    column: str
    columns: list[str]
    score: str
    part: str
    held_out: dict[str, float]
    table: str
    version: str = __version__
    pair_rules: MatchRules | None = None
    list_rules: MatchRules | None = None
    unanswerable: float = 0.0
    expect: str = "both"
    baseline: str = "raw"

    @property
    def scale(self) -> float:
        """Return the coordinate that becomes 127 in int8, or 1 without such codes."""
        return getattr(self.map.quantizer_, "scale", 1.0)

    @property
    def bytes(self) -> int:
        """Return the size of a vector in bytes."""
        m, quantizer = self.map.n_components_, self.map.quantizer_
        return 4 * m if quantizer is None else quantizer.n_bytes(m)

    def thresholds(self) -> dict[float, float]:
        """Return the lowest cosine of a match for `PRECISIONS`, for the expected classes.

        Only guaranteed precisions are included.
        """
        found = {}
        for precision in PRECISIONS:
            with suppress(ValueError):
                if self.pair_rules is not None:
                    found[precision] = self.pair_rules.expecting(self.expect).threshold(precision)
        return found

    def matcher(self, path: str, expect: str) -> Matcher:
        """Return the matcher for some classes; raise an error if the file has no rules for it."""
        if self.pair_rules is None or self.list_rules is None:
            raise TableError(
                f"{path} has no thresholds for matches, like all maps of migrate and old adapters: "
                "learn an adapter with `nearkin adapt --save`."
            )
        rules = (every.expecting(expect) for every in (self.pair_rules, self.list_rules))
        return Matcher.from_rules(self.map, *rules)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return mapped rows in float32, or their codes."""
        return self.map.transform(X.astype(np.float32, copy=False))

    def as_columns(self, Z: np.ndarray, suffix: str) -> dict[str, Any]:
        """Return mapped rows as the columns of a file.

        These are one column of lists in Parquet, as vector databases read them; one column per
        number, or byte of a code, in CSV; and one array in an NPZ file.
        """
        name = self.column or VECTORS
        if suffix == ".npz":
            return {"X": Z}
        if suffix == ".csv":
            return {f"{name}[{place}]": column for place, column in enumerate(Z.T)}
        numbers = pa.array(np.ascontiguousarray(Z).ravel())
        return {name: pa.FixedSizeListArray.from_arrays(numbers, Z.shape[1])}


def save_adapter(adapter: SavedAdapter, path: Path) -> None:
    """Write an adapter as a safetensors file."""
    header = vars(adapter) | {"side": adapter.map.side, "quantize": adapter.map.quantize}
    del header["map"]
    arrays = adapter.map.to_arrays()
    for kind in RULES:
        if rules := header.pop(kind):
            arrays |= {f"{kind}/{name}": array for name, array in rules.to_arrays().items()}
    write_parts(path, {"format": FORMATS["adapt"][-1], "adapter": header}, arrays)
    load_adapter(path)  # reading it back verifies the file


def load_adapter(path: str | Path) -> SavedAdapter:
    """Return the adapter in a file.

    Raise a TableError that says what is wrong if the file holds none, is damaged, or was written by
    a newer nearkin.
    """
    with saved_parts(path, "adapt") as (header, arrays):
        if "adapter" not in header:
            raise TableError(
                f"{path} is a model of a table, not an adapter of vectors: make one with `nearkin "
                "adapt --save`."
            )
        checked = adapter_fields(arrays)(header | {"arrays": arrays}, "", Sizes())
        known, arrays = checked["adapter"], checked["arrays"]
        fitted = EmbeddingAdapter.from_arrays(
            arrays, side=known.pop("side"), quantize=known.pop("quantize")
        )
        known |= {kind: _rules(arrays, f"{kind}/") for kind in RULES}
        adapter = SavedAdapter(fitted, **known)
        adapter.transform(np.zeros((1, len(adapter.columns))))
        return adapter


def _rules(arrays: dict[str, np.ndarray], start: str) -> MatchRules | None:
    """Return the rules whose arrays have names with this prefix.

    A file lists its arrays in an order that differs from run to run; that of the parts does not.
    """
    found = {name[len(start) :]: arrays[name] for name in sorted(arrays) if name.startswith(start)}
    return MatchRules.from_arrays(found) if found else None


def is_adapter(path: str) -> bool:
    """Return whether a file holds an adapter; loading it reports other problems."""
    from safetensors import safe_open

    try:
        if not Path(path).is_file():
            return False
        with safe_open(path, framework="numpy") as file:
            return "adapter" in json.loads(file.metadata()["nearkin"])
    except Exception:
        return False
