"""The parameter `shrinkage` of the methods that divide by a within-class scatter."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_number
from ..spectral import range_basis, shrinkage_by_discrepancy, shrunk
from ._rows import Rows
from .base import SpectralEmbedding

# Among which `compare` chooses, the default first: neither is better on all tables (benchmarks/shrinkage.py).
COMPARED_AMOUNTS: tuple[dict[str, Any], ...] = ({"shrinkage": 0.5}, {"shrinkage": None})


class ShrinkageEmbedding(SpectralEmbedding):
    """A spectral method with a parameter `shrinkage`, which is described in `LDE`. Abstract."""

    shrinkage: Any
    _objective_phrase = "sum of the between-class shares {objective_:.4g}"

    def _shrink(self, rows: Rows, S_w: np.ndarray, degrees_of_freedom: float) -> np.ndarray:
        """Return S_w shrunk on the span of the rows; sets `shrinkage_`."""
        self.shrinkage_ = 0.0
        if self.shrinkage is None:
            return S_w
        T = range_basis(rows.total_scatter())
        if self.shrinkage == "auto":
            self.shrinkage_ = shrinkage_by_discrepancy(S_w, T.shape[1], degrees_of_freedom)
        else:
            self.shrinkage_ = float(self.shrinkage)
        return shrunk(S_w, T, self.shrinkage_)

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        s = self.shrinkage
        if s is not None and s != "auto" and (isinstance(s, str) or check_number(s, "shrinkage", 0) > 1):
            raise ValueError(f"shrinkage must be 'auto', None or a number between 0 and 1, got {s!r}.")
