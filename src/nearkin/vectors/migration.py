"""Embeddings of one model mapped into the space of another, so that an index need not be rebuilt.

The map is affine and chosen on held-out rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np

from .._blocks import affine_unit_rows, row_blocks, unit_rows
from .._labels import encode_partial_labels
from .._validation import (
    check_array,
    check_choice,
    check_consistent_length,
    check_number,
    check_random_state,
    refuse_foreign,
    widened,
)
from ..estimators.validation import validate_dense_rows
from ..linalg import eigh
from .adapter import UnitEmbedding, check_directions
from .codes import orthogonal_procrustes
from .judgements import FEWEST_CLASSES, FOLDS
from .retrieval import Vectors

SIDES = ("query", "document")
FEWEST = 80  # with fewer rows, none are held out
MOST_HELD_OUT = 4_000
# Settings are chosen by the first ranks: an index holds many more documents than the sample, so its
# first ten are as close as the first few here.
CHOICE_DEPTH = 3
CHOICE_QUERIES = 1_000  # over as many splits as needed
MOST_SPLITS = 8
LABEL_RIDGE = 0.03  # relative to the mean eigenvalue of each scatter

# Held-out rows.


@dataclass(frozen=True)
class Sample:
    """The same items embedded by two models: the one whose rows are mapped, and that of the target.

    Attributes
    ----------
    X : array of shape (n, p)
        Rows to be mapped, of unit length.
    Y : array of shape (n, m)
        The same items in the target space, of unit length.
    side : {"query", "document"}
        What is mapped: the new model's queries (X is new), or the old model's documents (Y is new).
    codes : int array of shape (n,) or None
        Class codes, -1 for none.
    """

    X: np.ndarray
    Y: np.ndarray
    side: str
    codes: np.ndarray | None

    def __len__(self) -> int:
        return len(self.X)

    def some(self, rows: np.ndarray) -> Sample:
        """Return some rows."""
        codes = None if self.codes is None else self.codes[rows]
        return Sample(self.X[rows], self.Y[rows], self.side, codes)

    def without_classes(self, rng: np.random.Generator) -> tuple[Sample, np.ndarray]:
        """Hide the labels of a random quarter of the classes.

        Return the rows, and the codes of the hidden classes. With fewer than eight classes, none
        are hidden.
        """
        assert self.codes is not None
        n_classes = self.codes.max() + 1
        is_hidden = (rng.permutation(n_classes) % FOLDS == 0) & (n_classes >= FEWEST_CLASSES)
        hidden = np.flatnonzero(is_hidden)
        return replace(self, codes=np.where(np.isin(self.codes, hidden), -1, self.codes)), hidden

    def held_out(self, rng: np.random.Generator) -> tuple[Sample, Sample, Sample]:
        """Return rows to learn from, documents, and queries, drawn at random.

        Half of the rows are held out, at most 4,000; a quarter of these are queries. The documents
        are not used for learning either: documents of an index are rarely in a sample, and a map
        fits its own sample too well.
        """
        rows, n_held_out = rng.permutation(len(self)), min(len(self) // 2, MOST_HELD_OUT)
        queries, documents, fit = np.split(rows, [n_held_out // 4, n_held_out])
        return self.some(fit), self.some(documents), self.some(queries)


@dataclass(frozen=True)
class Search:
    """Held-out queries and documents, each embedded by both models, and how many are found."""

    documents: Sample
    queries: Sample
    depth: int

    def by_map(self, A: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the documents that each query ranks first after a map, (q, depth)."""
        D, Q = self.documents, self.queries
        if D.side == "query":
            return Vectors(affine_unit_rows(Q.X, A, b), D.Y).ranked(self.depth)
        return Vectors(Q.Y, affine_unit_rows(D.X, A, b)).ranked(self.depth)

    def by_model(self, which: str) -> np.ndarray:
        """Return the documents that each query ranks first with the "new" or "old" model alone."""
        is_mapped = (which == "new") == (self.documents.side == "query")
        Q, D = ((one.X if is_mapped else one.Y) for one in (self.queries, self.documents))
        return Vectors(Q, D).ranked(self.depth)

    def has_label(self) -> np.ndarray:
        """Return which queries share a label with some document."""
        q, d = self.queries.codes, self.documents.codes
        if q is None or d is None:
            return np.zeros(len(self.queries), bool)
        return (q >= 0) & np.isin(q, d)

    def same_label(self, ranked: np.ndarray) -> np.ndarray:
        """Return which of the ranked documents have the label of the query, (q, depth)."""
        q, d = self.queries.codes, self.documents.codes
        assert q is not None
        assert d is not None
        return d[ranked] == q[:, None]


def shared(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Return which of the documents found are among the true ones, (q, k)."""
    return (found[:, :, None] == true[:, None, :]).any(axis=2)


# The map.


class Setting(NamedTuple):
    """A setting to choose; see `Migration`."""

    reverse: float
    alpha: float
    label_weight: float


# What "auto" tries, and what it takes if there are too few rows to hold some out. Among equally
# good settings, the first is taken: the rotation.
TRIED: dict[str, tuple[list[float], list[float]]] = {
    "reverse": ([0.0, 0.5, 1.0], [0.0]),
    "alpha": ([np.inf, 0.1, 0.01], [0.1]),
    "label_weight": ([0.0, 0.1, 0.3, 1.0], [0.3]),
}


@dataclass(frozen=True)
class Moments:
    """Moments from which all maps of a sample are solved, in the eigenbases of the two scatters.

    Attributes
    ----------
    x, y : arrays of shape (p,) and (m,)
        Means.
    d, V : arrays of shape (p,) and (p, p)
        X'X = V diag(d) V' for centred rows.
    e, U : arrays of shape (m,) and (m, m)
        Y'Y = U diag(e) U'.
    C, B, H : arrays of shape (m, p)
        U'Y'X V, the rotation U'B V, and the products of class means U'Y'PX V (0 without labels).
    """

    x: np.ndarray
    y: np.ndarray
    d: np.ndarray
    V: np.ndarray
    e: np.ndarray
    U: np.ndarray
    C: np.ndarray
    B: np.ndarray
    H: np.ndarray

    @classmethod
    def of(cls, sample: Sample) -> Self:
        """Return the moments of a sample."""
        X, Y = sample.X, sample.Y
        x, y = (Z.mean(axis=0, dtype=np.float64) for Z in (X, Y))
        S_x, S_y = np.zeros((len(x), len(x))), np.zeros((len(y), len(y)))
        C = np.zeros((len(y), len(x)))
        for rows in row_blocks(len(X), max(len(x), len(y))):
            X_c, Y_c = X[rows] - x, Y[rows] - y
            S_x += X_c.T @ X_c
            S_y += Y_c.T @ Y_c
            C += Y_c.T @ X_c
        (d, V), (e, U) = eigh(S_x), eigh(S_y)
        H = np.zeros_like(C)
        if sample.codes is not None:
            known = np.flatnonzero(sample.codes >= 0)
            order = known[np.argsort(sample.codes[known], kind="stable")]
            starts = np.flatnonzero(np.diff(sample.codes[order], prepend=-1))
            sizes = np.diff(starts, append=len(order))[:, None]
            sums_x, sums_y = (
                np.add.reduceat(Z[order], starts, axis=0, dtype=np.float64) - sizes * z
                for Z, z in ((X, x), (Y, y))
            )
            H = (sums_y / sizes).T @ sums_x
        R = orthogonal_procrustes(C)
        B = (float(np.sum(C * R) / np.sum((R @ S_x) * R)) or 1.0) * R
        C, B, H = (U.T @ M @ V for M in (C, B, H))
        return cls(x, y, np.maximum(d, 0), V, np.maximum(e, 0), U, C, B, H)

    def solve(self, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        """Return components and bias in float64."""
        w, alpha, label_weight = setting
        d, e = self.d, self.e[:, None]
        A = self.B
        if alpha < np.inf:
            penalty = alpha * ((1 - w) * d.mean() + w * e.mean())
            divisor = (1 - w) * d + w * e + penalty
            # leave out directions in which the rows do not vary
            varies = divisor > 1e-12 * divisor.max()
            A = np.divide(self.C + penalty * self.B, divisor, np.zeros_like(self.C), where=varies)
        b = (1 - w) * (self.y - self._turned(A) @ self.x)
        if label_weight and self.H.any():
            K = self.H / (d + LABEL_RIDGE * d.mean()) / (e + LABEL_RIDGE * e.mean())
            length, length_of_K = (np.linalg.norm(M * np.sqrt(d)) for M in (A, K))
            K *= label_weight * length / length_of_K
            A = A + K
            b = b - self._turned(K) @ self.x
        return self._turned(A), b

    def _turned(self, A: np.ndarray) -> np.ndarray:
        """Return a map given in the eigenbases as a map of the features."""
        return self.U @ A @ self.V.T


def target_rows(y: Any) -> np.ndarray:
    """Return validated embeddings of the other model, scaled to unit length."""
    refuse_foreign(y, "y")
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: give the old embeddings."
        )
    Y = check_array(widened(y), dtype=(np.float64, np.float32), ensure_2d=False, input_name="y")
    Y = unit_rows(Y.reshape(len(Y), -1))
    # scikit-learn's checks use a single column, of which only signs are left
    if Y.shape[1] > 1:
        check_directions(Y, "y")
    return Y


class Migration(UnitEmbedding):
    """An affine map of one model's embeddings into another model's space.

    It belongs to a family between rotation, least squares and class means; the member is chosen by
    the neighbours of held-out queries.

    Rows X (n, p) and Y (n, m) of the same items are scaled to unit length; x and y are their means,
    X_c and Y_c the centred rows. With w for `reverse`, A minimizes

        (1 - w) ||Y_c - X_c A'||^2 + w ||X_c - Y_c A||^2 + lambda ||A - B||^2,

    where B = s R is the rotation that maps X_c best to Y_c, with its scale, and lambda is `alpha`
    times the sum of the mean eigenvalues of (1 - w) X_c'X_c and w Y_c'Y_c. A row becomes
    A x_i + (1 - w)(y - A x), scaled to unit length.

    * w = 0 is the regression of Y on X, least squares for alpha = 0: a mapped row comes close to
      where the other model puts it. Mapped queries find what the old model would find; mapped
      documents are found as with the new one.
    * w = 1 is the regression of X on Y, read backwards: y_j'A x_i is the product of x_i with the
      prediction of x_j from y_j, so mapped queries find what the *new* model would find. There is
      no constant, as it would only favour some documents for all queries.
    * alpha = inf is the rotation. It needs the fewest rows: a few hundred already determine the
      directions in which they vary. R = PQ' for Y_c'X_c = P S Q' maximizes tr(Y_c'X_c R')
      (Schoenemann 1966), and s minimizes ||Y_c - s X_c R'||: rows of one model may spread less
      about their mean than those of the other. For m >= p, R preserves all distances, and no other
      rotation and scale have a smaller error. For m < p, R projects: it is the first m rows of the
      rotation that is best for Y_c padded with columns of 0. Another projection may come closer to
      Y_c alone; that problem has no closed form.

    All three agree if the spaces differ by a rotation. With the eigenvectors X_c'X_c = V diag(d) V'
    and Y_c'Y_c = U diag(e) U', the first-order condition, (1 - w) A X_c'X_c + w Y_c'Y_c A + lambda
    A = Y_c'X_c + lambda B (a Sylvester equation: Kodirov et al. 2017), is solved entry by entry,

        (U'A V)_ij = (U'(Y_c'X_c + lambda B) V)_ij / ((1 - w) d_j + w e_i + lambda),

    so all settings together need one eigendecomposition per space.

    With `labels`, a term K is added to A, and -K x to the constant: y_j'K x_i is the regression of
    "same class" on pairs of rows,

        K = (Y_c'Y_c + b I)^-1 Y_c'P X_c (X_c'X_c + a I)^-1,

    where P is the projection onto class means. K minimizes ||Y_c K X_c' - P||^2 + a ||Y_c K||^2 + b
    ||K X_c'||^2 + a b ||K||^2 (Romera-Paredes and Torr 2015); a and b are .03 times the mean
    eigenvalues. Its weight is `label_weight` times ||X_c A'|| / ||X_c K'||.

    Parameters
    ----------
    side : {"query", "document"}, default="query"
        "query" maps queries of a new model (X) into the index of an old one. "document" maps the
        documents of an index from an old model (X) into the space of the new one, whose queries are
        not mapped.
    reverse : float in [0, 1] or "auto", default="auto"
        w; "auto" tries 0, .5 and, for queries, 1.
    alpha : float or "auto", default="auto"
        Penalty towards the rotation, at least 0; inf is the rotation. "auto" tries inf, .1 and .01
        on the rows that are not held out, and keeps the chosen lambda for the fit to all rows.
    label_weight : float or "auto", default="auto"
        Weight of the labels, if given; "auto" tries 0, .1, .3 and 1. If all future classes are in
        the sample, 3 may be better.
    random_state : int, RandomState instance or None, default=0
        Seed of the held-out rows.

    Attributes
    ----------
    components_ : array of shape (m, p)
        A, or A + K.
    bias_ : array of shape (m,)
    reverse_, alpha_, label_weight_ : float
        The setting used; `label_weight_` is 0 without labels.

    See Also
    --------
    EmbeddingAdapter : Learns from labels, pairs or judgements within one space.

    Notes
    -----
    Settings are chosen on half of the rows, at most 4,000, from which the map does not learn: a
    quarter of these are queries, the others documents. With few rows this is repeated. Without
    labels, the criterion is the share of the new model's three nearest documents among the three
    found, relative to embedding everything again. With labels, it is the share of the three found
    that have the query's label, averaged over two parts: queries of classes whose labels are used
    for learning, and queries of a quarter of the classes, whose labels are hidden. Finally the map
    is learned from all rows. With fewer than 80 rows, reverse=0, alpha=.1, label_weight=.3 are
    used.

    Labels help queries of classes in the sample and harm those of other classes, the more so the
    larger their weight.

    What the target space cannot express is lost. `nearkin.vectors.evaluate_migration` and
    `nearkin migrate` measure how much.

    Cost: O(n (p + m)^2 + p^3 + m^3), and a search for every setting that is tried.

    References
    ----------
    P. H. Schoenemann. A generalized solution of the orthogonal Procrustes problem. Psychometrika
    31, 1966.
    B. Romera-Paredes and P. H. S. Torr. An embarrassingly simple approach to zero-shot learning.
    ICML 2015.
    E. Kodirov, T. Xiang and S. Gong. Semantic autoencoder for zero-shot learning. CVPR 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from nearkin import Migration
    >>> rng = np.random.default_rng(0)
    >>> old = rng.normal(size=(400, 8))
    >>> new = old @ rng.normal(size=(8, 8))  # another model
    >>> queries = Migration().fit(new[:200], old[:200]).transform(new[200:])
    >>> queries.shape
    (200, 8)
    """

    def __init__(
        self,
        *,
        side: str = "query",
        reverse: float | str = "auto",
        alpha: float | str = "auto",
        label_weight: float | str = "auto",
        random_state: Any = 0,
    ) -> None:
        self.side = side
        self.reverse = reverse
        self.alpha = alpha
        self.label_weight = label_weight
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.two_d_labels = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, labels: Any = None) -> Self:
        """Choose the setting and learn the map from all rows.

        Parameters
        ----------
        X : array of shape (n, p)
            Embeddings by the model whose rows are to be mapped; n >= 2.
        y : array of shape (n, m)
            Embeddings of the same items by the model of the target space.
        labels : array of shape (n,), default=None
            Classes of the items; -1, None or NaN for none.

        Returns
        -------
        self
        """
        check_choice(self.side, "side", SIDES)
        X = unit_rows(validate_dense_rows(self, X, reset=True))
        check_directions(X, "X")
        Y = target_rows(y)
        check_consistent_length(X, Y)
        codes = None
        if labels is not None:
            check_consistent_length(X, labels)
            codes = encode_partial_labels(labels)[1]
        sample = Sample(X, Y, self.side, codes)
        settings = self._settings(len(X), has_labels=codes is not None)
        chosen = self._chosen(sample, settings) if len(settings) > 1 else settings[0]
        A, b = Moments.of(sample).solve(chosen)
        self.components_, self.bias_ = A.astype(X.dtype), b.astype(X.dtype)
        self.reverse_, self.alpha_, self.label_weight_ = chosen
        return self

    def same_setting(self, growth: float) -> Migration:
        """Return an unfitted map with the chosen setting, for `growth` times as many rows.

        Parameters
        ----------
        growth : float
            The number of rows that the new map will learn from, divided by that of this fit. The
            penalty lambda remains the same: `alpha` is divided by `growth`, as the scatter grows
            with the rows.

        Returns
        -------
        Migration
        """
        return Migration(
            side=self.side,
            reverse=self.reverse_,
            alpha=self.alpha_ / growth,
            label_weight=self.label_weight_,
        )

    def _settings(self, n: int, *, has_labels: bool) -> list[Setting]:
        """Return the candidate settings for n rows."""
        values = []
        for name, tried in TRIED.items():
            given = getattr(self, name)
            if isinstance(given, str):
                check_choice(given, name, ("auto",))
                values.append(tried[n < FEWEST])
                if name == "reverse" and self.side == "document":
                    values[0] = [w for w in values[0] if w < 1]
            elif name == "alpha" and isinstance(given, float) and given == np.inf:
                values.append([np.inf])
            else:
                values.append([check_number(given, name, 0)])
        if max(values[0]) > 1:
            raise ValueError(f"reverse must be at most 1, got {self.reverse}.")
        if not has_labels:
            values[2] = [0.0]
        return [Setting(*one) for one in product(*values)]

    def _chosen(self, sample: Sample, settings: list[Setting]) -> Setting:
        """Return the best setting on held-out queries, with its penalty adapted to all rows."""
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        scores, n_queries = np.zeros(len(settings)), 0
        for _ in range(MOST_SPLITS):
            fit, documents, queries = sample.held_out(rng)
            search, own = Search(documents, queries, CHOICE_DEPTH), None
            parts = [np.ones(len(queries), bool)]
            if (labelled := search.has_label()).any():
                assert queries.codes is not None
                fit, hidden = fit.without_classes(rng)
                is_hidden = np.isin(queries.codes, hidden)
                parts = [labelled & ~is_hidden, labelled & is_hidden]
            else:
                own = search.by_model("new")
            moments = Moments.of(fit)
            for place, setting in enumerate(settings):
                found = search.by_map(*moments.solve(setting))
                hits = search.same_label(found) if own is None else shared(found, own)
                scores[place] += np.mean([hits[part].mean() for part in parts if part.any()])
            n_queries += len(queries)
            if n_queries >= CHOICE_QUERIES:
                break
        chosen = settings[int(np.argmax(scores))]
        if self.alpha == "auto":  # keeps the penalty: the scatter grows with the rows
            return chosen._replace(alpha=chosen.alpha * len(fit) / len(sample))
        return chosen
