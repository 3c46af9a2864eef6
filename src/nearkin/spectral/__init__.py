"""Matrices in, directions out; rows, labels and graphs are unknown here.

* `criteria`: trace difference, ratio trace, trace ratio of dense matrices: the criteria of
  discriminant embedding.
* `smallest`: the smallest eigenpairs of a large sparse matrix, orthogonal to the constant vector.
* `lanczos`: extreme eigenpairs of an operator, checked by a second start.
* `shrinkage`: how far a within-class scatter is shrunk toward a multiple of the identity.
* `result`: what a solve returns, a frozen `SpectralResult` with a diagnosis.

Nothing is regularized silently: what is chosen is an attribute of the method.
"""

from .criteria import LEAST_WITHIN as LEAST_WITHIN
from .criteria import ZERO as ZERO
from .criteria import SpectralResult as SpectralResult
from .criteria import Status as Status
from .criteria import choose_solver as choose_solver
from .criteria import generalized_eigh as generalized_eigh
from .criteria import largest_scatter_first as largest_scatter_first
from .criteria import range_basis as range_basis
from .criteria import ratio_trace as ratio_trace
from .criteria import shrunk as shrunk
from .criteria import trace_difference as trace_difference
from .criteria import trace_ratio as trace_ratio
from .criteria import unit_within_scatter as unit_within_scatter
from .sparse_eigen import smallest_eigenpairs as smallest_eigenpairs
from .sparse_eigen import smallest_of_dense as smallest_of_dense
