"""Matrices in, directions out; rows, labels and graphs are unknown here.

* `criteria`: trace difference, ratio trace, trace ratio of dense matrices, the criteria of
  discriminant embedding, and what a solve returns, a frozen `SpectralResult` with a diagnosis.
* `sparse_eigen`: the smallest eigenpairs of a large sparse matrix, orthogonal to the constant
  vector.

Nothing is regularized silently: what is chosen is an attribute of the method.
"""

from .criteria import (
    LEAST_WITHIN,
    ZERO,
    SpectralResult,
    Status,
    choose_solver,
    generalized_eigh,
    largest_scatter_first,
    range_basis,
    ratio_trace,
    shrunk,
    trace_difference,
    trace_ratio,
    unit_within_scatter,
)
from .sparse_eigen import smallest_eigenpairs, smallest_of_dense

__all__ = [
    "LEAST_WITHIN",
    "ZERO",
    "SpectralResult",
    "Status",
    "choose_solver",
    "generalized_eigh",
    "largest_scatter_first",
    "range_basis",
    "ratio_trace",
    "shrunk",
    "smallest_eigenpairs",
    "smallest_of_dense",
    "trace_difference",
    "trace_ratio",
    "unit_within_scatter",
]
