"""Matrices in, directions out; rows, labels and graphs are unknown here.

* `criteria`: trace difference, ratio trace, trace ratio of dense matrices: the criteria of discriminant embedding.
* `smallest`: the smallest eigenpairs of a large sparse matrix, orthogonal to the constant vector.
* `lanczos`: extreme eigenpairs of an operator, checked by a second start.
* `result`: what a solve returns, a frozen `SpectralResult` with a diagnosis.

Nothing is regularized silently.
"""

from .criteria import (
    generalized_eigh,
    largest_scatter_first,
    range_basis,
    ratio_trace,
    trace_difference,
    trace_ratio,
    unit_within_scatter,
)
from .lanczos import ZERO, choose_solver
from .result import SpectralResult, Status
from .smallest import smallest_eigenpairs, smallest_of_dense

__all__ = [
    "ZERO", "SpectralResult", "Status", "choose_solver", "generalized_eigh", "largest_scatter_first", "range_basis",
    "ratio_trace", "smallest_eigenpairs", "smallest_of_dense", "trace_difference", "trace_ratio",
    "unit_within_scatter",
]  # fmt: skip
