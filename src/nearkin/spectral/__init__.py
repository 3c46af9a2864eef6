"""Solvers from matrices to directions; they know neither rows nor labels nor graphs.

* `criteria`: trace difference, ratio trace and trace ratio of dense matrices, the criteria of
  discriminant embedding. A solve returns a frozen `SpectralResult` with a diagnosis.
* `geodesic`: the geometric mean of two positive definite matrices, and the points beside it.
* `sparse_eigen`: the smallest eigenpairs of a large sparse matrix, orthogonal to a given vector.

Nothing is regularized silently: any choice is an attribute of the method.
"""

from .criteria import (
    LEAST_WITHIN,
    SpectralResult,
    SpectralStatus,
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
from .geodesic import geometric_mean
from .sparse_eigen import smallest_eigenpairs, smallest_of_dense, spectral_norm

__all__ = [
    "LEAST_WITHIN",
    "SpectralResult",
    "SpectralStatus",
    "choose_solver",
    "generalized_eigh",
    "geometric_mean",
    "largest_scatter_first",
    "range_basis",
    "ratio_trace",
    "shrunk",
    "smallest_eigenpairs",
    "smallest_of_dense",
    "spectral_norm",
    "trace_difference",
    "trace_ratio",
    "unit_within_scatter",
]
