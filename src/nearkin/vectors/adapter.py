"""Embeddings of a language or image model, made shorter and more accurate for search by cosines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from .. import _array_api
from .._array_api import foreign_namespace, moved
from .._blocks import affine_unit_rows, blas_in_one_thread, row_blocks, unit_rows
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._pairs import check_row_numbers, unstacked
from .._validation import (
    check_choice,
    check_integer,
    check_number,
    check_positive,
    encode_partial_labels,
    refuse_foreign,
    refuse_words,
    require_two_classes,
    validate_dense_rows,
    validate_foreign_rows,
    weighted_rows,
)
from ..descent import DescentResult, Status, Value, adam
from ..estimators.base import Embedding
from ..objectives.cosine import LOSSES, Comparison, nested_loss
from ..scatter import total_scatter, within_scatter
from .codes import QUANTIZERS, BinaryQuantizer, Int8Quantizer, Quantizer, itq_rotation
from .judgements import Labels, count_relevant
from .start import CHOICE_ITER, STARTS, choose_start, plda, start_map

# What the maps of embeddings share that are compared by cosines.


class UnitEmbedding(Embedding):
    """An affine map of rows of unit length to rows of unit length: `Z ~ X/||X|| components_.T +
    bias_`. Abstract.
    """

    components_: np.ndarray
    bias_: np.ndarray
    _needs_labels = True

    def embed(self, X: Any) -> Any:
        """Map rows, and scale them to unit length.

        Parameters
        ----------
        X : array of shape (n, p)
            Under `sklearn.config_context(array_api_dispatch=True)` also a torch tensor, or another
            array by the array API standard.

        Returns
        -------
        array of shape (n, m)
            Rows of unit length, so that products are cosines; float32 if X is float32 or float16,
            of the library and on the device of X.
        """
        check_is_fitted(self, "components_")
        xp = foreign_namespace(X)
        if xp is not None:
            X = validate_foreign_rows(self, X, xp)
            A, b = (moved(self, name, X) for name in ("components_", "bias_"))
            return _array_api.affine_unit_rows(X, A, b, xp)
        return affine_unit_rows(
            validate_dense_rows(self, X, reset=False), self.components_, self.bias_
        )

    def transform(self, X: Any) -> Any:
        """Return `embed(X)`."""
        return self.embed(X)

    def compared(self, X: Any) -> np.ndarray:
        """Return rows as a search compares them: `embed(X)`."""
        return self.embed(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _unit_rows(self, X: Any) -> np.ndarray:
        """Return valid rows, to be fitted to, in unit length."""
        Z = unit_rows(validate_dense_rows(self, X, reset=True))
        check_directions(Z, "X")
        return Z


def check_directions(Z: np.ndarray, name: str) -> None:
    """Raise a ValueError where rows of unit length do not differ by more than their rounding."""
    if np.ptp(Z, axis=0).max() <= 10 * np.finfo(Z.dtype).eps:
        raise ValueError(
            f"{name} does not vary in direction (n_features = {Z.shape[1]}): its rows are "
            "multiples of one, and cosines tell nothing."
        )


# What an embedding adapter learns from: labels, pairs, triplets, or queries with relevant
# documents.
#
# Each kind holds items, numbered from 0, with at least one query that has a relevant candidate. It
# tells how rows that belong together scatter, and compares some of its items at a time. Where the
# candidates `are_fixed`, queries alone are mapped.
# Rows are of unit length, but for the mean that is subtracted.

TOGETHER = (
    8  # rows of a label that come in one batch: of many labels, each row has others of its own
)
# documents that the queries of a batch are compared with, where the relevant ones are fewer
CANDIDATES = 2048


@dataclass(frozen=True)
class Labelled:
    """Rows of which two are relevant to each other as far as they share labels: |both| / |either|
    of these.

    Attributes
    ----------
    X : array of shape (n, p)
    Y : csr_array of shape (n, n_labels)
        1 for the labels of every row, at least one.
    are_fixed : bool
    weights : array of shape (n,) or None
        How many copies each row stands for, larger than 0; only the ratios count.
    """

    X: np.ndarray
    Y: csr_array
    are_fixed: bool
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.X)

    def within_covariance(self) -> np.ndarray:
        """Return the covariance of rows that share a label about their mean; copies of a row add no
        degree of freedom.
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
        """Return the rows shuffled, but for eight of a label that stay together."""
        rows = rng.permutation(len(self))
        label = self._label[rows]
        rows = rows[np.argsort(label, kind="stable")]
        first = np.searchsorted(self._label[rows], self._label[rows])
        piece = np.cumsum((np.arange(len(rows)) - first) % TOGETHER == 0) - 1
        return rows[np.argsort(rng.permutation(piece[-1] + 1)[piece], kind="stable")]

    @cached_property
    def _relative(self) -> np.ndarray | None:
        """Weights with mean 1 over the rows that share a label with another one: the loss is the
        mean over these.
        """
        if self.weights is None:
            return None
        shared = self.Y @ (self.Y.sum(axis=0) > 1) > 0
        return self.weights / self.weights[shared].mean()

    @property
    def _is_single(self) -> bool:
        """Whether every row has one label."""
        return self.Y.nnz == len(self)

    @cached_property
    def _label(self) -> np.ndarray:
        """The first label of every row."""
        return self.Y.indices[self.Y.indptr[:-1]]

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return some rows, and the others as their candidates."""
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
    """Pairs of rows with a grade; rows of a batch that are no known pair are not relevant to each
    other. A row that was judged unlike another one is a candidate of it in every batch.

    Attributes
    ----------
    X : array of shape (n, p)
    pairs : int array of shape (n_pairs, 2)
    grades : array of shape (n_pairs,)
        Larger than 0.
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
        """Return some pairs, and as candidates the rows of these; of a row also those unlike it."""
        rows = np.unique(self.pairs[items])
        W, U = self._graded[rows], self._unlike[rows]
        unlike = _drawn(np.setdiff1d(U.indices, rows), CANDIDATES, rng)
        if not len(unlike):
            return _mutual(self.X, self.are_fixed, rows, W[:, rows].toarray())
        candidates, offered = np.append(rows, unlike), _offered(len(rows), U, unlike)
        np.fill_diagonal(offered, False)  # none of itself
        W = W[:, candidates].toarray().astype(self.X.dtype)
        return Comparison(self.X[rows], self.X[candidates], W, offered, self.are_fixed)


@dataclass(frozen=True)
class Triples:
    """Row a is to be nearer to row b than to row c; a has no other candidates than these two.

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
        """Return the covariance of first and second rows about their mean."""
        return _covariance_of_pairs(self.X, self.X, self.triplets[:, :2], np.ones(len(self)))

    def comparison(self, items: np.ndarray, rng: np.random.Generator) -> Comparison:
        """Return some triplets, and their candidates."""
        anchors, near, far = self.triplets[items].T
        W, one = np.eye(len(items), 2 * len(items)), np.eye(len(items), dtype=bool)
        candidates = self.X[np.concatenate([near, far])]
        return Comparison(self.X[anchors], candidates, W, np.hstack([one, one]), self.are_fixed)


@dataclass(frozen=True)
class Judged:
    """Queries, and how relevant documents are to them; documents without a judgement are not.

    In every batch the relevant documents of its queries are candidates of all of these, those that
    were judged not relevant of their own query alone: another one might find them relevant.

    Attributes
    ----------
    queries : array of shape (n_queries, p)
    documents : array of shape (n_documents, p)
    relevance : csr_array of shape (n_queries, n_documents)
        One larger than 0 a query at least; a stored 0 is what was judged not relevant.
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
        """Return some queries, and documents as their candidates."""
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
    """Return items, or so many of them, drawn."""
    return items if len(items) <= most else rng.choice(items, most, replace=False)


def _offered(n_for_all: int, judged: csr_array, unlike: np.ndarray) -> np.ndarray:
    """Return which candidates a query has: the first ones, so many, and of those that are unlike
    some query the ones for which a value is stored.
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
    """Return some rows that are candidates of each other, none of itself."""
    W = W.astype(X.dtype)
    if not are_fixed:
        return Comparison(X[rows], None, W, weights=weights)
    return Comparison(X[rows], X[rows], W, ~np.eye(len(rows), dtype=bool), True, weights)


def _mean(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the (weighted) mean row, float64."""
    if weights is None:
        return X.mean(axis=0, dtype=np.float64)
    return np.einsum("i,ij->j", weights, X) / weights.sum()  # without a copy of X in float64


def _covariance(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the mean of (x - m)(x - m)', of copies too where rows stand for some."""
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


# Labels and judgements that are given, as sparse matrices.

SEVERAL = "0 and 1 for every label, as scikit-learn's MultiLabelBinarizer makes of lists of labels."


def label_matrix(y: Any) -> csr_array:
    """Return labels as a matrix of 0 and 1, (n, n_labels); rows of 0 have none.

    Raises
    ------
    ValueError
        If no two rows share a label, or a single column leaves no two classes.
    """
    refuse_foreign(y, "y")
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give labels.")
    try:
        y = y if issparse(y) else np.asarray(y)
    except ValueError as error:  # lists of different lengths
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
        classes, codes = encode_partial_labels(y)
        require_two_classes(classes)
        known = codes >= 0
        parts = (np.ones(known.sum()), codes[known], np.concatenate([[0], np.cumsum(known)]))
        Y = csr_array(parts, shape=(len(codes), len(classes)))
    if max(Y.sum(axis=0), default=0) < 2:
        raise ValueError(
            "y gives no two rows the same label, every class has a single row: merge some classes."
        )
    return Y


def relevance_matrix(relevance: Any, shape: tuple[int, int]) -> csr_array:
    """Return judgements as a matrix, (n_queries, n_documents), of at least 0.

    They come as one, or as rows (query, document) or (query, document, grade). A stored 0 is what
    was judged not relevant, which an absent one was not.
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
    """Return how much each pair belongs together, at least 0; None for 1 each."""
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


# What an embedding adapter accepts, where it begins, and how it descends from there.

BATCH = 512  # rows, pairs, triplets or queries a step
FEWEST_STEPS = 5  # an iteration
PASSES, ENOUGH_STEPS = 20, 10_000  # passes are fewer where these take more steps
FIRST_STEP = 0.1  # of the norm of the map


def check_parameters(adapter: Any) -> None:
    """Raise an error that names what is wrong."""
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


def n_passes(n: int) -> int:
    """Return the passes over n queries that `max_iter=None` takes."""
    n_batches = -(-n // BATCH)
    return min(PASSES, -(-ENOUGH_STEPS // n_batches))


def nested_sizes(nested: Sequence[int] | None, m: int) -> list[int]:
    """Return the sizes of a nested embedding in ascending order, m the last."""
    nested = [] if nested is None else nested
    if not np.iterable(nested):
        raise TypeError(
            f"nested must be a sequence of integers, got {nested!r} ({type(nested).__name__})."
        )
    return sorted({m, *(check_integer(size, "a size of nested", 1, m) for size in nested)})


class EmbeddingAdapter(CallbackSupportMixin, UnitEmbedding):
    """A linear map after which the cosine of two embeddings says whether they belong together.

    A row x is scaled to unit length, mapped to z = A (x/||x|| - mean), scaled again. Row i draws
    row j with probability

        p_ij = exp(cos(z_i, z_j) / T) / sum_{k != i} exp(cos(z_i, z_k) / T),

    and A minimizes, over minibatches of candidates, for weights w_ij of what is relevant to what,

        - 1/n sum_i log sum_j w_ij p_ij                 "nca": NCA's g on cosines (Goldberger et
                                                        al. 2004, eq. 6)
        - 1/n sum_i sum_j w_ij log p_ij / sum_j w_ij    "contrastive" (Khosla et al. 2020, eq. 2)

    plus `alpha / sqrt(n) ||A - A_0||^2`. The start A_0 is probabilistic LDA, with ||A_0||^2 = m:
    with the within-class covariance S_w, W = S_w + tr(S_w) / p I, and B = S_t - S_w / 2, where a
    half of S_w stands for differences between classes that are not known,

        V'W V = I,  V'B V = diag(psi),   A_0 ~ diag(psi / (1 + 2 psi))^(1/2) V' :

    for Gaussian classes z_i . z_j is the bilinear part of the log likelihood ratio of "same class"
    against "different classes" (Ioffe 2006). It drops what training rows do not vary in, and what
    does not separate their classes; `start` adds to it what other classes may need.

    Parameters
    ----------
    n_components : int or None, default=64
        m; all p features where these are fewer, or with None.
    loss : {"auto", "nca", "contrastive"}, default="auto"
        "nca" wants some of the relevant rows near, "contrastive" all. "auto" takes the former for
        labels, whose rows may form several groups, and the latter for pairs, triplets and
        documents.
    temperature : float, default=0.1
        T; of a smaller one only the most similar candidates count.
    side : {"both", "query"}, default="both"
        "query" maps queries alone and leaves the other rows as they are, so that an index of
        documents need not be made again: by a p x p map that starts as the identity and subtracts
        no mean; n_components does not count.
    nested : sequence of int, default=None
        Sizes m_1 < m_2 < ... < n_components: the mean of the losses over the leading m_1, m_2, ...,
        n_components dimensions is minimized, so that each is a good embedding by itself (Kusupati
        et al. 2022: Matryoshka).
    quantize : {"int8", "binary"}, default=None
        What `transform` returns: codes of the rows, see `Int8Quantizer` and `BinaryQuantizer`.
    start : {"auto", "plda", "pca", "leading", "random"}, default="auto"
        What A_0 has beside probabilistic LDA, A_l, whose row space has the projection Q:

        - "plda": nothing, for classes that are all in training;
        - "pca": A_l + .7 c U P, the principal directions P of the rows in the rotation U that is
          nearest to A_l; c gives both parts one mean squared length on the rows;
        - "leading": A_l + .5 c R (I - Q), with the first m axes as R, for vectors whose first
          numbers are a good embedding by themselves (Matryoshka, LSA); c makes the mean squared
          length of R x / ||x|| 1;
        - "random": the same with m random orthonormal rows as R (Johnson and Lindenstrauss 1984).

        "auto" chooses among them by held-out classes, on at most 2,000 rows with a label, by
        short fits: the smallest loss of nDCG@10 against the best, in the part (classes in training
        or not) where it is larger. Fewer than four classes leave none to hold out, then it is
        "leading" or "random". With pairs, triplets, documents, or rows of several labels: "plda".
    alpha : float, default=0.25
        Weight of the penalty that keeps A near its start; n are rows with a label, relevant pairs,
        triplets, or queries.
    max_iter : int or None, default=None
        Passes over these in batches of 512, of at least five steps each; None for 20, or as many as
        take 10,000 steps where these are fewer (of more than 256,000). The steps shorten to 0
        meanwhile.
    random_state : int, RandomState instance or None, default=0
        Draws the batches of more than 512, the random start, and the classes that "auto" holds out;
        the same data and the same seed give the same map.

    Attributes
    ----------
    components_ : array of shape (m, p)
        A.
    bias_ : array of shape (m,)
        Minus A mean: Z is `x/||x|| components_.T + bias_`, scaled to unit length.
    n_components_ : int
    loss_ : str
        The loss that "auto" took.
    start_ : str
        The start that "auto" took.
    quantizer_ : Int8Quantizer, BinaryQuantizer or None
    n_iter_, loss_curve_
        Passes made; mean of loss and penalty over the batches of every pass, the first that of the
        first batch.

    See Also
    --------
    Procrustes, NCA

    Notes
    -----
    Only directions count, not the length of rows. What is learned from classes helps others less,
    and may harm: measure with held-out classes, as `nearkin adapt` does. Rows without a label help,
    in S_t and its principal directions: give those of an index as well.

    Cost: O(n p^2 + p^3) once, then O(n p m + 512 n m) a pass; start="auto" adds four times O(p^3)
    and a few seconds. The rows in unit length, another copy of X, and p x p numbers.

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
        """Learn the map from labels: rows that share one belong together.

        Parameters
        ----------
        X : array of shape (n, p)
            Embeddings; sparse ones are made dense.
        y : array of shape (n,), or of shape (n, n_labels)
            A label for every row, -1, None or NaN for none; or 0 and 1 where rows have several
            labels or none, as by scikit-learn's `MultiLabelBinarizer`, dense or sparse. Rows of
            several are relevant to each other by the share that they have in common: `|both| /
            |either|`.
        sample_weight : array of shape (n,), default=None
            c, at least 0: a row of weight 2 counts as two equal rows that are no candidates of each
            other, one of weight 0 is absent, and only the ratios matter. Of mean 1,

                p_ij = exp(cos(z_i, z_j) / T) / sum_{k != i} c_k exp(cos(z_i, z_k) / T),
                - 1/n sum_i c_i log sum_j c_j w_ij p_ij                           "nca"
                - 1/n sum_i c_i sum_j c_j w_ij log p_ij / sum_j c_j w_ij          "contrastive"

            The start counts copies in its mean and in both covariances, rows without a label among
            them, and so does the choice of a start. The n of the penalty, the degrees of freedom of
            S_w, the batches and the codes of `quantize` count every row once.

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
        # a slice copies nothing
        known = slice(None) if has_label.all() else np.flatnonzero(has_label)
        labels = None
        if Y.nnz == has_label.sum():  # none has several
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
            Rows; or the two rows of each pair, of which equal ones count as one. Then there are no
            `pairs`, and y may come second: `fit_pairs(X, y)`.
        pairs : int array of shape (n_pairs, 2)
            Numbers of two rows each, counted from 0. Either is a query, the other a candidate.
        y : array of shape (n_pairs,), default=None
            How much they belong together: 1 (the default), grades between, and 0 or -1 for not at
            all; the grades of a row's pairs count relative to each other. Rows of a batch that are
            no known pair count as unlike; one that does not belong to a row is among the
            candidates of this in every batch that holds a relevant pair of it.

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
        """Learn the map from triplets: the first row is more like the second than like the third.

        Parameters
        ----------
        X : array of shape (n, p) or (n_triplets, 3, p)
            Rows; or the three rows of each triplet, of which equal ones count as one, in place of
            `triplets`.
        triplets : int array of shape (n_triplets, 3)
            Numbers of rows, counted from 0. With side="query" the first is the query.

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
        """Learn the map from queries and the documents that are relevant to them.

        Parameters
        ----------
        queries : array of shape (n_queries, p)
        documents : array of shape (n_documents, p)
        relevance : array of shape (n_judgements, 2 or 3), or sparse matrix
            Number of the query, number of the document, both counted from 0, and how relevant it is
            (default: 1); a sparse one is of shape (n_queries, n_documents). The grades of a query
            count relative to each other: they are the distribution that its p_ij are to be near.
            What is not larger than 0, such as a stored 0 of a sparse one, is judged not relevant:
            it is always among the candidates of its query, while of what is not judged a part is
            drawn for every batch, where there are more than 2,048 documents. Queries without a
            relevant document do not count.

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
        check_is_fitted(self, "components_")
        if self.quantizer_ is None:
            return self.embed(X)
        refuse_foreign(X)  # codes are NumPy's
        return self.quantizer_.encode(self.embed(X))

    def compared(self, X: Any) -> np.ndarray:
        """Return rows as a search compares them: `embed(X)`, or what its codes stand for."""
        Z = self.transform(X)
        return Z if self.quantizer_ is None else self.quantizer_.decode(Z)

    def quantized(self, quantize: str, X: Any) -> Self:
        """Return a copy of a fitted adapter whose codes are fitted to other rows; for "binary" it
        is rotated.

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
        """Return what a saved adapter keeps: the map in float32, and the scale of int8 (else 1)."""
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
        """Return the fitted adapter of which `to_arrays` gave the arrays."""
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
        """Fit codes to mapped rows, and rotate the map where these need it."""
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

        `supervision` says of rows that are centred, and of whether candidates are fixed, what is
        known; X is centred in place. By `labels`, one a row or -1, a start can be chosen.
        """
        p, are_fixed = X.shape[1], self.side == "query"
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
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        task.end()
        return self

    def _short_fits(
        self, known: Labels, starts: list[str], m: int, seed: int
    ) -> list[Callable[[np.ndarray], np.ndarray]]:
        """Return maps that are learned from classes in few passes, one from each start."""
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
        """Minimize the loss plus the penalty by Adam, in steps that shorten to 0."""
        rng, n = np.random.default_rng(seed), len(kind)
        n_batches = -(-n // BATCH)
        n_steps = max(n_batches, FEWEST_STEPS)
        longest, weight = FIRST_STEP * float(np.linalg.norm(start)), self.alpha / n**0.5
        batches: list[np.ndarray] = []

        def estimate(A: np.ndarray, t: int) -> Value:
            if t % n_batches == 0:
                order = kind.order(rng) if isinstance(kind, Labelled) else rng.permutation(n)
                batches[:] = np.array_split(order, n_batches)
            comparison = kind.comparison(batches[t % n_batches], rng)
            value, gradient = nested_loss(A, comparison, self.temperature, self.loss_, sizes)
            away = A - start
            return value + weight * float(np.sum(away**2)), gradient + 2 * weight * away

        with blas_in_one_thread():  # batches are small: a second thread would wait, not work
            return adam(
                estimate,
                start,
                n_batches=n_steps,
                max_iter=max_iter,
                tol=0,
                step=lambda t: longest * (1 - t / (max_iter * n_steps)),
                on_iteration=on_iteration,
            )
