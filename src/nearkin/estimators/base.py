"""The base classes of learned linear maps and of spectral methods."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._labels import encode_labels
from .._validation import (
    check_array,
    check_integer,
    check_number,
    equals,
    foreign_namespace,
    moved,
    refuse_foreign,
    weighted_rows,
    weights_of,
)
from ..folds import N_SPLITS, best_setting, inner_folds, sample_rows
from ..linalg import RANK_TOLERANCE, svd
from ..neighbors import searcher
from ..neighbors.lists import Listed
from ..spectral import SpectralResult, SpectralStatus, range_basis, shrunk
from .pairs import validate_pairs
from .rows import Rows
from .validation import validate_foreign_rows, validate_labelled_rows, validate_rows

NUMBERS_OF_NEIGHBORS = (1, 3, 5, 7, 10, 15)  # the candidates of "auto"

# The values of `shrinkage` that `compare` tries for methods that divide by a within-class scatter,
# the default first. Neither is better on all tables (benchmarks/choices/shrinkage.py).
COMPARED_AMOUNTS: tuple[dict[str, Any], ...] = ({"shrinkage": 0.5}, {"shrinkage": None})

REMEDIES = {
    SpectralStatus.FLAT: "neighbours of different classes do not differ there; use more "
    "neighbours, or features that tell the classes apart",
    SpectralStatus.UNRESOLVED: "use more neighbours, a larger bandwidth, or remove outliers",
}


class SparseRowsMixin:
    """Tells scikit-learn that X may be sparse."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


class Embedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A transformer of dense or sparse rows with `_n_features_out` output features."""

    _needs_labels = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self._needs_labels
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class LinearEmbedding(Embedding):
    """A linear map `Z = X components_.T` with the metric `M = components_.T components_`.

    Abstract: a subclass defines `__init__` and `fit`, and `fit` sets `components_`, shape (m, p).
    """

    components_: np.ndarray

    def transform(self, X: Any) -> Any:
        """Map rows into the learned space.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            With `sklearn.config_context(array_api_dispatch=True)` also a torch tensor or any other
            array that follows the array API standard.

        Returns
        -------
        Z : array of shape (n, m)
            The embedding, in the library and on the device of X; float32 if X is float32. Euclidean
            distances between its rows are the learned distances.

        Notes
        -----
        Cost: O(n p m). The map is copied to a device once.
        """
        check_is_fitted(self, "components_")
        xp = foreign_namespace(X)
        if xp is not None:
            X = validate_foreign_rows(self, X, xp)
            return X @ moved(self, "components_", X).T
        X = validate_rows(self, X, reset=False)
        return safe_sparse_dot(X, self.components_.T.astype(X.dtype, copy=False), dense_output=True)

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Map coordinates back to rows of features, by the pseudoinverse of the map.

        Parameters
        ----------
        Z : array of shape (n, m)

        Returns
        -------
        X : array of shape (n, p)
            `Z pinv(components_).T`, float32 if Z is float32: among the rows that the map takes
            closest to Z, those of smallest norm. If the rows of `components_` are linearly
            independent, `transform` of the result is Z. `inverse_transform(transform(X))` is the
            orthogonal projection of X onto the span of the rows of `components_`, about the origin:
            unlike PCA, the map does not subtract a mean.

        Notes
        -----
        Cost: O(n p m + p m min(p, m)).
        """
        check_is_fitted(self, "components_")
        refuse_foreign(Z, "Z")
        A = self.components_
        Z = check_array(Z, dtype=(np.float64, np.float32), input_name="Z")
        if Z.shape[1] != len(A):
            raise ValueError(
                f"Z must be of shape (n, {len(A)}), coordinates as `transform` returns them; got "
                f"{Z.shape}."
            )
        U, s, Vt = svd(A.astype(np.float64), full_matrices=False)
        kept = s > max(RANK_TOLERANCE, max(A.shape) * np.finfo(A.dtype).eps) * s[0]
        return Z @ ((U[:, kept] / s[kept]) @ Vt[kept]).astype(Z.dtype)

    def get_mahalanobis_matrix(self) -> np.ndarray:
        """Return the learned metric `components_.T components_`, positive semi-definite, (p, p)."""
        check_is_fitted(self, "components_")
        return self.components_.T @ self.components_

    def get_metric(self) -> Callable[..., float]:
        """Return the learned distance as a function `(u, v, squared=False)` of two rows.

        The function holds a copy of the map and can be pickled. It works wherever a callable metric
        is accepted, but `transform` followed by the Euclidean distance is faster.
        """
        check_is_fitted(self, "components_")
        return partial(_distance, self.components_.copy())

    def pair_distance(self, pairs: Any) -> np.ndarray:
        """Return the learned distance within each pair.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p)
            Two rows per pair.

        Returns
        -------
        array of shape (n_pairs,)
            `||components_ (u - v)||`, not squared.
        """
        check_is_fitted(self, "components_")
        pairs = validate_pairs(pairs, self.components_.shape[1])
        return np.linalg.norm((pairs[:, 0] - pairs[:, 1]) @ self.components_.T, axis=1)

    def pair_score(self, pairs: Any) -> np.ndarray:
        """Return `-pair_distance(pairs)`, which is larger for more similar pairs."""
        return -self.pair_distance(pairs)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]


def _distance(components: np.ndarray, u: Any, v: Any, squared: bool = False) -> float:
    difference = components @ np.subtract(u, v, dtype=np.float64)
    square = float(difference @ difference)
    return square if squared else square**0.5


class SpectralEmbedding(CallbackSupportMixin, LinearEmbedding):
    """A linear map from the scatters of one or two graphs, found by an eigenproblem.

    Abstract. A subclass defines `__init__`, which stores the parameters (including `n_components`
    and, where neighbours are searched, `search`), and `_solve`, which implements the paper's
    algorithm. It extends `_check_parameters` to check its own parameters. `fit` is final.

    A method that does not need y sets `_needs_labels` to False.

    `_neighbor_counts` names the parameters that are a number of neighbours or "auto"; `_solve` gets
    each from `_number_of_neighbors`, and sets the attribute with a trailing underscore. "auto"
    takes the smallest k among 1, 3, 5, 7, 10 and 15 whose 1-NN accuracy in the learned space is
    within one standard error of the best, on five folds of the training rows. All parameters that
    are "auto" get the same k. The folds are deterministic (see `inner_folds`), and of more than
    2,000 rows they use about 2,000, at least ten of each class. The choice takes 30 fits of at most
    1,600 rows.
    """

    n_components: Any
    search: Any = "exact"  # of methods that search no neighbours
    _needs_labels = True
    _neighbor_counts: tuple[str, ...] = ()

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, distances: Any = None
    ) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes; -1 is a class like any other. `LPP` ignores them
            unless its n_neighbors is "auto".
        sample_weight : array of shape (n,), default=None
            Weights s_i of the rows, at least 0; None for equal weights. Only their ratios matter. A
            row of weight 2 counts as two equal rows that are not neighbours of each other; a row of
            weight 0 is left out. The k nearest rows are k distinct ones, an edge w_ij becomes
            s_i s_j w_ij, and thus

                S(W) = 1/2 sum_ij s_i s_j w_ij (x_i - x_j)(x_i - x_j)'.

            Means, class sizes and other scatters are those of the copies (where the scale matters,
            of s_i / mean(s) copies of row i).
        distances : sparse matrix of shape (n, n), default=None
            Precomputed distances from every row to some others, used in place of a search: the
            method takes its neighbours from these, and makes its graphs of them. (Methods with one
            graph of all rows whose weights are free, such as `LaplacianEigenmaps`, take that graph
            instead, as `affinity`.) Rows that lack neighbours of a class use those they have, with
            a warning. Cross-validation cannot subset this matrix. `RCA` and `GMML` ignore it.

        Returns
        -------
        self
        """
        automatic = [name for name in self._neighbor_counts if equals(getattr(self, name), "auto")]
        task = FitTask(self, X, y, n_iterations=N_SPLITS * bool(automatic))
        X, y, weights, kept = weighted_rows(X, y, sample_weight)
        if distances is not None and np.ndim(sample_weight):
            distances = Listed(distances, len(sample_weight)).G[kept][:, kept]
        if automatic and (y is None or distances is not None):
            no_labels = "requires y to be passed, but the target y is None"
            reason = no_labels if y is None else "splits the rows, which given distances prevent"
            raise ValueError(f"{automatic[0]}='auto' {reason}: give a number of neighbours.")
        if self._needs_labels or automatic:
            X, classes, codes = validate_labelled_rows(self, X, y, self._encode_labels)
        else:
            X = validate_rows(self, X, reset=True)
            classes, codes = None, np.zeros(X.shape[0], dtype=np.intp)
        search = searcher(self.search, X.shape[0], distances)
        in_span = self._solves_in_span(*X.shape)
        rows = Rows(X, codes, search, classes=classes, weights=weights, in_span=in_span)
        scores = None
        if automatic:
            scores = self._scores_of_neighbors(automatic, X, codes, weights, task)
        self.fit_rows(rows, scores)
        task.end()
        return self

    def fit_rows(self, rows: Rows, scores: dict[int, np.ndarray] | None = None) -> Self:
        """Learn the map from rows in memory or elsewhere, through the methods of `Rows`.

        Sets the fitted attributes. If a number of neighbours is "auto", `scores` holds the accuracy
        in every fold for each candidate, and `best_setting` chooses.
        """
        if self._neighbor_counts:
            self.n_neighbors_scores_ = scores
        self._check_parameters(rows.shape[1])
        result = self._solve(rows)
        result.warn(REMEDIES)
        self.components_ = rows.back_project(result.vectors).astype(rows.dtype, copy=False)
        self.eigenvalues_ = result.values
        self.n_components_ = len(self.components_)
        self.objective_ = result.objective
        self.rank_ = result.rank
        self.n_features_in_ = rows.shape[1]
        self.search_ = rows.search.name
        return self

    @abstractmethod
    def _solve(self, rows: Rows) -> SpectralResult:
        """Return the directions, as columns in the coordinates of the scatters of `rows`."""

    def _check_parameters(self, n_features: int) -> None:
        """Raise an error that names the invalid parameter."""
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", 1, n_features)

    _encode_labels = staticmethod(encode_labels)

    def takes_shared_rows(self) -> bool:
        """Return whether `fit_rows(SharedRows(X, y))` learns the map of `fit(X, y)`, up to ties.

        It does not if a number of neighbours is chosen on folds, or if the neighbours are searched
        or the labels encoded in a way of its own.
        """
        automatic = [name for name in self._neighbor_counts if equals(getattr(self, name), "auto")]
        exact = equals(self.search, "exact")
        encoded = type(self)._encode_labels is SpectralEmbedding._encode_labels
        return exact and encoded and not automatic

    def _solves_in_span(self, n: int, p: int) -> bool:
        """Return whether the problem is solved in the span of the rows if p > n."""
        return True

    def _number_of_neighbors(self, name: str) -> int:
        """Return the value of a parameter in `_neighbor_counts`; for "auto" the k of the folds."""
        k = getattr(self, name)
        if equals(k, "auto"):
            scores = self.n_neighbors_scores_
            if scores is None:
                raise ValueError(
                    f"{name}='auto' needs rows in memory: give the {name}_ of a fit to a sample "
                    "of them."
                )
            k = list(scores)[best_setting(list(scores.values()))]
        return check_integer(k, name, 1)

    def _scores_of_neighbors(
        self,
        names: list[str],
        X: Any,
        codes: np.ndarray,
        weights: np.ndarray | None,
        task: FitTask,
    ) -> dict[int, np.ndarray]:
        """Return the accuracy in every fold for each candidate number of neighbours."""
        sample = sample_rows(X, codes)
        X, codes, weights = X[sample], codes[sample], weights_of(weights, sample)
        params = self.get_params(deep=False)
        scores = []
        with warnings.catch_warnings(action="ignore"):  # from fits that are not kept
            for train, test in inner_folds(X, codes):
                of_fold = []
                for k in NUMBERS_OF_NEIGHBORS:
                    learner = type(self)(**params | dict.fromkeys(names, k))  # without callbacks
                    learner.fit(X[train], codes[train], weights_of(weights, train))
                    # 1-NN: copies of a row would not change the vote
                    vote = KNeighborsClassifier(1).fit(learner.transform(X[train]), codes[train])
                    Z = learner.transform(X[test])
                    of_fold.append(vote.score(Z, codes[test], weights_of(weights, test)))
                scores.append(of_fold)
                task.iteration(partial(dict, components_=learner.components_))
        if not scores:
            raise ValueError(
                f"{names[0]}='auto' needs two rows of a class in y: give a number of neighbours."
            )
        return dict(zip(NUMBERS_OF_NEIGHBORS, np.transpose(scores), strict=True))


class ShrunkEmbedding(SpectralEmbedding):
    """A spectral method that divides by S_w, shrunk by the parameter `shrinkage` (see `LDE`)."""

    shrinkage: Any

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        s = self.shrinkage
        if s is not None and (isinstance(s, str) or check_number(s, "shrinkage", 0) > 1):
            raise ValueError(
                f"shrinkage must be None or a number between 0 and 1, got {s!r}: choose between "
                "None and 0.5 by inner folds, e.g. with GridSearchCV."
            )
        self.shrinkage_ = 0.0 if s is None else float(s)

    def _shrunk(self, S_w: np.ndarray, rows: Rows) -> np.ndarray:
        """Return S_w, shrunk on the span of the rows by `shrinkage_`."""
        if self.shrinkage_ == 0:
            return S_w
        return shrunk(S_w, range_basis(rows.total_scatter()), self.shrinkage_)
