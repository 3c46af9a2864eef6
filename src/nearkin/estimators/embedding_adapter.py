"""Embeddings of a language or image model, made shorter and more accurate for search by cosines."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._blocks import unit_rows
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._parallel import blas_in_one_thread
from ..descent import Status
from ._adapter_descent import check_parameters, descend, nested_sizes, plda
from ._relevance import check_grades, check_numbers_of_rows, label_matrix, relevance_matrix
from ._supervision import Judged, Labelled, Paired, Supervision, Triples
from ._unit_embedding import UnitEmbedding
from .quantization import QUANTIZERS, BinaryQuantizer, Quantizer


class EmbeddingAdapter(CallbackSupportMixin, UnitEmbedding):
    """A linear map after which the cosine of two embeddings says whether they belong together.

    A row x is scaled to unit length, mapped to z = A (x/||x|| - mean), scaled again. Row i draws row j with probability

        p_ij = exp(cos(z_i, z_j) / T) / sum_{k != i} exp(cos(z_i, z_k) / T),

    and A minimizes, over minibatches of candidates, for weights w_ij of what is relevant to what,

        - 1/n sum_i log sum_j w_ij p_ij                 "nca": NCA's g (Goldberger et al. 2004, eq. 6) on cosines
        - 1/n sum_i sum_j w_ij log p_ij / sum_j w_ij    "contrastive" (Khosla et al. 2020, eq. 2)

    plus `alpha / sqrt(n) ||A - A_0||^2`, where ||A_0||^2 = m. The start A_0 is probabilistic LDA: with the within-class
    covariance S_w, W = S_w + tr(S_w) / p I, and B = S_t - S_w / 2, where a half of S_w stands for differences between
    classes that are not known,

        V'W V = I,  V'B V = diag(psi),   A_0 ~ diag(psi / (1 + 2 psi))^(1/2) V' :

    for Gaussian classes z_i . z_j is the bilinear part of the log likelihood ratio of "same class" against "different
    classes" (Ioffe 2006).

    Parameters
    ----------
    n_components : int or None, default=64
        m; all p features where these are fewer, or with None.
    loss : {"auto", "nca", "contrastive"}, default="auto"
        "nca" wants some of the relevant rows near, "contrastive" all. "auto" takes the former for labels, whose rows
        may form several groups, and the latter for pairs, triplets and documents.
    temperature : float, default=0.1
        T; of a smaller one only the most similar candidates count.
    side : {"both", "query"}, default="both"
        "query" maps queries alone and leaves the other rows as they are, so that an index of documents need not be
        made again: by a p x p map that starts as the identity and subtracts no mean; n_components does not count.
    nested : sequence of int, default=None
        Sizes m_1 < m_2 < ... < n_components: the mean of the losses over the leading m_1, m_2, ..., n_components
        dimensions is minimized, so that each is a good embedding by itself (Kusupati et al. 2022: Matryoshka).
    quantize : {"int8", "binary"}, default=None
        What `transform` returns: codes of the rows, see `Int8Quantizer` and `BinaryQuantizer`.
    alpha : float, default=0.25
        Weight of the penalty that keeps A near its start; n are rows with a label, pairs, triplets, or queries.
    max_iter : int, default=20
        Passes over these in batches of 512, of at least five steps each. The steps shorten to 0 meanwhile.
    random_state : int, RandomState instance or None, default=0
        Draws the batches of more than 512; the same data and the same seed give the same map.

    Attributes
    ----------
    components_ : array of shape (m, p)
        A, with A_0 of norm sqrt(m).
    bias_ : array of shape (m,)
        Minus A mean: Z is `x/||x|| components_.T + bias_`, scaled to unit length.
    n_components_ : int
    loss_ : str
        The loss that "auto" took.
    quantizer_ : Int8Quantizer, BinaryQuantizer or None
    n_iter_, loss_curve_
        Passes made; mean of loss and penalty over the batches of every pass, the first that of the first batch.

    See Also
    --------
    Procrustes, NCA

    Notes
    -----
    Only directions count, not the length of rows. What is learned from classes helps others less, and may harm: measure
    with held-out classes, as `nearkin adapt` does. Rows without a label help, in S_t: give those of an index as well.

    Cost: O(n p^2) once, then O(n p m + 512 n m) a pass; the rows in unit length, another copy of X, and p x p numbers.

    References
    ----------
    S. Ioffe. Probabilistic linear discriminant analysis. ECCV 2006.
    P. Khosla et al. Supervised contrastive learning. NeurIPS 2020.
    A. Kusupati et al. Matryoshka representation learning. NeurIPS 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import EmbeddingAdapter
    >>> X, y = load_digits(return_X_y=True)
    >>> adapter = EmbeddingAdapter(16).fit(X, y)
    >>> Z = adapter.transform(X)  # of unit length: Z @ Z.T are cosines
    >>> Z.shape
    (1797, 16)
    """

    quantizer_: Quantizer | None
    _objective_phrase = "{loss_} loss {last_loss:.4g} after {n_iter_} passes"

    def __init__(
        self,
        n_components: int | None = 64,
        *,
        loss: str = "auto",
        temperature: float = 0.1,
        side: str = "both",
        nested: Sequence[int] | None = None,
        quantize: str | None = None,
        alpha: float = 0.25,
        max_iter: int = 20,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.temperature = temperature
        self.side = side
        self.nested = nested
        self.quantize = quantize
        self.alpha = alpha
        self.max_iter = max_iter
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the map from labels: rows that share one belong together.

        Parameters
        ----------
        X : array of shape (n, p)
            Embeddings; sparse ones are made dense.
        y : array of shape (n,), or of shape (n, n_labels)
            A label for every row, -1, None or NaN for none; or 0 and 1 where rows have several labels or none, as by
            scikit-learn's `MultiLabelBinarizer`, dense or sparse. Rows of several are relevant to each other by the
            share that they have in common: `|both| / |either|`.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=check_parameters(self))
        X = self._unit_rows(X, fitting=True)
        Y = label_matrix(y)
        check_consistent_length(X, Y)
        has_label = np.diff(Y.indptr) > 0
        known = slice(None) if has_label.all() else np.flatnonzero(has_label)  # a slice copies nothing
        rows, mean, fixed = self._sides(X)
        kind = Labelled(rows[known], Y[known], fixed if fixed is None else fixed[known])
        return self._learn(kind, rows, mean, "nca", task)

    @with_callbacks
    def fit_pairs(self, X: Any, pairs: Any, y: Any = None) -> Self:
        """Learn the map from pairs of rows that belong together, and pairs that do not.

        Parameters
        ----------
        X : array of shape (n, p)
        pairs : int array of shape (n_pairs, 2)
            Numbers of two rows each, counted from 0. Either is a query, the other a candidate.
        y : array of shape (n_pairs,), default=None
            How much they belong together: 1 (the default), grades between, and 0 or -1 for not at all; the grades of a
            row's pairs count relative to each other. Rows of a batch that are no known pair count as unlike.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=check_parameters(self))
        X = self._unit_rows(X, fitting=True)
        pairs = check_numbers_of_rows(pairs, "pairs", 2, len(X))
        grades = check_grades(y, len(pairs))
        rows, mean, fixed = self._sides(X)
        return self._learn(Paired(rows, pairs, grades, fixed), rows, mean, "contrastive", task)

    @with_callbacks
    def fit_triplets(self, X: Any, triplets: Any) -> Self:
        """Learn the map from triplets: the first row is more like the second than like the third.

        Parameters
        ----------
        X : array of shape (n, p)
        triplets : int array of shape (n_triplets, 3)
            Numbers of rows, counted from 0. With side="query" the first is the query.

        Returns
        -------
        self
        """
        task = FitTask(self, X, None, n_iterations=check_parameters(self))
        X = self._unit_rows(X, fitting=True)
        triplets = check_numbers_of_rows(triplets, "triplets", 3, len(X))
        rows, mean, fixed = self._sides(X)
        return self._learn(Triples(rows, triplets, fixed), rows, mean, "contrastive", task)

    @with_callbacks
    def fit_relevance(self, queries: Any, documents: Any, relevance: Any) -> Self:
        """Learn the map from queries and the documents that are relevant to them.

        Parameters
        ----------
        queries : array of shape (n_queries, p)
        documents : array of shape (n_documents, p)
        relevance : array of shape (n_judgements, 2 or 3), or sparse matrix of shape (n_queries, n_documents)
            Number of the query, number of the document, both counted from 0, and how relevant it is (default: 1). What
            is not larger than 0, or not judged, is not relevant. Queries without a relevant document do not count.

        Returns
        -------
        self
        """
        task = FitTask(self, documents, None, n_iterations=check_parameters(self))
        documents, queries = self._unit_rows(documents, fitting=True), self._unit_rows(queries, fitting=False)
        R = relevance_matrix(relevance, (len(queries), n := len(documents)))
        judged = np.flatnonzero(np.diff(R.indptr))
        rows, mean, fixed = self._sides(np.concatenate([documents, queries.astype(documents.dtype)]))
        kind = Judged(rows[n:][judged], rows[:n], R[judged], fixed is not None)
        return self._learn(kind, rows, mean, "contrastive", task)

    def transform(self, X: Any) -> np.ndarray:
        """Map rows, and quantize them where that is requested.

        Parameters
        ----------
        X : array of shape (n, p)
            With side="query" these are queries; documents stay as they are.

        Returns
        -------
        array of shape (n, m), or (n, ceil(m / 8)) of uint8 for "binary"
            What `embed` returns, or codes of it.
        """
        Z = self.embed(X)
        return Z if self.quantizer_ is None else self.quantizer_.encode(Z)

    def quantized(self, quantize: str, X: Any) -> Self:
        """Return a copy of a fitted adapter whose codes are fitted to other rows; for "binary" it is rotated.

        Parameters
        ----------
        quantize : {"int8", "binary"}
        X : array of shape (n, p)
        """
        adapter = copy(self)
        adapter.quantize = str(quantize)
        check_parameters(adapter)
        adapter._quantize(self.embed(X), nested_sizes(self.nested, self.n_components_))
        return adapter

    def _quantize(self, Z: np.ndarray, sizes: Sequence[int]) -> None:
        """Fit codes to mapped rows, and rotate the map where these need it."""
        self.quantizer_, rotation = QUANTIZERS[str(self.quantize)].fitted(Z, sizes)
        self.components_, self.bias_ = rotation @ self.components_, rotation @ self.bias_

    @property
    def _n_features_out(self) -> int:
        return -(-self.n_components_ // 8) if isinstance(self.quantizer_, BinaryQuantizer) else self.n_components_

    def _sides(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the rows that are mapped, in place, their mean before, and with side="query" the candidates."""
        if self.side == "query":
            return X, np.zeros(X.shape[1]), X
        mean = X.mean(axis=0, dtype=np.float64)
        X -= mean.astype(X.dtype)
        return X, mean, None

    def _learn(self, kind: Supervision, rows: np.ndarray, mean: np.ndarray, loss: str, task: FitTask) -> Self:
        """Descend from the start, quantize, and set the attributes; `rows` are all, `kind` what is known of them."""
        p = rows.shape[1]
        start = np.eye(p) if self.side == "query" else plda(rows, kind, min(self.n_components or p, p))
        self.loss_ = loss if self.loss == "auto" else self.loss
        m, sizes = len(start), nested_sizes(self.nested, len(start))

        def learned(A: np.ndarray) -> dict[str, Any]:
            A, b = A.astype(rows.dtype), (-A @ mean).astype(rows.dtype)
            return {"components_": A, "bias_": b, "n_components_": m, "quantizer_": None}

        def on_iteration(A: np.ndarray) -> bool:
            return task.iteration(lambda: learned(A))

        with blas_in_one_thread():  # batches are small: a second thread would wait more than it works
            found = descend(self, kind, start, sizes, on_iteration)
        self.__dict__.update(learned(found.x))
        self.n_iter_, self.loss_curve_ = found.n_iter, np.array(found.curve)
        if self.quantize is not None:
            self._quantize(unit_rows(rows @ self.components_.T), sizes)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        task.end()
        return self
