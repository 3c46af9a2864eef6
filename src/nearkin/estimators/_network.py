"""A network as a problem of descent: the loss of a minibatch, the objective of held-out rows, its state as arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._blocks import row_blocks
from .._validation import check_integer
from ..objectives.network import neighbor_terms, objective_value
from .initialization import nearest_squares, perplexity_bandwidth, principal_directions

MOST_COMPONENTS = 50  # of the default network, by default
HELD_OUT = 2000  # rows or pairs, at most
HIDDEN = 100  # units of the default network: the paper's number
STEPS = 500  # of a fit by default, at least
PATIENCE = 0.2  # of the epochs: after so many without a better value of the held-out rows the descent ends


@dataclass(frozen=True, eq=False)
class NetworkResult:
    """Where a descent has led.

    Attributes
    ----------
    state : dict of str to ndarray
        The best, for the held-out rows.
    best_iter : int
        The epoch after which it was reached.
    losses : ndarray of shape (n_epochs,)
    values : ndarray of shape (n_epochs + 1,)
        The objective of the held-out rows.
    interrupted : bool
        Whether a KeyboardInterrupt ended the descent.
    """

    state: dict[str, np.ndarray]
    best_iter: int
    losses: np.ndarray
    values: np.ndarray
    interrupted: bool


@dataclass(frozen=True, eq=False)
class NetworkProblem:
    """The objective of a network that is being fitted.

    Attributes
    ----------
    network : torch.nn.Module
    X : float32 array of shape (n, p)
        What the network takes.
    pair_weights : SameClass, TargetKernel or SparsePairWeights
    objective : str
    """

    network: Any
    X: np.ndarray
    pair_weights: Any
    objective: str

    def loss(self, numbers: np.ndarray) -> Any:
        """Return minus the objective of some rows among themselves, for a step."""
        Z = self.network.train()(import_torch().from_numpy(self.X[numbers]))
        return -objective_value(self.objective, self._terms(Z, np.arange(len(numbers)), numbers))

    def value(self, rows: np.ndarray) -> float:
        """Return the objective of some rows whose neighbours are all; NaN for no rows."""
        if not len(rows):
            return np.nan
        torch, n = import_torch(), len(self.X)
        Z = torch.from_numpy(outputs(self.network, self.X))
        terms = [self._terms(Z, rows[block], np.arange(n)) for block in row_blocks(len(rows), n)]
        return float(objective_value(self.objective, torch.cat(terms, dim=1)))

    def descend(
        self,
        units: np.ndarray,
        held: np.ndarray,
        *,
        batch_size: int,
        max_iter: int | str,
        learning_rate: float,
        rng: np.random.Generator,
        on_epoch: Callable[[dict[str, np.ndarray]], bool],
    ) -> NetworkResult:
        """Descend by Adam with steps that shrink to nothing, and keep the state that is best for the held-out rows.

        Parameters
        ----------
        units : ndarray of shape (n_units, 1) or (n_units, 2)
            What makes a minibatch: rows, or pairs of rows.
        held : ndarray
            Rows that are held out; without any, the last state is kept.
        batch_size, max_iter, learning_rate
            See `NeuralNCA`.
        rng : Generator
        on_epoch : callable
            Called after every epoch with the best state so far; True ends the descent.
        """
        n_batches = max(1, units.size // batch_size)
        n_epochs = -(-STEPS // n_batches) if max_iter == "auto" else int(max_iter)
        adam = import_torch().optim.Adam(self.network.parameters(), learning_rate)
        best, best_iter, state = self.value(held), 0, arrays_of(self.network)
        losses, values, interrupted = list[float](), [best], False
        try:
            while len(losses) < n_epochs and len(losses) - best_iter <= PATIENCE * n_epochs:
                loss = 0.0
                for t, batch in enumerate(np.array_split(rng.permutation(units), n_batches)):
                    adam.param_groups[0]["lr"] = learning_rate * (1 - (len(losses) + t / n_batches) / n_epochs)
                    adam.zero_grad()
                    batch_loss = self.loss(np.unique(batch))
                    batch_loss.backward()
                    adam.step()
                    loss += batch_loss.item() / n_batches
                losses.append(loss)
                values.append(self.value(held))
                if not values[-1] <= best:  # NaN without held-out rows
                    best, best_iter, state = values[-1], len(losses), arrays_of(self.network)
                if on_epoch(state):
                    break
        except KeyboardInterrupt:
            interrupted = True
        n = len(values) - 1
        return NetworkResult(state, best_iter, np.array(losses[:n]), np.array(values), interrupted)

    def _terms(self, Z: Any, rows: np.ndarray, numbers: np.ndarray) -> Any:
        """Return the terms of some rows of Z, which has these numbers in X."""
        torch = import_torch()
        log_w = self.pair_weights.log_weights(numbers[rows][:, None], numbers[None], np.float32)
        log_w = torch.zeros(len(rows), len(Z)) if log_w is None else torch.from_numpy(log_w)
        return neighbor_terms(self.objective, Z, torch.from_numpy(rows), log_w)


def hold_out(units: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a share of the units, which are held out, and the units without any of them."""
    units = rng.permutation(units)
    held = np.unique(units[: min(round(share * len(units)), HELD_OUT)])
    units = units[~np.isin(units, held).any(axis=1)]
    if units.size < 2:
        raise ValueError(
            f"validation_fraction={share} holds out rows of all pairs, which leaves none to learn from: take 0."
        )
    return held, units


def outputs(network: Any, X: np.ndarray) -> np.ndarray:
    """Return what a network makes of rows, in blocks."""
    torch = import_torch()
    with torch.no_grad():
        Z = torch.cat([network.eval()(torch.from_numpy(X[block])) for block in row_blocks(*X.shape)]).numpy()
    if Z.ndim != 2 or len(Z) != len(X):
        raise ValueError(f"module must map rows of shape (b, p) to (b, m); of {X.shape} it makes {Z.shape}.")
    if not np.isfinite(Z).all():
        raise ValueError("The network returns NaN or infinity: standardize the features, or lower learning_rate.")
    return Z


def default_network(A: Any, scale: float = 1.0) -> Any:
    """Return `x -> s (A x + B relu(C x + d))`, B = 0: a network that begins as a linear map, A an array (m, p)."""
    torch = import_torch()
    base: Any = torch.nn.Module

    class Network(base):
        def __init__(self) -> None:
            super().__init__()
            m, p = A.shape
            self.linear = torch.nn.Linear(p, m, bias=False)
            self.hidden = torch.nn.Linear(p, HIDDEN)
            self.out = torch.nn.Linear(HIDDEN, m, bias=False)
            self.register_buffer("scale", torch.tensor(scale))
            with torch.no_grad():
                self.linear.weight.copy_(torch.from_numpy(A))
                self.out.weight.zero_()

        def forward(self, x: Any) -> Any:
            return self.scale * (self.linear(x) + self.out(self.hidden(x).relu()))

    return Network()


def begun(X: np.ndarray, n_components: int | None) -> Any:
    """Return the default network as it begins for these rows: PCA at a mean perplexity of 10."""
    n, p = X.shape
    m = min(p, MOST_COMPONENTS) if n_components is None else check_integer(n_components, "n_components", 1, p)
    A = np.zeros((m, p), np.float32)
    A[: min(m, n)] = principal_directions(X, min(m, n), random_state=0)
    return default_network(A, 1 / perplexity_bandwidth(nearest_squares(X @ A.T)))


def arrays_of(network: Any) -> dict[str, np.ndarray]:
    """Return the state of a network as arrays, which are copies."""
    return {name: tensor.numpy(force=True).copy() for name, tensor in network.state_dict().items()}


def with_arrays(network: Any, state: dict[str, np.ndarray]) -> Any:
    """Return the network in the state that `arrays_of` has returned."""
    network.load_state_dict({name: import_torch().as_tensor(array) for name, array in state.items()})
    return network


def import_torch() -> Any:
    """Return torch, which only networks need."""
    try:
        import torch
    except ImportError as error:
        raise ImportError('NeuralNCA needs torch: pip install "nearkin[deep]".') from error
    return torch
