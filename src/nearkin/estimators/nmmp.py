"""Neighborhood MinMax Projections (Nie, Xiang and Zhang, IJCAI 2007)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .._validation import check_choice, check_integer, check_number, shape_of
from ..spectral import (
    SpectralResult,
    SpectralStatus,
    generalized_eigh,
    range_basis,
    trace_difference,
    trace_ratio,
)
from .base import COMPARED_AMOUNTS, ShrunkEmbedding
from .rows import Rows


class NMMP(ShrunkEmbedding):
    """Neighborhood MinMax Projections: the trace ratio of mutual same- and other-class neighbours.

    S_w is the scatter of the same-class pairs that are among each other's k_w nearest of that class
    (eq. 3). S_b is the scatter of the other-class pairs that are among each other's k_b nearest of
    all other classes (eq. 5). NMMP maximizes

        tr(W'S_b W) / tr(W'S_w W)   subject to W'W = I     (eq. 8)

    to its global optimum, in the range of the total scatter (the paper's step 0, which is part of
    the problem). By default S_w is shrunk first (see `LDE`). Without shrinkage, if m directions
    without within-class scatter exist, the ratio is infinite and S_b alone is maximized among them
    (the paper's case 2). The paper's choice is arbitrary in directions in which S_b vanishes as
    well; they are left out first if the ratio stays infinite without them.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None takes 3 times the number of classes, for the trace ratio at most half of
        the rank of X; of the rules tried on many data sets, these lost least. In the paper's form,
        `shrinkage=None`, few components of the trace ratio are weak, and None takes half of the
        rank: on digits, 9 components classify worse than 9 of the ratio trace, and 30 equally well.
        The paper takes 60 for images and text. m = rank does not change any distance. Choose m by
        cross-validation if you can.
    n_neighbors_within : int, sequence, dict or None, default=None
        k_w for all classes, or k_w(i) for each: a sequence in the order of the sorted labels or,
        for rows in memory, a dict by label. None is the paper's n_c // 2 + 2 for a class of n_c
        rows (at most n_c - 1). **That graph has O(sum n_c^2) edges**: a class of 10,000 rows takes
        two gigabytes. Choose a number, e.g. 10, for large classes. The paper calls k_w and k_b "not
        sensitive" (section 6). On its text data they matter: as both vary, 3-NN is right on 34.4 to
        71.1 % of the rows, on the fewest with small k_w (`python -m reproductions
        nmmp-sensitivity`).

        .. measured/papers.md#nmmp-section-6-the-parameters-in-our-method-are-not-sensitive
    n_neighbors_between : int, sequence or dict, default=10
        k_b for all classes, or k_b(i). See `n_neighbors_within` on how much it matters.
    criterion : {"trace_ratio", "ratio_trace"}, default="trace_ratio"
        "ratio_trace" instead maximizes tr((W'(S_w + S_b)W)^-1 W'S_b W), by one generalized
        eigenproblem. Directions are then not orthonormal but scaled such that W'(S_w + S_b)W = I,
        and without shrinkage the criterion does not depend on the units of the features. It works
        well if there are far more rows than features, and overfits if there are about as many
        features as rows.
    weight : float or None, default=None
        lambda of eq. 6: maximizes tr(W'(S_b - lambda S_w)W) instead of the ratio. The optimal ratio
        is the lambda for which that maximum is 0. Its unit is that of S_b over S_w: choose values
        near `objective_` of a fit without it.
    shrinkage, search
        See `LDE`.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        Rows w_i, best first; orthonormal for the trace ratio.
    eigenvalues_ : ndarray of shape (m,)
        Descending. Trace ratio: eigenvalues of S_b - rho S_w, the first m of which sum to 0 at the
        optimum; with `weight`, of S_b - lambda S_w. Ratio trace: the share w'S_b w / w'(S_w + S_b)w
        of each direction, in [0, 1].
    objective_ : float
        The trace ratio rho (infinite where S_w vanishes, the paper's case 2), the sum of the
        shares, or eq. 6.
    rank_ : int
        Dimension of the space in which the problem was solved.
    n_iter_ : int
        Number of eigendecompositions.
    n_components_, shrinkage_, search_
        See `LDE`.

    Warns
    -----
    UserWarning
        If there are fewer directions than requested, or if no rows of different classes are mutual
        neighbours.
    ConvergenceWarning
        If the trace ratio did not converge to a relative tolerance of 1e-10.

    See Also
    --------
    DNE : The trace difference, which sets the dimension itself.
    LDE : The ratio trace, with heat-kernel weights.

    Notes
    -----
    The scale of the features affects the neighbours (and the trace ratio): standardize first unless
    the units are comparable.

    No setting suits every table: with the defaults, nearest neighbours in the learned space may be
    several points less accurate than on the standardized features. Compare both on held-out rows,
    as `nearkin.comparison.compare` does.

    With `sample_weight` s, a pair counts s_i s_j times; the default k_w is computed from the number
    of distinct rows.

    Cost: n^2 pairwise distances, then O(e p + n p^2 + p^3) for e edges; O(e + n p + p^2) memory.
    For p > n the problem is solved in the span of the rows in O(n^2 p), without a p x p matrix.

    References
    ----------
    F. Nie, S. Xiang, C. Zhang: Neighborhood MinMax Projections. IJCAI 2007, 993-998. The optimum is
    found by Newton's method instead of the bisection of Table 1; see
    `nearkin.spectral.trace_ratio`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import NMMP
    >>> X, y = load_wine(return_X_y=True)
    >>> NMMP(n_components=5).fit_transform(scale(X), y).shape
    (178, 5)
    """

    compared_as: ClassVar[dict] = {
        "NMMP ratio trace": {
            "params": {"criterion": "ratio_trace"},
            "settings": lambda p: COMPARED_AMOUNTS,
        },
        "NMMP": {
            "settings": lambda p: [
                {"n_components": m} | amount
                for amount in COMPARED_AMOUNTS
                for m in sorted({min(m, p) for m in (1, 2, 3, 5, 10, 20, 40, 60, 100)})
            ],
            "nested": False,
        },
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors_within: Any = None,
        n_neighbors_between: Any = 10,
        criterion: str = "trace_ratio",
        weight: float | None = None,
        shrinkage: Any = 0.5,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors_within = n_neighbors_within
        self.n_neighbors_between = n_neighbors_between
        self.criterion = criterion
        self.weight = weight
        self.shrinkage = shrinkage
        self.search = search

    def _solve(self, rows: Rows) -> SpectralResult:
        n_c = rows.class_sizes
        k_w = n_c // 2 + 2
        if self.n_neighbors_within is not None:
            k_w = self._per_class(rows, "n_neighbors_within")
        k_b = self._per_class(rows, "n_neighbors_between")
        S_w = rows.scatter(rows.mutual_knn("same", np.minimum(k_w, n_c - 1)))
        S_w = self._shrunk(S_w, rows)
        S_b = rows.scatter(rows.mutual_knn("other", k_b))
        T = rows.span_basis()  # step 0: the range of the total scatter
        A, B = T.T @ S_b @ T, T.T @ S_w @ T
        m = self._dimension(len(n_c), rank=len(A))
        self.n_iter_ = 1
        if self.criterion == "ratio_trace":
            result = generalized_eigh(S_b, S_w, None if self.n_components is None else m)
            # the default m is reduced to the rank silently, a requested one with a warning
            return result if self.n_components else result.leading(min(m, result.rank))
        if self.weight is not None:
            # eq. 6; `trace_difference` minimizes, hence the signs
            result = trace_difference(self.weight * B - A, m)
            result = replace(result, values=-result.values[:m], objective=-result.objective)
        else:
            result = trace_ratio(A, B, m)
            # Case 2: drop the directions in which both scatters vanish, if m others are left. This
            # is always done for FLAT, where the criterion decides nothing, else only if the ratio
            # stays unbounded.
            if result.status in (SpectralStatus.UNBOUNDED, SpectralStatus.FLAT):
                R = range_basis(S_w + S_b)
                if R.shape[1] >= m:
                    without = trace_ratio(R.T @ S_b @ R, R.T @ S_w @ R, m)
                    if result.status in (SpectralStatus.FLAT, without.status):
                        T, result = R, without
            self.n_iter_ = result.n_iter
        return replace(result, vectors=T @ result.vectors, rank=T.shape[1])

    def _dimension(self, n_classes: int, rank: int) -> int:
        """Return m: `n_components`, or the number that it stands for if it is None."""
        if self.n_components is not None:
            return self.n_components
        if self.criterion == "ratio_trace":
            return 3 * n_classes
        half_the_rank = -(-rank // 2)
        return min(3 * n_classes, half_the_rank) if self.shrinkage_ > 0 else half_the_rank

    def _per_class(self, rows: Rows, name: str) -> Any:
        """Return k, one number or one per class in the order of their labels."""
        k, n_classes = getattr(self, name), len(rows.class_sizes)
        if isinstance(k, Mapping):
            try:
                k = [k[label] for label in rows.classes]
            except KeyError as unknown:
                raise ValueError(
                    f"{name} has no number for class {unknown.args[0]!s}: give one for every class."
                ) from None
        shape = shape_of(k, name)
        if not shape:
            return check_integer(k, name, 1)
        if shape != (n_classes,):
            raise ValueError(
                f"{name} has {shape[0]} numbers and y {n_classes} classes: give one for each."
            )
        return np.array([check_integer(number, name, 1) for number in k])

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        check_choice(self.criterion, "criterion", ("trace_ratio", "ratio_trace"))
        if self.weight is not None:
            check_number(self.weight, "weight", 0)
            if self.criterion == "ratio_trace":
                raise ValueError(
                    "weight has no meaning for criterion='ratio_trace': leave one of them out."
                )
