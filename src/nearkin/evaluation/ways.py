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

RAW, CENTRED, TRUNCATED, PRINCIPAL, ADAPTER, QUERY = "raw", "centred", "truncated", "PCA", "adapter", "query adapter"


@dataclass(frozen=True)
class Way:
    """How vectors are made, or coded.

    Attributes
    ----------
    kind : str
        Such as "PCA" or "adapter".
    size : int
        Dimensions.
    bytes : int
        Of a document's vector; where the candidates are ranked again, those of both.
    quantize : str or None
    rescored : bool
        Whether the candidates that the codes find are ranked again by vectors in int8, which a database does: such a
        way is no single file of vectors.
    """

    kind: str
    size: int
    bytes: int
    quantize: str | None = None
    rescored: bool = False

    @property
    def name(self) -> str:
        """Return what it is called, such as "adapter 64 int8"."""
        words = [self.kind, "" if self.kind == RAW else str(self.size), self.quantize or ""]
        return " ".join(word for word in words if word) + ", rescored" * self.rescored

    @property
    def is_adapted(self) -> bool:
        """Return whether the vectors are learned from labels or judgements."""
        return self.kind in (ADAPTER, QUERY)


def ways_of(p: int, sizes: Sequence[int], side: str) -> list[Way]:
    """Return the ways to compare p-dimensional vectors, the raw ones first."""
    raw = [Way(RAW, p, 4 * p)]
    if side == "query":
        return [*raw, Way(QUERY, p, 4 * p)]
    shorter = [size for size in sorted(sizes) if size < p]
    ways = [*raw, Way(CENTRED, p, 4 * p), *(Way(kind, m, 4 * m) for kind in (TRUNCATED, PRINCIPAL) for m in shorter)]
    ways += [Way(ADAPTER, m, 4 * m) for m in [*shorter, p]]
    ways += [Way(ADAPTER, m, m, "int8") for m in shorter]
    if shorter:
        m = shorter[-1]
        n_bytes = -(-m // 8)
        ways += [Way(ADAPTER, m, n_bytes, "binary"), Way(ADAPTER, m, n_bytes + m, "binary", rescored=True)]
    return ways


def vectors_of(way: Way, split: Split, judgements: Judgements, adapter: Any) -> Vectors:
    """Return the held-out queries and candidates of a split as a way makes them, learned from the training rows."""
    queries, documents = judgements.vectors()
    Q, C = unit_rows(queries[split.queries]), unit_rows(documents[split.candidates])
    learned_from = split.train.vectors()[1]
    if way.kind == RAW:
        return Vectors(Q, C)
    if way.kind == TRUNCATED:
        return Vectors(Q[:, : way.size], C[:, : way.size])
    if way.kind == CENTRED:
        mean = unit_rows(learned_from).mean(axis=0)
        return Vectors(Q - mean, C - mean)
    if way.kind == PRINCIPAL:
        pca = PCA(way.size, svd_solver="covariance_eigh").fit(unit_rows(learned_from))
        return Vectors(pca.transform(Q), pca.transform(C))
    mapped = Vectors(adapter.embed(Q), C if way.kind == QUERY else adapter.embed(C))
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
