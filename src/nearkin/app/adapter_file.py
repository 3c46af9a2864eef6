"""What `nearkin adapt --save` keeps: the map of an adapter as arrays and a header, in a safetensors
file.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..vectors import EmbeddingAdapter
from .model import ModelFileError, pack, read_header, read_parts, whole_file

FORMAT = 1
KINDS = (None, "int8", "binary")


@dataclass(frozen=True)
class Header:
    """What is known of an adapter beside its map.

    Attributes
    ----------
    name : str
        Of the way that was chosen, such as "adapter 64 int8".
    column : str
        Name of the column of vectors that it was learned from; "" where every number had a column
        of its own.
    columns : list of str
        Names of the numbers of a vector, such as "embedding[0]".
    side : str
        "both", or "query" where documents stay as they are.
    quantize : str or None
        "int8" or "binary", or None for float32.
    score, part : str
        What decided: the name of the score, and of the part of the held-out queries.
    held_out : dict of str to float
        That score of the "adapter" and of the "raw" vectors; the 95 % interval of their difference,
        "low" and "high"; its "p_value", and the "n_queries".
    table : str
        Name of the file.
    version : str
        Of nearkin.
    """

    name: str
    column: str
    columns: list[str]
    side: str
    quantize: str | None
    score: str
    part: str
    held_out: dict[str, float]
    table: str
    version: str = __version__


@dataclass(frozen=True, eq=False)
class SavedAdapter:
    """A fitted adapter, in float32, and what is known of it.

    Attributes
    ----------
    header : Header
    map : EmbeddingAdapter
    """

    header: Header
    map: EmbeddingAdapter

    @property
    def scale(self) -> float:
        """Return the coordinate that becomes 127 in int8; 1 without such codes."""
        return getattr(self.map.quantizer_, "scale", 1.0)

    @property
    def bytes(self) -> int:
        """Return the bytes of a vector."""
        m, quantizer = self.map.n_components_, self.map.quantizer_
        return 4 * m if quantizer is None else quantizer.n_bytes(m)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return mapped rows in float32, or their codes."""
        return self.map.transform(X.astype(np.float32, copy=False))


def save_adapter(adapter: SavedAdapter, path: Path) -> None:
    """Write an adapter as a safetensors file."""
    header = {"format": FORMAT, "adapter": asdict(adapter.header)}
    arrays = adapter.map.to_arrays()
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    path.write_bytes(pack(json.dumps(header), contiguous))
    load_adapter(path)  # nothing is kept that could not be read again


def load_adapter(path: Path) -> SavedAdapter:
    """Return the adapter in a file; raise a ModelFileError where there is none, or one that is
    damaged or newer.
    """
    with whole_file(path, "adapt"):
        header, arrays, intact = read_parts(Path(path))
        if "adapter" not in header:
            raise ModelFileError(
                "is a model of a table, no adapter of vectors: make one with `nearkin adapt "
                "--save`."
            )
        if header["format"] != FORMAT:
            raise ModelFileError(
                f"was written by another nearkin (format {header['format']!s:.20}): install that."
            )
        if not intact:
            raise ValueError("its checksum")
        known = Header(**header["adapter"])
        _check(known, arrays)
        adapter = EmbeddingAdapter.from_arrays(arrays, side=known.side, quantize=known.quantize)
        return SavedAdapter(known, adapter)


def is_adapter(path: Path) -> bool:
    """Say whether a file holds an adapter; what else is wrong with it, loading says."""
    try:
        return path.is_file() and "adapter" in read_header(path)
    except Exception:
        return False


def _check(header: Header, arrays: dict[str, np.ndarray]) -> None:
    """Raise an error unless header and arrays fit together."""
    A, b, scale = arrays["components"], arrays["bias"], arrays["scale"].item()
    words = (header.name, header.column, header.table, header.version)
    fits: dict[str, Any] = {
        "components": A.ndim == 2 and A.dtype == np.float32 and np.isfinite(A).all(),
        "bias": b.shape == (len(A),) and b.dtype == np.float32 and np.isfinite(b).all(),
        "scale": 0 < scale < np.inf,
        "columns": len(header.columns) == A.shape[1]
        and all(type(name) is str for name in header.columns),
        "side": header.side in ("both", "query"),
        "codes": header.quantize in KINDS,
        "words": all(type(word) is str for word in words),
        "figures": all(type(value) is float for value in header.held_out.values()),
    }
    for name, holds in fits.items():
        if not holds:
            raise ValueError(f"its {name}")
