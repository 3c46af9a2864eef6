"""The ways to make vectors that are compared: as they are, truncated, by PCA, adapted, and as codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from .._blocks import unit_rows
from ..estimators import EmbeddingAdapter
from .judgements import Judgements, Split
from .retrieval import Vectors

RAW = "raw"


@dataclass(frozen=True)
class Way:
    """How vectors are made, or coded.

    Attributes
    ----------
    name : str
        Such as "adapter 64 int8".
    size : int
        Dimensions.
    bytes : int
        Of a document's vector; where the candidates are ranked again, those of both.
    quantize : str or None
    rescored : bool
        Whether the candidates that the codes find are ranked again by vectors in int8.
    side : str
        What is adapted: "both", or "query".
    """

    name: str
    size: int
    bytes: int
    quantize: str | None = None
    rescored: bool = False
    side: str = "both"

    @property
    def is_adapted(self) -> bool:
        """Return whether the vectors are learned from labels or judgements."""
        return "adapter" in self.name


def ways_of(p: int, sizes: Sequence[int], side: str) -> list[Way]:
    """Return the ways to compare p-dimensional vectors, the raw ones first."""
    raw = Way(RAW, p, 4 * p)
    if side == "query":
        return [raw, Way(f"query adapter {p}", p, 4 * p, side=side)]
    shorter = [size for size in sorted(sizes) if size < p]
    ways = [raw, *(Way(f"{kind} {m}", m, 4 * m) for kind in ("truncated", "PCA") for m in shorter)]
    ways += [Way(f"adapter {m}", m, 4 * m) for m in [*shorter, p]]
    ways += [Way(f"adapter {m} int8", m, m, "int8") for m in shorter]
    if shorter:
        m = shorter[-1]
        ways += [Way(f"adapter {m} binary", m, -(-m // 8), "binary")]
        ways += [Way(f"adapter {m} binary, rescored", m, -(-m // 8) + m, "binary", rescored=True)]
    return ways


def vectors_of(way: Way, split: Split, judgements: Judgements, adapter: Any) -> Vectors:
    """Return the held-out queries and candidates of a split as a way makes them, learned from the training rows."""
    queries, documents = judgements.vectors()
    Q, C = unit_rows(queries[split.queries]), unit_rows(documents[split.candidates])
    learned_from = split.train.vectors()[1]
    if not way.is_adapted:
        if way.name == RAW:
            return Vectors(Q, C)
        if way.name.startswith("truncated"):
            return Vectors(Q[:, : way.size], C[:, : way.size])
        pca = PCA(way.size, svd_solver="covariance_eigh").fit(unit_rows(learned_from))
        return Vectors(pca.transform(Q), pca.transform(C))
    mapped = Vectors(adapter.embed(Q), C if way.side == "query" else adapter.embed(C))
    if way.quantize is None:
        return mapped
    coded = _decoded(adapter.quantized(way.quantize, learned_from), Q, C)
    if way.rescored:
        again = _decoded(adapter.quantized("int8", learned_from), Q, C)
        return Vectors(mapped.queries, again[1], codes=coded)
    return Vectors(*coded)


def _decoded(adapter: EmbeddingAdapter, *rows: np.ndarray) -> Any:
    """Return what the codes of rows stand for."""
    assert adapter.quantizer_ is not None
    return tuple(adapter.quantizer_.decode(adapter.transform(X)) for X in rows)


def place_in_sequence(way: Way) -> tuple[Any, ...]:
    """Return where a way stands in the sequence: bits alone come last, long vectors before short ones."""
    return way.quantize == "binary" and not way.rescored, -way.size, way.rescored, way.quantize == "int8"
