"""What an embedding adapter accepts, where it begins, and how it descends from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._validation import check_choice, check_integer, check_number, check_positive
from ..descent import DescentResult, OnIteration, Value, adam
from ..objectives.cosine import LOSSES, nested_loss
from ..scatter import total_scatter
from ..spectral import ratio_trace
from ._supervision import Supervision
from .quantization import QUANTIZERS

BATCH = 512  # rows, pairs, triplets or queries a step
FEWEST_STEPS = 5  # an iteration
FIRST_STEP = 0.1  # of the norm of the map
ROUNDING = 1e-10  # of psi
UNKNOWN_SHARE = 0.5  # of the within-class covariance that stands for differences between classes that are not known


def check_parameters(adapter: Any) -> int:
    """Raise an error that names what is wrong; return max_iter."""
    check_choice(adapter.loss, "loss", ("auto", *LOSSES))
    check_choice(adapter.side, "side", ("both", "query"))
    if adapter.quantize is not None:
        check_choice(adapter.quantize, "quantize", tuple(QUANTIZERS))
    check_positive(adapter.temperature, "temperature")
    check_number(adapter.alpha, "alpha", 0)
    if adapter.side == "query" and (adapter.nested is not None or adapter.quantize == "binary"):
        what = "nested sizes need" if adapter.nested is not None else 'quantize="binary" needs'
        raise ValueError(f'{what} side="both": documents that stay as they are can be neither cut nor rotated.')
    if adapter.n_components is not None:
        check_integer(adapter.n_components, "n_components", 1)
    return check_integer(adapter.max_iter, "max_iter", 1)


def plda(rows: np.ndarray, kind: Supervision, m: int) -> np.ndarray:
    """Return the start A_0 of `EmbeddingAdapter`, (m, p), of norm sqrt(m): probabilistic LDA.

    Where B is nowhere positive, rows that belong together are no nearer than others, and all directions weigh alike.
    """
    S_t, S_w = total_scatter(rows) / len(rows), kind.within_covariance()
    variance = np.trace(S_w) or np.trace(S_t)
    found = ratio_trace(UNKNOWN_SHARE * S_w - S_t, S_w + variance / len(S_w) * np.eye(len(S_w)), m)
    psi = np.where(-found.values > ROUNDING, -found.values, 0)
    A = (found.vectors * np.sqrt(psi / (1 + 2 * psi) if psi.any() else 1)).T
    return A * (m / np.sum(A**2)) ** 0.5


def nested_sizes(nested: Sequence[int] | None, m: int) -> list[int]:
    """Return the sizes of a nested embedding in ascending order, m the last."""
    nested = [] if nested is None else nested
    if not np.iterable(nested):
        raise TypeError(f"nested must be a sequence of integers, got {nested!r} ({type(nested).__name__}).")
    return sorted({m, *(check_integer(size, "a size of nested", 1, m) for size in nested)})


def descend(
    estimator: Any, kind: Supervision, start: np.ndarray, sizes: list[int], on_iteration: OnIteration
) -> DescentResult:
    """Minimize the loss plus the penalty by Adam, in steps that shorten to 0; `sizes` are those of `nested_loss`."""
    rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31))
    n_batches = -(-len(kind) // BATCH)
    n_steps = max(n_batches, FEWEST_STEPS)
    weight, longest = estimator.alpha / len(kind) ** 0.5, FIRST_STEP * float(np.linalg.norm(start))
    batches: list[np.ndarray] = []

    def estimate(A: np.ndarray, t: int) -> Value:
        if t % n_batches == 0:
            batches[:] = np.array_split(kind.order(rng), n_batches)
        comparison = kind.comparison(batches[t % n_batches], rng)
        value, gradient = nested_loss(A, comparison, estimator.temperature, estimator.loss_, sizes)
        return value + weight * float(np.sum((A - start) ** 2)), gradient + 2 * weight * (A - start)

    def step(t: int) -> float:
        return longest * (1 - t / (estimator.max_iter * n_steps))

    return adam(
        estimate, start, n_batches=n_steps, max_iter=estimator.max_iter, tol=0, step=step, on_iteration=on_iteration
    )
