"""Embeddings of a language or image model, made shorter and more accurate for search by cosines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_is_fitted

from .._array_api import foreign_namespace, moved
from .._blocks import affine_unit_rows, row_blocks, unit_rows
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._labels import encode_partial_classes
from .._memory import require_memory
from .._parameters import (
    check_choice,
    check_integer,
    check_number,
    check_positive,
    check_random_state,
)
from .._threads import blas_in_one_thread
from .._validation import (
    check_array,
    check_consistent_length,
    refuse_foreign,
    refuse_words,
    weighted_rows,
)
from ..descent import DescentResult, DescentStatus, adam
from ..estimators.base import Embedding
from ..estimators.pairs import check_row_numbers, unstacked
from ..estimators.validation import validate_dense_rows, validate_foreign_rows
from ..objectives.cosine import LOSSES, Comparison, CosineSoftmax
from ..objectives.loss import Ridge, Value
from ..scatter import total_scatter, within_scatter
from .codes import QUANTIZERS, BinaryQuantizer, Int8Quantizer, Quantizer, itq_rotation
from .judgements import Labels, count_relevant
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

    def compared(self, X: Any) -> np.ndarray:
        """Return the rows as a search compares them, `embed(X)`."""
        return self.embed(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _unit_rows(self, X: Any) -> np.ndarray:
        """Return validated rows for `fit`, scaled to unit length."""
        Z = unit_rows(validate_dense_rows(self, X, reset=True))
        check_directions(Z, "X")
        return Z


def check_directions(Z: np.ndarray, name: str) -> None:
    """Raise a ValueError if rows of unit length differ only by rounding."""
    if np.ptp(Z, axis=0).max() <= 10 * np.finfo(Z.dtype).eps:
        raise ValueError(
            f"{name} does not vary in direction (n_features = {Z.shape[1]}): its rows are "
            "multiples of one, and cosines tell nothing."
        )


# What an embedding adapter learns from: labels, pairs, triplets, or queries with relevant
# documents.
#
# Each kind holds items with indices from 0, and at least one query with a relevant candidate. It
# computes the covariance of rows that belong together, and compares some of its items at a time. If
# the candidates `are_fixed`, only queries are mapped. Rows had unit length before the mean was
# subtracted.

# rows per label in a batch: with many labels, each row should still have others of its own
TOGETHER = 8
# documents compared with the queries of a batch, unless more are relevant
CANDIDATES = 2048


@dataclass(frozen=True)
class Labelled:
    """Rows with labels.

    The relevance of two rows to each other is the share of their labels that they have in common,
    `|both| / |either|`.

    Attributes
    ----------
    X : array of shape (n, p)
    Y : csr_array of shape (n, n_labels)
        1 for each label of a row; at least one per row.
    are_fixed : bool
    weights : array of shape (n,) or None
        Number of copies that each row represents, greater than 0; only the ratios matter.
    """

    X: np.ndarray
    Y: csr_array
    are_fixed: bool
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.X)

    def within_covariance(self) -> np.ndarray:
        """Return the covariance of rows that share a label, about their mean.

        Copies of a row add no degrees of freedom.
        """
        X, w, codes, n_labels = self.X, self.weights, self.Y.indices, self.Y.shape[1]
        if not self._is_single:
            rows = np.repeat(np.arange(len(self)), np.diff(self.Y.indptr))
            X, w = X[rows], None if w is None else w[rows]
        dof = max(len(X) - n_labels, 1)
        if w is None:
            return within_scatter(X, codes) / dof
        w = w / w.mean()
        G = csr_array((w, (codes, np.arange(len(X)))), shape=(n_labels, len(X)))
        means = (G @ X) / G.sum(axis=1)[:, None]
        return total_scatter((X - means[codes]).astype(X.dtype), w) / dof

    def order(self, rng: np.random.Generator) -> np.ndarray:
        """Return the rows shuffled, in groups of up to eight rows with the same label."""
        rows = rng.permutation(len(self))
        label = self._label[rows]
        rows = rows[np.argsort(label, kind="stable")]
        first = np.searchsorted(self._label[rows], self._label[rows])
        piece = np.cumsum((np.arange(len(rows)) - first) % TOGETHER == 0) - 1
        return rows[np.argsort(rng.permutation(piece[-1] + 1)[piece], kind="stable")]

    @cached_property
    def _relative(self) -> np.ndarray | None:
        """Weights of mean 1 over the rows that share a label with another row.

        The loss is the mean over these rows.
        """
        if self.weights is None:
            return None
        shared = self.Y @ (self.Y.sum(axis=0) > 1) > 0
        return self.weights / self.weights[shared].mean()

    @property
    def _is_single(self) -> bool:
        """Whether every row has exactly one label."""
        return self.Y.nnz == len(self)

    @cached_property
    def _label(self) -> np.ndarray:
        """The first label of every row."""
        return self.Y.indices[self.Y.indptr[:-1]]

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return some rows, each with the others as candidates."""
        if self._is_single:
            W = self._label[items][:, None] == self._label[items]
        else:
            Y = self.Y[items]
            shared, sizes = (Y @ Y.T).toarray(), np.diff(Y.indptr)
            W = shared / (sizes[:, None] + sizes - shared)
        np.fill_diagonal(W, 0)
        weights = None if self._relative is None else self._relative[items]
        return _mutual(self.X, self.are_fixed, items, W, weights)


@dataclass(frozen=True)
class Paired:
    """Graded pairs of rows.

    Rows of a batch that do not form a known pair are not relevant to each other. If two rows were
    judged not to belong together, each is a candidate of the other in every batch that contains the
    other (at most 2,048 such candidates per batch, drawn at random).

    Attributes
    ----------
    X : array of shape (n, p)
    pairs : int array of shape (n_pairs, 2)
    grades : array of shape (n_pairs,)
        Greater than 0.
    are_fixed : bool
    negatives : int array of shape (n_negatives, 2)
        Pairs that do not belong together.
    """

    X: np.ndarray
    pairs: np.ndarray
    grades: np.ndarray
    are_fixed: bool
    negatives: np.ndarray

    def __len__(self) -> int:
        return len(self.pairs)

    def within_covariance(self) -> np.ndarray:
        """Return the covariance of paired rows about their mean."""
        return _covariance_of_pairs(self.X, self.X, self.pairs, self.grades)

    @cached_property
    def _graded(self) -> csr_array:
        n, (left, right) = len(self.X), self.pairs.T
        G = csr_array((self.grades, (left, right)), shape=(n, n))
        return csr_array(G + G.T)

    @cached_property
    def _unlike(self) -> csr_array:
        """1 for pairs that do not belong together."""
        n, (left, right) = len(self.X), np.vstack([self.negatives, self.negatives[:, ::-1]]).T
        return csr_array((np.ones(len(left)), (left, right)), shape=(n, n))

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return the rows of some pairs, with these and the rows judged unlike them as candidates.

        Rows judged unlike a row are candidates of this row only.
        """
        rows = np.unique(self.pairs[items])
        W, U = self._graded[rows], self._unlike[rows]
        unlike = _drawn(np.setdiff1d(U.indices, rows), CANDIDATES, rng)
        if not len(unlike):
            return _mutual(self.X, self.are_fixed, rows, W[:, rows].toarray())
        candidates, offered = np.append(rows, unlike), _offered(len(rows), U, unlike)
        np.fill_diagonal(offered, False)  # no row is its own candidate
        W = W[:, candidates].toarray().astype(self.X.dtype)
        return Comparison(self.X[rows], self.X[candidates], W, offered, self.are_fixed)


@dataclass(frozen=True)
class Triples:
    """Row a should be closer to row b than to row c, which are its only candidates.

    Attributes
    ----------
    X : array of shape (n, p)
    triplets : int array of shape (n_triplets, 3)
    are_fixed : bool
    """

    X: np.ndarray
    triplets: np.ndarray
    are_fixed: bool

    def __len__(self) -> int:
        return len(self.triplets)

    def within_covariance(self) -> np.ndarray:
        """Return the covariance of the first and second rows about their mean."""
        return _covariance_of_pairs(self.X, self.X, self.triplets[:, :2], np.ones(len(self)))

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return some triplets and their candidates."""
        anchors, near, far = self.triplets[items].T
        W, one = np.eye(len(items), 2 * len(items)), np.eye(len(items), dtype=bool)
        candidates = self.X[np.concatenate([near, far])]
        return Comparison(self.X[anchors], candidates, W, np.hstack([one, one]), self.are_fixed)


@dataclass(frozen=True)
class Judged:
    """Queries and graded documents; documents without a judgement are not relevant.

    In every batch, the relevant documents of its queries are candidates of all these queries.
    Documents judged not relevant to a query are candidates of this query (at most 2,048 per batch,
    drawn at random), but unless they are sampled, not of others, to which they might be relevant.

    Attributes
    ----------
    queries : array of shape (n_queries, p)
    documents : array of shape (n_documents, p)
    relevance : csr_array of shape (n_queries, n_documents)
        At least one entry per query is greater than 0; a stored 0 was judged not relevant.
    are_fixed : bool
    """

    queries: np.ndarray
    documents: np.ndarray
    relevance: csr_array
    are_fixed: bool

    def __len__(self) -> int:
        return len(self.queries)

    def within_covariance(self) -> np.ndarray:
        """Return the covariance of queries and their relevant documents about their mean."""
        at = np.column_stack(self.relevance.nonzero())
        return _covariance_of_pairs(self.queries, self.documents, at, np.ones(len(at)))

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return some queries, with documents as candidates."""
        R, n = self.relevance[items], len(self.documents)
        documents, offered = np.arange(n), None
        if n > CANDIDATES:
            relevant = np.unique(R.indices[R.data > 0])
            n_others = max(CANDIDATES - len(relevant), len(items))
            documents = np.union1d(relevant, rng.choice(n, n_others, replace=False))
            unlike = _drawn(np.setdiff1d(R.indices, documents), CANDIDATES, rng)
            offered = _offered(len(documents), R, unlike) if len(unlike) else None
            documents = np.append(documents, unlike)
        W = R[:, documents].toarray()
        return Comparison(
            self.queries[items], self.documents[documents], W, offered, self.are_fixed
        )


Supervision = Labelled | Paired | Triples | Judged


def _drawn(items: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the items, or a random sample of `most` if there are more."""
    return items if len(items) <= most else rng.choice(items, most, replace=False)


def _offered(n_for_all: int, judged: csr_array, unlike: np.ndarray) -> np.ndarray:
    """Return which candidates each query has.

    These are the first `n_for_all`, and of the `unlike` documents those for which it has a stored
    value.
    """
    stored = csr_array((np.ones(judged.nnz), judged.indices, judged.indptr), shape=judged.shape)
    for_all = np.ones((judged.shape[0], n_for_all), dtype=bool)
    return np.hstack([for_all, stored[:, unlike].toarray() > 0])


def _mutual(
    X: np.ndarray,
    are_fixed: bool,
    rows: np.ndarray,
    W: np.ndarray,
    weights: np.ndarray | None = None,
) -> Comparison:
    """Return some rows that are candidates of each other, but not of themselves."""
    W = W.astype(X.dtype)
    if not are_fixed:
        return Comparison(X[rows], None, W, weights=weights)
    return Comparison(X[rows], X[rows], W, ~np.eye(len(rows), dtype=bool), True, weights)


def _mean(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the (weighted) mean row in float64."""
    if weights is None:
        return X.mean(axis=0, dtype=np.float64)
    return np.einsum("i,ij->j", weights, X) / weights.sum()  # without a copy of X in float64


def _covariance(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the mean of (x - m)(x - m)', over copies if there are weights."""
    return total_scatter(X, weights) / (len(X) if weights is None else weights.sum())


def _covariance_of_pairs(
    X: np.ndarray, Y: np.ndarray, pairs: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the weighted mean of (x - y)(x - y)' / 2 over pairs of a row of X and one of Y."""
    S = np.zeros((X.shape[1], X.shape[1]))
    for block in row_blocks(len(pairs), X.shape[1]):
        D = (X[pairs[block, 0]] - Y[pairs[block, 1]]).astype(np.float64)
        S += (D.T * weights[block]) @ D
    return S / (2 * weights.sum())


# Labels and judgements as sparse matrices.

SEVERAL = "0 and 1 for every label, as scikit-learn's MultiLabelBinarizer makes of lists of labels."


def label_matrix(y: Any) -> csr_array:
    """Return labels as a matrix of 0 and 1, (n, n_labels); unlabelled rows are 0.

    Raises
    ------
    ValueError
        If no two rows share a label, or a single column does not define two classes.
    """
    refuse_foreign(y, "y")
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give labels.")
    try:
        y = y if issparse(y) else np.asarray(y)
    except ValueError as error:  # the lists have different lengths
        raise ValueError(f"y must be a label for every row, or {SEVERAL}") from error
    if y.ndim == 2 and y.shape[1] > 1:
        if y.dtype.kind in "US":
            raise ValueError(f"y of several columns holds text; it must hold {SEVERAL}")
        Y = csr_array(
            check_array(y, accept_sparse="csr", input_name="y"), dtype=np.float64, copy=True
        )
        Y.sum_duplicates()
        Y.eliminate_zeros()
        if not (Y.data == 1).all():
            value = Y.data[Y.data != 1][0]
            raise ValueError(f"y of several columns holds {value:g}; it must hold {SEVERAL}")
        Y = csr_array(Y[:, Y.sum(axis=0) > 0])
    else:
        classes, codes = encode_partial_classes(y)
        known = codes >= 0
        parts = (np.ones(known.sum()), codes[known], np.concatenate([[0], np.cumsum(known)]))
        Y = csr_array(parts, shape=(len(codes), len(classes)))
    if max(Y.sum(axis=0), default=0) < 2:
        raise ValueError(
            "y gives no two rows the same label, every class has a single row: merge some classes."
        )
    return Y


def relevance_matrix(relevance: Any, shape: tuple[int, int]) -> csr_array:
    """Return judgements as a nonnegative matrix (n_queries, n_documents).

    They are given as a matrix, or as rows (query, document) or (query, document, grade). A stored 0
    was judged not relevant; an absent entry was not judged.
    """
    refuse_foreign(relevance, "relevance")
    if issparse(relevance):
        R = csr_array(
            check_array(relevance, accept_sparse="csr", dtype=np.float64, input_name="relevance"),
            copy=True,
        )
        R.sum_duplicates()
        if R.shape != shape:
            raise ValueError(
                f"relevance must be of shape {shape}, queries and documents; got {R.shape}."
            )
    else:
        judged = check_array(relevance, dtype=np.float64, ensure_2d=False, input_name="relevance")
        if judged.ndim != 2 or judged.shape[1] not in (2, 3):
            raise ValueError(
                "relevance must have 2 or 3 columns, query, document and grade; got "
                f"{judged.shape}."
            )
        at = judged[:, :2].astype(np.int64)
        if (at != judged[:, :2]).any() or at.min() < 0 or (at.max(axis=0) >= shape).any():
            most = f"{shape[0] - 1} and {shape[1] - 1}"
            wrong = ((at != judged[:, :2]) | (at < 0) | (at >= shape)).any(axis=1).argmax()
            found = "{:g}, {:g}".format(*judged[wrong, :2])
            raise ValueError(
                f"relevance must hold numbers of a query and a document, 0 to {most}; row {wrong} "
                f"holds {found}."
            )
        grades = judged[:, 2] if judged.shape[1] == 3 else np.ones(len(judged))
        R = csr_array((grades, at.T), shape=shape)
    R.data = np.maximum(R.data, 0)
    if not R.data.any():
        raise ValueError(
            "relevance marks no document as relevant (larger than 0): there is nothing to learn "
            "from."
        )
    return R


def check_grades(y: Any, n_pairs: int) -> np.ndarray:
    """Return the grades of the pairs, at least 0; 1 each if y is None."""
    if y is None:
        return np.ones(n_pairs)
    refuse_words(y, "y")
    grades = np.maximum(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), 0)
    if grades.shape != (n_pairs,):
        raise ValueError(
            f"y must be a number for each of {n_pairs} pairs, got the shape {grades.shape}."
        )
    if not grades.any():
        raise ValueError(
            "y marks no pair as similar (larger than 0): there is nothing to learn from."
        )
    return grades


# Validation, start and descent of an embedding adapter.

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
        m; all p features if it is None, or if p is smaller.
    loss : {"auto", "nca", "contrastive"}, default="auto"
        "nca" makes some of the relevant rows close, "contrastive" all of them. "auto" takes "nca"
        for labels, whose rows may form several clusters, and "contrastive" for pairs, triplets and
        documents.
    temperature : float, default=0.1
        T; with a smaller T, only the most similar candidates count.
    side : {"both", "query"}, default="both"
        "query" maps only queries and leaves the other rows unchanged, so that an index of documents
        need not be rebuilt. The map is then p x p, starts as the identity and does not subtract a
        mean; n_components is ignored.
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
        it takes "leading" or "random". With pairs, triplets, documents, or rows with several
        labels, it takes "plda".
    alpha : float, default=0.25
        Weight of the penalty that keeps A close to its start; n is the number of labelled rows,
        relevant pairs, triplets, or queries.
    max_iter : int or None, default=None
        Number of passes over the n rows, pairs, triplets or queries, in batches of 512; a pass
        takes at least five steps. None takes 20 passes, or fewer if 20 would take more than 10,000
        steps (for n above 256,000). The step length decreases to 0.
    random_state : int, RandomState instance or None, default=0
        Seed of the batches (for n above 512), of the random start, and of the classes that "auto"
        holds out. The same data and seed give the same map.

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
        n_components: int | None = 64,
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
        check_parameters(self)
        task = FitTask(self, X, y, n_iterations=self.max_iter)
        X = self._unit_rows(X)
        Y = label_matrix(y)
        check_consistent_length(X, Y)
        has_label = np.diff(Y.indptr) > 0
        # a slice avoids a copy
        known = slice(None) if has_label.all() else np.flatnonzero(has_label)
        labels = None
        if Y.nnz == has_label.sum():  # no row has several
            labels = np.full(len(X), -1)
            labels[has_label] = Y.indices
        of_known = None if weights is None else weights[known]
        return self._learn(
            lambda X, fixed: Labelled(X[known], Y[known], fixed, of_known),
            X,
            "nca",
            task,
            labels,
            weights,
        )

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
        check_parameters(self)
        task = FitTask(self, X, y, n_iterations=self.max_iter)
        X, pairs, y = unstacked(X, pairs, y, "pairs", 2)
        X = self._unit_rows(X)
        pairs = check_row_numbers(pairs, "pairs", 2, len(X))
        grades = check_grades(y, len(pairs))
        like = grades > 0
        known = pairs[like], grades[like]
        return self._learn(
            lambda X, fixed: Paired(X, *known, fixed, pairs[~like]), X, "contrastive", task
        )

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
        check_parameters(self)
        task = FitTask(self, X, None, n_iterations=self.max_iter)
        X, triplets, _ = unstacked(X, triplets, None, "triplets", 3)
        X = self._unit_rows(X)
        triplets = check_row_numbers(triplets, "triplets", 3, len(X))
        return self._learn(lambda X, fixed: Triples(X, triplets, fixed), X, "contrastive", task)

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
        check_parameters(self)
        task = FitTask(self, documents, None, n_iterations=self.max_iter)
        documents = self._unit_rows(documents)
        n, p = documents.shape
        if len(shape := np.shape(queries)) == 2 and shape[1] != p:
            raise ValueError(
                f"queries have {shape[1]} features, documents {p}: embed both by one model."
            )
        queries = unit_rows(validate_dense_rows(self, queries, reset=False)).astype(documents.dtype)
        R = relevance_matrix(relevance, (len(queries), n))
        judged = np.flatnonzero(count_relevant(R))
        return self._learn(
            lambda X, fixed: Judged(X[n:][judged], X[:n], R[judged], fixed),
            np.concatenate([documents, queries]),
            "contrastive",
            task,
        )

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

    def _learn(
        self,
        supervision: Callable[[np.ndarray, bool], Supervision],
        X: np.ndarray,
        loss: str,
        task: FitTask,
        labels: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> Self:
        """Minimize the loss plus the penalty from the start, and quantize.

        `supervision` takes the centred rows and whether candidates are fixed. X is centred in
        place. A start can be chosen if `labels` has one class per row, or -1.
        """
        p, are_fixed = X.shape[1], self.side == "query"
        require_covariances(p)
        m = min(self.n_components or p, p)
        seed = check_random_state(self.random_state).randint(2**31)
        self.loss_ = loss if self.loss == "auto" else self.loss
        self.start_ = "plda" if self.start == "auto" else self.start
        if self.start == "auto" and not are_fixed and labels is not None:
            fit = partial(self._short_fits, m=m, seed=seed)
            self.start_ = choose_start(X, labels, m, seed, fit, weights)
        mean = np.zeros(p) if are_fixed else _mean(X, weights)
        X -= mean.astype(X.dtype)
        kind = supervision(X, are_fixed)
        if are_fixed:
            start = np.eye(p)
        else:
            S_t = _covariance(X, weights)
            A = plda(S_t, kind.within_covariance(), m)
            start = start_map(A, S_t, mean, self.start_, seed)
        sizes = nested_sizes(self.nested, len(start))

        def affine(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return A.astype(X.dtype), (-A @ mean).astype(X.dtype)

        def learned(A: np.ndarray) -> dict[str, Any]:
            components, bias = affine(A)
            map_so_far = {"components_": components, "bias_": bias}
            return map_so_far | {"n_components_": len(A), "quantizer_": None}

        found = self._descend(
            kind,
            start,
            sizes,
            seed,
            self.max_iter or n_passes(len(kind)),
            on_iteration=lambda A: task.iteration(lambda: learned(A)),
        )
        self.components_, self.bias_ = affine(found.x)
        self.n_components_ = len(start)
        self.quantizer_ = None
        self.n_iter_ = found.n_iter
        self.loss_curve_ = np.array(found.curve)
        if self.quantize is not None:
            self._quantize(unit_rows(X @ self.components_.T), sizes)
        if found.status is DescentStatus.INTERRUPTED:
            raise KeyboardInterrupt
        task.end()
        return self

    def _short_fits(
        self, known: Labels, starts: list[str], m: int, seed: int
    ) -> list[Callable[[np.ndarray], np.ndarray]]:
        """Return maps learned from classes in few passes, one for each start."""
        weights = known.weights
        mean = _mean(known.X, weights)
        X, has_label = known.X - mean.astype(known.X.dtype), known.y >= 0
        of_labelled = None if weights is None else weights[has_label]
        kind = Labelled(X[has_label], label_matrix(known.y[has_label]), False, of_labelled)
        S_t = _covariance(X, weights)
        A = plda(S_t, kind.within_covariance(), m)
        n_iter = min(self.max_iter or CHOICE_ITER, CHOICE_ITER)

        def learned(start: str) -> Callable[[np.ndarray], np.ndarray]:
            A_0 = start_map(A, S_t, mean, start, seed)
            found = self._descend(kind, A_0, [m], seed, n_iter)
            return lambda rows: affine_unit_rows(rows, found.x, -found.x @ mean)

        return [learned(start) for start in starts]

    def _descend(
        self,
        kind: Supervision,
        start: np.ndarray,
        sizes: list[int],
        seed: int,
        max_iter: int,
        on_iteration: Callable[[np.ndarray], bool] | None = None,
    ) -> DescentResult:
        """Minimize the loss plus the penalty by Adam, with step lengths that decrease to 0."""
        rng, n = np.random.default_rng(seed), len(kind)
        n_batches = -(-n // BATCH)
        n_steps = max(n_batches, FEWEST_STEPS)
        longest = FIRST_STEP * float(np.linalg.norm(start))
        loss = CosineSoftmax(self.temperature, self.loss_, sizes) + Ridge(self.alpha, n, start)
        batches: list[np.ndarray] = []

        def estimate(A: np.ndarray, t: int) -> Value:
            if t % n_batches == 0:
                order = kind.order(rng) if isinstance(kind, Labelled) else rng.permutation(n)
                batches[:] = np.array_split(order, n_batches)
            return loss.estimate(A, kind.comparison(batches[t % n_batches], rng))

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
