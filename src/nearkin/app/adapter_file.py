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
from .._blocks import affine_unit_rows
from ..vectors import EmbeddingAdapter
from ..vectors.codes import BinaryQuantizer, Int8Quantizer, Quantizer
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
    """An affine map of vectors of unit length to vectors of unit length, and their codes.

    Attributes
    ----------
    header : Header
    components : float32 array of shape (m, p)
    bias : float32 array of shape (m,)
    scale : float
        The coordinate that becomes 127 in int8; 1 without codes.
    """

    header: Header
    components: np.ndarray
    bias: np.ndarray
    scale: float = 1.0

    @classmethod
    def of(cls, adapter: EmbeddingAdapter, header: Header) -> SavedAdapter:
        """Return a fitted adapter, to be saved."""
        arrays = (adapter.components_.astype(np.float32), adapter.bias_.astype(np.float32))
        scale = adapter.quantizer_.scale if isinstance(adapter.quantizer_, Int8Quantizer) else 1.0
        return cls(header, *arrays, scale)

    @property
    def n_components(self) -> int:
        """Return m."""
        return len(self.components)

    @property
    def n_features(self) -> int:
        """Return p."""
        return self.components.shape[1]

    @property
    def quantizer(self) -> Quantizer | None:
        """Return what makes codes of mapped rows."""
        if self.header.quantize == "int8":
            return Int8Quantizer(self.scale)
        return BinaryQuantizer(self.n_components) if self.header.quantize == "binary" else None

    @property
    def bytes(self) -> int:
        """Return the bytes of a vector."""
        return {"int8": self.n_components, "binary": -(-self.n_components // 8)}.get(
            self.header.quantize or "", 4 * self.n_components
        )

    def embed(self, X: np.ndarray) -> np.ndarray:
        """Return mapped rows of unit length, float32 of shape (n, m)."""
        return affine_unit_rows(X.astype(np.float32, copy=False), self.components, self.bias)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return mapped rows, or their codes."""
        Z, quantizer = self.embed(X), self.quantizer
        return Z if quantizer is None else quantizer.encode(Z)


def save_adapter(adapter: SavedAdapter, path: Path) -> None:
    """Write an adapter as a safetensors file."""
    header = {"format": FORMAT, "adapter": asdict(adapter.header)}
    arrays = {
        "components": adapter.components,
        "bias": adapter.bias,
        "scale": np.array([adapter.scale], np.float32),
    }
    path.write_bytes(
        pack(
            json.dumps(header),
            {name: np.ascontiguousarray(array) for name, array in arrays.items()},
        )
    )


def load_adapter(path: Path) -> SavedAdapter:
    """Return the adapter in a file; raise a ModelFileError where there is none, or one that is
    damaged or newer.
    """
    with whole_file(path, "adapt"):
        header, arrays, intact = read_parts(Path(path))
        if "adapter" not in header:
            raise ModelFileError(
                "is a model of a table, no adapter of vectors: make one with `nearkin "
                "adapt --save`."
            )
        if header["format"] != FORMAT:
            raise ModelFileError(
                f"was written by another nearkin (format {header['format']!s:.20}): install that."
            )
        if not intact:
            raise ValueError("its checksum")
        adapter = SavedAdapter(
            Header(**header["adapter"]),
            arrays["components"],
            arrays["bias"],
            float(arrays["scale"].item()),
        )
        _check(adapter)
        return adapter


def is_adapter(path: Path) -> bool:
    """Say whether a file holds an adapter; what else is wrong with it, loading says."""
    try:
        return path.is_file() and "adapter" in read_header(path)
    except Exception:
        return False


def _check(adapter: SavedAdapter) -> None:
    """Raise an error unless header and arrays fit together."""
    A, b, header = adapter.components, adapter.bias, adapter.header
    fits: dict[str, Any] = {
        "components": A.ndim == 2 and A.dtype == np.float32 and np.isfinite(A).all(),
        "bias": b.shape == (len(A),) and b.dtype == np.float32 and np.isfinite(b).all(),
        "scale": 0 < adapter.scale < np.inf,
        "columns": len(header.columns) == A.shape[1]
        and all(type(name) is str for name in header.columns),
        "side": header.side in ("both", "query"),
        "codes": header.quantize in KINDS,
        "words": all(
            type(word) is str for word in (header.name, header.column, header.table, header.version)
        ),
        "figures": all(type(value) is float for value in header.held_out.values()),
    }
    for name, holds in fits.items():
        if not holds:
            raise ValueError(f"its {name}")
