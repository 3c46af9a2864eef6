"""Embeddings of a language or image model, made shorter and more accurate for search by cosines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._blocks import affine_unit_rows, unit_rows
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._memory import require_memory
from .._threads import blas_in_one_thread
from .._validation import (
    check_choice,
    check_integer,
    check_number,
    check_positive,
    check_random_state,
    foreign_namespace,
    moved,
    refuse_foreign,
    weighted_rows,
)
from ..descent import DescentResult, DescentStatus, adam
from ..estimators.base import Embedding
from ..estimators.pairs import check_row_numbers, unstacked
from ..estimators.validation import validate_dense_rows, validate_foreign_rows
from ..objectives.cosine import LOSSES, CosineSoftmax
from ..objectives.loss import Ridge, Value
from ..scatter import total_scatter
from .codes import QUANTIZERS, BinaryQuantizer, Int8Quantizer, Quantizer, itq_rotation
from .judgements import (
    Judgements,
    Labels,
    Pairs,
    Relevance,
    Supervision,
    Triplets,
    check_grades,
    relevance_matrix,
)
from .start import CHOICE_ITER, STARTS, choose_start, plda, start_map

# Shared by maps of embeddings that are compared by cosine.


class UnitEmbedding(Embedding):
    """An affine map from rows of unit length to rows of unit length.

    Z is `X/||X|| components_.T + bias_`, scaled to unit length. Abstract.
    """

    components_: np.ndarray
    bias_: np.ndarray
    _needs_labels = True

    def embed(self, X: Any) -> Any:
        """Map rows and scale them to unit length.

        Parameters
        ----------
        X : array of shape (n, p)
            With `sklearn.config_context(array_api_dispatch=True)` also a torch tensor or any other
            array that follows the array API standard.

        Returns
        -------
        array of shape (n, m)
            Rows of unit length, whose inner products are cosines, in the library and on the device
            of X; float32 if X is float32 or float16.
        """
        check_is_fitted(self, "components_")
        xp = foreign_namespace(X)
        if xp is not None:
            X = validate_foreign_rows(self, X, xp)
            A, b = (moved(self, name, X) for name in ("components_", "bias_"))
            return unit_rows(unit_rows(X, xp) @ A.T + b, xp)
        return affine_unit_rows(
            validate_dense_rows(self, X, reset=False), self.components_, self.bias_
        )

    def transform(self, X: Any) -> Any:
        """Return `embed(X)`."""
        return self.embed(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def check_directions(Z: np.ndarray, name: str) -> None:
    """Raise a ValueError if rows of unit length differ only by rounding."""
    if np.ptp(Z, axis=0).max() <= 10 * np.finfo(Z.dtype).eps:
        raise ValueError(
            f"{name} does not vary in direction (n_features = {Z.shape[1]}): its rows are "
            "multiples of one row: give others."
        )


# Validation, start and descent of an embedding adapter.

SIZE = 64  # dimensions, unless they are given
BATCH = 512  # rows, pairs, triplets or queries per step
FEWEST_STEPS = 5  # per iteration
PASSES, ENOUGH_STEPS = 20, 10_000  # fewer passes if these would take more steps
FIRST_STEP = 0.1  # relative to the norm of the map


def check_parameters(adapter: Any) -> None:
    """Raise an error that names the invalid parameter."""
    check_choice(adapter.loss, "loss", ("auto", *LOSSES))
    check_choice(adapter.side, "side", ("both", "query"))
    check_choice(adapter.start, "start", ("auto", *STARTS))
    if adapter.quantize is not None:
        check_choice(adapter.quantize, "quantize", QUANTIZERS)
    check_positive(adapter.temperature, "temperature")
    check_number(adapter.alpha, "alpha", 0)
    if adapter.side == "query" and (adapter.nested is not None or adapter.quantize == "binary"):
        what = "nested sizes need" if adapter.nested is not None else 'quantize="binary" needs'
        raise ValueError(
            f'{what} side="both": documents that stay as they are can be neither cut nor rotated.'
        )
    if adapter.n_components is not None:
        check_integer(adapter.n_components, "n_components", 1)
    if adapter.max_iter is not None:
        check_integer(adapter.max_iter, "max_iter", 1)


def require_covariances(p: int, n_fits: int = 1) -> None:
    """Raise a MemoryError if the p x p matrices of so many fits at a time do not fit."""
    what = (
        f"An adapter of {p:,} features" if n_fits == 1 else f"{n_fits} adapters of {p:,} features"
    )
    remedy = "shorten the rows first, e.g. by TruncatedSVD"
    require_memory(n_fits * 8 * 8 * p * p, what, remedy)


def n_passes(n: int) -> int:
    """Return the number of passes over n queries for `max_iter=None`."""
    n_batches = -(-n // BATCH)
    return min(PASSES, -(-ENOUGH_STEPS // n_batches))


def nested_sizes(nested: Sequence[int] | None, m: int) -> list[int]:
    """Return the sizes of a nested embedding in ascending order, m last."""
    nested = [] if nested is None else nested
    if not np.iterable(nested):
        raise TypeError(
            f"nested must be a sequence of integers, got {nested!r} ({type(nested).__name__})."
        )
    return sorted({m, *(check_integer(size, "a size of nested", 1, m) for size in nested)})


class EmbeddingAdapter(CallbackSupportMixin, UnitEmbedding):
    """A linear map after which the cosine of two embeddings shows whether they belong together.

    A row x is scaled to unit length, mapped to z = A (x/||x|| - mean), and scaled again. Row i
    draws row j with probability

        p_ij = exp(cos(z_i, z_j) / T) / sum_{k != i} exp(cos(z_i, z_k) / T),

    and A minimizes, over minibatches of candidates and with weights w_ij for the relevance of j to
    i,

        - 1/n sum_i log sum_j w_ij p_ij                 "nca": NCA's g on cosines (Goldberger et
                                                        al. 2004, eq. 6)
        - 1/n sum_i sum_j w_ij log p_ij / sum_j w_ij    "contrastive" (Khosla et al. 2020, eq. 2)

    plus `alpha / sqrt(n) ||A - A_0||^2`. The start A_0 is probabilistic LDA, scaled to ||A_0||^2 =
    m. With the within-class covariance S_w, W = S_w + tr(S_w) / p I, and B = S_t - S_w / 2, where
    half of S_w accounts for differences between unknown classes,

        V'W V = I,  V'B V = diag(psi),   A_0 ~ diag(psi / (1 + 2 psi))^(1/2) V'.

    For Gaussian classes, z_i . z_j is the bilinear part of the log likelihood ratio of "same class"
    against "different classes" (Ioffe 2006). This start drops directions in which training rows do
    not vary, or which do not separate their classes; `start` adds to it what other classes may
    need.

    Parameters
    ----------
    n_components : int or None, default=64
        m; all p features if it is None, or if p is smaller, or with side="query", for which it must
        not be given.
    loss : {"auto", "nca", "contrastive"}, default="auto"
        "nca" makes some of the relevant rows close, "contrastive" all of them. "auto" takes "nca"
        for labels, whose rows may form several clusters, and "contrastive" for pairs, triplets and
        documents.
    temperature : float, default=0.1
        T; with a smaller T, only the most similar candidates count.
    side : {"both", "query"}, default="both"
        "query" maps only queries and leaves the other rows unchanged, so that an index of documents
        need not be rebuilt. The map is then p x p, starts as the identity and does not subtract a
        mean.
    nested : sequence of int, default=None
        Sizes m_1 < m_2 < ... < n_components. The mean of the losses over the leading m_1, m_2, ...,
        n_components dimensions is minimized, so that each of these is a good embedding by itself
        (Kusupati et al. 2022: Matryoshka).
    quantize : {"int8", "binary"}, default=None
        `transform` returns codes of the rows; see `Int8Quantizer` and `BinaryQuantizer`.
    start : {"auto", "plda", "pca", "leading", "random"}, default="auto"
        What A_0 contains besides the map A_l of probabilistic LDA. With Q the projection onto the
        row space of A_l:

        - "plda": nothing, for use when all classes are in training;
        - "pca": A_l + .7 c U P, with the principal directions P of the rows, and the rotation U for
          which U P is closest to A_l; c gives both parts the same mean squared length on the rows;
        - "leading": A_l + .5 c R (I - Q), with the first m axes as R, for vectors whose first
          numbers are a good embedding by themselves (Matryoshka, LSA); c makes the mean squared
          length of R x / ||x|| 1;
        - "random": the same with m random orthonormal rows as R (Johnson and Lindenstrauss 1984).

        "auto" chooses among them with held-out classes, by short fits on at most 2,000 labelled
        rows. It minimizes the larger of the two losses of nDCG@10 relative to the best start, for
        classes in training and for others. With fewer than four classes, none can be held out, and
        it takes "leading" or "random". With pairs or documents, it takes the start of the best
        nDCG@10 for held-out queries. With triplets, rows with several labels, or fewer than eight
        queries, it takes "plda".
    alpha : float, default=0.25
        Weight of the penalty that keeps A close to its start; n is the number of labelled rows,
        relevant pairs, triplets, or queries.
    max_iter : int or None, default=None
        Number of passes over the n rows, pairs, triplets or queries, in batches of 512; a pass
        takes at least five steps. None takes 20 passes, or fewer if 20 would take more than 10,000
        steps (for n above 256,000). The step length decreases to 0.
    random_state : int, RandomState instance or None, default=0
        Seed of the batches (for n above 512), of the random start, and of the classes or queries
        that "auto" holds out. The same data and seed give the same map.

    Attributes
    ----------
    components_ : array of shape (m, p)
        A.
    bias_ : array of shape (m,)
        -A mean: Z is `x/||x|| components_.T + bias_`, scaled to unit length.
    n_components_ : int
    loss_ : str
        The loss used.
    start_ : str
        The start used.
    quantizer_ : Int8Quantizer, BinaryQuantizer or None
    n_iter_ : int
        The number of passes.
    loss_curve_ : array of shape (`n_iter_` + 1,)
        The mean of loss plus penalty over the batches of every pass, preceded by that of the first
        batch.

    See Also
    --------
    Procrustes, NCA

    Notes
    -----
    Only the direction of rows matters, not their length. A row of zeros has none, and is mapped to
    the direction of `bias_`: leave such rows out. What is learned from some classes helps others
    less, and may harm them: measure with held-out classes, as `nearkin adapt` does. Unlabelled rows
    improve the estimate of S_t and its principal directions: include those of an index.

    Cost: O(n p^2 + p^3) once, then O(n p m + 512 n m) per pass; start="auto" adds four times O(p^3)
    and a few seconds. Memory is a copy of X, scaled to unit length, and about eight p x p matrices
    of float64: a fit for which they do not fit is refused.

    References
    ----------
    S. Ioffe. Probabilistic linear discriminant analysis. ECCV 2006.
    P. Khosla et al. Supervised contrastive learning. NeurIPS 2020.
    W. Johnson and J. Lindenstrauss. Extensions of Lipschitz mappings into a Hilbert space. 1984.
    A. Kusupati et al. Matryoshka representation learning. NeurIPS 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import EmbeddingAdapter
    >>> X, y = load_digits(return_X_y=True)
    >>> adapter = EmbeddingAdapter(16, start="pca").fit(X, y)
    >>> Z = adapter.transform(X)  # of unit length: Z @ Z.T are cosines
    >>> Z.shape
    (1797, 16)
    """

    quantizer_: Quantizer | None

    def __init__(
        self,
        n_components: int | None = SIZE,
        *,
        loss: str = "auto",
        temperature: float = 0.1,
        side: str = "both",
        nested: Sequence[int] | None = None,
        quantize: str | None = None,
        start: str = "auto",
        alpha: float = 0.25,
        max_iter: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.temperature = temperature
        self.side = side
        self.nested = nested
        self.quantize = quantize
        self.start = start
        self.alpha = alpha
        self.max_iter = max_iter
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map from labels: rows that share a label belong together.

        Parameters
        ----------
        X : array of shape (n, p)
            Embeddings; sparse X is made dense.
        y : array of shape (n,), or of shape (n, n_labels)
            A label for every row; -1, None or NaN for unlabelled rows. Or, if rows may have any
            number of labels, a dense or sparse matrix of 0 and 1, as from scikit-learn's
            `MultiLabelBinarizer`. Rows with several labels are relevant to each other by the share
            of labels in common, `|both| / |either|`.
        sample_weight : array of shape (n,), default=None
            c, at least 0. A row of weight 2 counts as two equal rows that are not candidates of
            each other; a row of weight 0 is left out. Only the ratios matter. Scaled to mean 1,

                p_ij = exp(cos(z_i, z_j) / T) / sum_{k != i} c_k exp(cos(z_i, z_k) / T),
                - 1/n sum_i c_i log sum_j c_j w_ij p_ij                           "nca"
                - 1/n sum_i c_i sum_j c_j w_ij log p_ij / sum_j c_j w_ij          "contrastive"

            The start counts copies in its mean and in both covariances, including those of
            unlabelled rows, and so does the choice of a start. The n of the penalty, the degrees of
            freedom of S_w, the batches and the codes of `quantize` count every row once.

        Returns
        -------
        self
        """
        X, y, weights, _ = weighted_rows(X, y, sample_weight)
        task = FitTask(self, X, y, n_iterations=self.max_iter)
        X = validate_dense_rows(self, X, reset=True)
        return self._learn(Labels.of(X, y, np.arange(len(X)), weights), task)

    @with_callbacks
    def fit_pairs(self, X: Any, pairs: Any = None, y: Any = None) -> Self:
        """Learn the map from pairs of rows that belong together, and pairs that do not.

        Parameters
        ----------
        X : array of shape (n, p) or (n_pairs, 2, p)
            Rows; or, without `pairs`, the two rows of each pair, of which equal ones are merged. In
            the second case y may come second: `fit_pairs(X, y)`.
        pairs : int array of shape (n_pairs, 2), default=None
            Indices of two rows each. Each row of a pair serves as a query, with the other as a
            candidate.
        y : array of shape (n_pairs,), default=None
            Grades: 1 (the default) for pairs that belong together, less for weaker ones, 0 or -1
            for pairs that do not. The grades of a row's pairs count relative to each other. Rows of
            a batch that do not form a known pair count as unrelated. If a row was judged not to
            belong to another one, it is a candidate of that row in every batch that contains a
            relevant pair of that row (at most 2,048 such candidates per batch, drawn at random).

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=self.max_iter)
        X, pairs, y = unstacked(X, pairs, y, "pairs", 2)
        X = validate_dense_rows(self, X, reset=True)
        pairs = check_row_numbers(pairs, "pairs", 2, len(X))
        grades = check_grades(y, len(pairs))
        return self._learn(Pairs.of(X, pairs, grades, np.arange(len(X))), task)

    @with_callbacks
    def fit_triplets(self, X: Any, triplets: Any = None) -> Self:
        """Learn the map from triplets, whose first row is closer to the second than to the third.

        Parameters
        ----------
        X : array of shape (n, p) or (n_triplets, 3, p)
            Rows; or, without `triplets`, the three rows of each triplet, of which equal ones are
            merged.
        triplets : int array of shape (n_triplets, 3), default=None
            Row indices. With side="query" the first is the query.

        Returns
        -------
        self
        """
        task = FitTask(self, X, None, n_iterations=self.max_iter)
        X, triplets, _ = unstacked(X, triplets, None, "triplets", 3)
        X = validate_dense_rows(self, X, reset=True)
        return self._learn(Triplets(X, check_row_numbers(triplets, "triplets", 3, len(X))), task)

    @with_callbacks
    def fit_relevance(self, queries: Any, documents: Any, relevance: Any) -> Self:
        """Learn the map from queries and their relevant documents.

        Parameters
        ----------
        queries : array of shape (n_queries, p)
        documents : array of shape (n_documents, p)
        relevance : array of shape (n_judgements, 2 or 3), or sparse matrix
            Index of the query, index of the document, and relevance (default: 1); or a sparse
            matrix of shape (n_queries, n_documents). The grades of a query count relative to each
            other, as the target distribution of its p_ij. Documents with a grade of at most 0, such
            as a stored 0 of a sparse matrix, are judged not relevant: they are candidates of their
            query in every batch (at most 2,048 per batch, drawn at random), while documents without
            a judgement are sampled for every batch if there are more than 2,048 documents. Queries
            without a relevant document are ignored.

        Returns
        -------
        self
        """
        task = FitTask(self, documents, None, n_iterations=self.max_iter)
        documents = validate_dense_rows(self, documents, reset=True)
        n, p = documents.shape
        if len(shape := np.shape(queries)) == 2 and shape[1] != p:
            raise ValueError(
                f"queries have {shape[1]} features, documents {p}: embed both by one model."
            )
        queries = validate_dense_rows(self, queries, reset=False)
        R = relevance_matrix(relevance, (len(queries), n))
        return self._learn(Relevance(queries, documents, R, np.arange(len(queries))), task)

    def transform(self, X: Any) -> Any:
        """Map rows, and quantize them if `quantize` is set.

        Parameters
        ----------
        X : array of shape (n, p)
            With side="query" these are queries; documents are left unchanged.

        Returns
        -------
        array of shape (n, m), or (n, ceil(m / 8)) of uint8 for "binary"
            The result of `embed`, or its codes.
        """
        check_is_fitted(self, "components_")
        if self.quantizer_ is None:
            return self.embed(X)
        refuse_foreign(X)  # codes are NumPy arrays
        return self.quantizer_.encode(self.embed(X))

    def compared(self, X: Any) -> np.ndarray:
        """Return the rows as a search compares them: `embed(X)`, or what its codes represent."""
        Z = self.transform(X)
        return Z if self.quantizer_ is None else self.quantizer_.decode(Z)

    def quantized(self, quantize: str, X: Any) -> Self:
        """Return a copy of a fitted adapter with codes fitted to other rows.

        For "binary", the map is rotated.

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

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the state of an adapter: the map in float32, and the scale of int8 (else 1)."""
        scale = self.quantizer_.scale if isinstance(self.quantizer_, Int8Quantizer) else 1.0
        return {
            "components": self.components_.astype(np.float32),
            "bias": self.bias_.astype(np.float32),
            "scale": np.array([scale], np.float32),
        }

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], *, side: str = "both", quantize: str | None = None
    ) -> Self:
        """Return a fitted adapter from the arrays of `to_arrays`."""
        A = arrays["components"]
        adapter = cls(len(A), side=side, quantize=quantize)
        adapter.components_, adapter.bias_ = A, arrays["bias"]
        adapter.n_components_, adapter.n_features_in_ = A.shape
        adapter.quantizer_ = None
        if quantize == "int8":
            adapter.quantizer_ = Int8Quantizer(float(arrays["scale"].item()))
        if quantize == "binary":
            adapter.quantizer_ = BinaryQuantizer(len(A))
        return adapter

    def _quantize(self, Z: np.ndarray, sizes: Sequence[int]) -> None:
        """Fit codes to mapped rows, and rotate the map if the codes need it."""
        if self.quantize == "int8":
            self.quantizer_ = Int8Quantizer.fitted(Z)
            return
        R = itq_rotation(Z, sizes)
        self.components_, self.bias_ = R @ self.components_, R @ self.bias_
        self.quantizer_ = BinaryQuantizer(len(R))

    @property
    def _n_features_out(self) -> int:
        m = self.n_components_
        return m if self.quantizer_ is None else self.quantizer_.n_bytes(m)

    def _learn(self, known: Supervision, task: FitTask | None = None) -> Self:
        """Minimize the loss plus the penalty from the start, and quantize."""
        check_parameters(self)
        X = unit_rows(_all_rows(known))  # a copy, centred below
        known, weights = known.of_rows(X), getattr(known, "weights", None)
        check_directions(known.vectors()[1], "X")
        p, fixed = X.shape[1], self.side == "query"
        if fixed and self.n_components not in (None, SIZE) and self.n_components < p:
            raise ValueError(
                f'n_components={self.n_components} needs side="both": queries are compared with '
                f"documents as they are, of {p} dimensions. Leave n_components out."
            )
        require_covariances(p)
        self.n_features_in_, m = p, min(self.n_components or p, p)
        seed = check_random_state(self.random_state).randint(2**31)
        self.loss_ = known.loss if self.loss == "auto" else self.loss
        self.start_ = self.start
        if self.start == "auto":
            fit = partial(self._short_fits, m=m, seed=seed)
            self.start_ = "plda" if fixed else choose_start(known, m, seed, fit)
        mean = np.zeros(p) if fixed else _mean(X, weights)
        X -= mean.astype(X.dtype)
        start = np.eye(p)
        if not fixed:
            S_t = _covariance(X, weights)
            A = plda(S_t, known.within_covariance(), m)
            start = start_map(A, S_t, mean, self.start_, seed)
        sizes = nested_sizes(self.nested, len(start))

        def affine(A: np.ndarray) -> dict[str, Any]:
            """Return the attributes of a map of centred rows."""
            components, bias = A.astype(X.dtype), (-A @ mean).astype(X.dtype)
            found = {"components_": components, "bias_": bias}
            return found | {"n_components_": len(A), "quantizer_": None}

        found = self._descend(
            known,
            start,
            sizes,
            seed,
            self.max_iter or n_passes(len(known.items)),
            on_iteration=None if task is None else lambda A: task.iteration(affine, A),
        )
        self.__dict__ |= affine(found.x)
        self.n_iter_ = found.n_iter
        self.loss_curve_ = np.array(found.curve)
        if self.quantize is not None:
            self._quantize(unit_rows(X @ self.components_.T), sizes)
        if found.status is DescentStatus.INTERRUPTED:
            raise KeyboardInterrupt
        if task is not None:
            task.end()
        return self

    def _short_fits(
        self, known: Judgements, starts: list[str], m: int, seed: int
    ) -> list[Callable[[np.ndarray], np.ndarray]]:
        """Return maps learned from rows of unit length in few passes, one for each start."""
        X, weights = _all_rows(known), getattr(known, "weights", None)
        mean = _mean(X, weights)
        X = X - mean.astype(X.dtype)
        known = known.of_rows(X)
        S_t = _covariance(X, weights)
        A = plda(S_t, known.within_covariance(), m)
        n_iter = min(self.max_iter or CHOICE_ITER, CHOICE_ITER)

        def learned(start: str) -> Callable[[np.ndarray], np.ndarray]:
            A_0 = start_map(A, S_t, mean, start, seed)
            found = self._descend(known, A_0, [m], seed, n_iter)
            return lambda rows: affine_unit_rows(rows, found.x, -found.x @ mean)

        return [learned(start) for start in starts]

    def _descend(
        self,
        known: Supervision,
        start: np.ndarray,
        sizes: list[int],
        seed: int,
        max_iter: int,
        on_iteration: Callable[[np.ndarray], bool] | None = None,
    ) -> DescentResult:
        """Minimize the loss plus the penalty by Adam, with step lengths that decrease to 0."""
        rng, n, fixed = np.random.default_rng(seed), len(known.items), self.side == "query"
        n_batches = -(-n // BATCH)
        n_steps = max(n_batches, FEWEST_STEPS)
        longest = FIRST_STEP * float(np.linalg.norm(start))
        loss = CosineSoftmax(self.temperature, self.loss_, sizes) + Ridge(self.alpha, n, start)
        batches: list[np.ndarray] = []

        def estimate(A: np.ndarray, t: int) -> Value:
            if t % n_batches == 0:
                if isinstance(known, Labels):
                    order = known.order(rng)
                else:
                    order = rng.permutation(known.items)
                batches[:] = np.array_split(order, n_batches)
            batch = known.comparison(batches[t % n_batches], rng)
            return loss.estimate(A, batch.with_fixed_candidates() if fixed else batch)

        with blas_in_one_thread():  # batches are small: a second thread would only wait
            return adam(
                estimate,
                start,
                n_batches=n_steps,
                max_iter=max_iter,
                tol=0,
                step=lambda t: longest * (1 - t / (max_iter * n_steps)),
                on_iteration=on_iteration,
            )


def _all_rows(known: Supervision) -> np.ndarray:
    """Return the documents and, if they are others, the queries."""
    queries, X = known.vectors()
    return X if queries is X else np.concatenate([X, queries.astype(X.dtype)])


def _mean(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the (weighted) mean row in float64."""
    if weights is None:
        return X.mean(axis=0, dtype=np.float64)
    return np.einsum("i,ij->j", weights, X) / weights.sum()  # without a copy of X in float64


def _covariance(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the mean of (x - m)(x - m)', over copies if there are weights."""
    return total_scatter(X, weights) / (len(X) if weights is None else weights.sum())
