"""NCA with a network instead of a matrix (Goldberger et al., NIPS 2004, section 5).

First the method, then held-out rows and the network: its outputs, the default, its state as arrays.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._messages import warn_user
from .._validation import (
    check_choice,
    check_integer,
    check_number,
    check_positive,
    check_random_state,
    equals,
)
from ..bandwidth import nearest_squares, perplexity_bandwidth, unit_distance
from ..objectives.network import OBJECTIVES, SparsePairWeights, neighbor_terms, objective_value
from .base import Embedding
from .descent_embedding import principal_directions
from .pairs import check_pair_weights, check_pairs
from .validation import validate_rows, validate_with_target

MOST_COMPONENTS = 50  # of the default network, by default
HELD_OUT = 2000  # rows or pairs, at most
HIDDEN = 100  # units of the default network: the paper's number
STEPS = 500  # minimum number of steps of a fit, by default
# the descent ends after this share of the epochs without a better value on the held-out rows
PATIENCE = 0.2
EVALUATION_ROWS = 5000  # of the final objective, at most


class NeuralNCA(CallbackSupportMixin, Embedding):
    """Nonlinear NCA: a network learns a space in which nearest neighbours tend to share a label.

    A network phi replaces NCA's matrix. Row i draws another row j as its neighbour with probability

        p_ij = exp(-||phi(x_i) - phi(x_j)||^2) / sum_k exp(-||phi(x_i) - phi(x_k)||^2)     (eq. 1)

    The weights w_ij >= 0 say which neighbours are correct: 1 for rows of one class, `exp(-(y_i -
    y_j)^2 / (2 h^2))` for real-valued targets, or those of given pairs. phi maximizes one of the
    following, by automatic differentiation in torch and Adam on minibatches:

        q_i = sum_j w_ij p_ij                                                  (eq. 2, section 5)
        f = 1/n sum_i q_i,      g = 1/n sum_i log q_i                          (eqs. 3 and 6)
        1 / sum w sum_ij w_ij log( exp(-||z_i - z_j||^2) / sum_{c != d} exp(-||z_c - z_d||^2) )
                                                                               (eq. 8)

    Parameters
    ----------
    n_components : int or None, default=None
        m of the default network, at most p; None is p, at most 50. With a `module` it must be None.
    module : torch.nn.Module, function or None, default=None
        The network: a module, which is copied, or a function of the number of features that returns
        one. It maps unscaled rows, (b, p) in float32, to (b, m). With eq. 8, the initial outputs
        should be at most about 1 apart. None is `x -> s (A x + B relu(C x + d))` with 100 hidden
        units, for centred rows in units of the typical distance of neighbours. It starts as PCA at
        a mean perplexity of 10, with B = 0; s is fixed.
    objective : {"auto", "expected_accuracy", "log_likelihood", "pair_likelihood"}, default="auto"
        f, g, or minus eq. 8 (the cost of `PairNCA`) with weights of sum 1. "auto" is f with y and
        eq. 8 with pairs.
    target : {"classes", "continuous"}, default="classes"
        What y holds: class labels or real numbers, for which h is that of `NCA`.
    batch_size : int, default=256
        Minimum number of rows per step (always less than twice this); all rows if there are fewer.
        Neighbours are drawn among the rows of a step, which should hold several of every class.
    learning_rate : float, default=0.01
        Initial learning rate of Adam, which decreases linearly to 0.
    max_iter : "auto" or int, default="auto"
        Number of epochs, in each of which every row, or pair, takes part once. "auto" takes as many
        as 500 steps need.
    validation_fraction : float, default=0.1
        Share of the rows, or of the pairs, that are held out from training, at most 2,000. The
        state with the highest objective on them is kept; a fifth of max_iter without improvement
        ends the descent. With 0, none are held out and the last state is kept.
    random_state : int, RandomState or None, default=None
        Seed of the held-out rows, the minibatches and torch, whose global state does not change.

    Attributes
    ----------
    state_ : dict of str to ndarray
        The network's `state_dict()`. Together with `module`, it is all that is needed to restore
        the network.
    origin_, unit_
        Shift of shape (p,) and scale of the features. The input of the network is `(x - origin_) /
        unit_`; they are 0 and 1 for a `module`.
    n_components_ : int
    target_bandwidth_ : float
        h, for target="continuous".
    objective_ : float
        f, g or minus eq. 8, over all rows; if there are more than 5,000, over that many random
        rows, each compared with all others.
    n_iter_ : int
        Number of epochs.
    best_iter_ : int
        The epoch whose state is kept; 0 is the init.
    loss_curve_ : ndarray of shape (`n_iter_`,)
        Minus the objective, averaged over the steps of every epoch.
    validation_curve_ : ndarray of shape (`n_iter_` + 1,)
        The objective of the held-out rows, with neighbours among all rows, before and after every
        epoch; NaN if none are held out.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If no epoch improved the objective on the held-out rows.

    See Also
    --------
    NCA, PairNCA

    Notes
    -----
    Needs torch: `pip install "nearkin[deep]"`. Rows must be dense; computations and results are in
    float32. Scale the features if their units differ. A row that is the only one of its class in a
    minibatch counts 0 in f and g.

    The estimator can be pickled and cloned if `module` can; a lambda cannot. A KeyboardInterrupt
    ends the descent; the best state so far is kept, and the interrupt is raised again.

    Cost: a step takes O(b^2 m) and a forward and a backward pass of b rows. Held-out rows add a
    forward pass of all rows and O(n_held n m) per epoch. Memory is O(n p + b^2), in float32.

    References
    ----------
    See `NCA`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import NeuralNCA
    >>> X, y = load_wine(return_X_y=True)
    >>> NeuralNCA(2, random_state=0).fit_transform(scale(X), y).shape
    (178, 2)
    """

    _needs_labels = True

    def __init__(
        self,
        n_components: int | None = None,
        *,
        module: Any = None,
        objective: str = "auto",
        target: str = "classes",
        batch_size: int = 256,
        learning_rate: float = 0.01,
        max_iter: int | str = "auto",
        validation_fraction: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.module = module
        self.objective = objective
        self.target = target
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, pairs: Any = None, weights: Any = None) -> NeuralNCA:
        """Learn the network.

        Parameters
        ----------
        X : array of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Labels or targets; None with pairs.
        pairs : array of shape (n_pairs, 2), default=None
            Indices of two similar rows each, given instead of y.
        weights : array of shape (n_pairs,), default=None
            Weights of the pairs, at least 0; None for equal weights.

        Returns
        -------
        self
        """
        torch = import_torch()
        self._check_parameters()
        task = FitTask(self, X, y, None if self.max_iter == "auto" else int(self.max_iter))
        X, pair_weights, units = self._validate(X, y, pairs, weights)
        n = len(X)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        held, units = hold_out(units, self.validation_fraction, rng)
        objective = self.objective
        if objective == "auto":
            objective = "expected_accuracy" if pairs is None else "pair_likelihood"

        def terms(Z: Any, rows: np.ndarray, numbers: np.ndarray) -> Any:
            """Return the terms of the objective for some rows of Z, whose rows are X[numbers]."""
            log_w = pair_weights.log_weights(numbers[rows][:, None], numbers[None], np.float32)
            log_w = torch.as_tensor(0.0 if log_w is None else log_w)
            return neighbor_terms(objective, Z, torch.from_numpy(rows), log_w)

        def value(rows: np.ndarray) -> float:
            """Return the objective of some rows with neighbours among all; NaN for no rows."""
            if not len(rows):
                return np.nan
            Z = outputs(network, inputs)
            parts = [terms(Z, rows[block], np.arange(n)) for block in row_blocks(len(rows), n)]
            return float(objective_value(objective, torch.cat(parts, dim=1)))

        with torch.random.fork_rng(devices=[]):  # torch's global state does not change
            torch.manual_seed(int(rng.integers(2**31)))
            self.origin_, self.unit_ = np.zeros(X.shape[1]), 1.0
            if self.module is None:
                self.origin_, self.unit_ = X.mean(axis=0, dtype=np.float64), unit_distance(X)
            inputs = self._inputs(X)
            network = begun(inputs, self.n_components) if self.module is None else self._network()
            self.n_components_ = outputs(network, inputs[:1]).shape[1]
            n_batches = max(1, units.size // self.batch_size)
            n_epochs = -(-STEPS // n_batches) if self.max_iter == "auto" else int(self.max_iter)
            # Adam with a learning rate that decreases to 0. Without held-out rows the last state is
            # kept.
            adam = torch.optim.Adam(network.parameters(), self.learning_rate)
            losses, values, interrupted = list[float](), [value(held)], False
            best_iter, state = 0, copy.deepcopy(network.state_dict())
            try:
                while len(losses) < n_epochs and len(losses) - best_iter <= PATIENCE * n_epochs:
                    mean_loss = 0.0
                    for t, batch in enumerate(np.array_split(rng.permutation(units), n_batches)):
                        done = (len(losses) + t / n_batches) / n_epochs
                        adam.param_groups[0]["lr"] = self.learning_rate * (1 - done)
                        adam.zero_grad()
                        numbers = np.unique(batch)
                        Z = network.train()(inputs[numbers])
                        found = terms(Z, np.arange(len(numbers)), numbers)
                        loss = -objective_value(objective, found)
                        loss.backward()
                        adam.step()
                        mean_loss += loss.item() / n_batches
                    losses.append(mean_loss)
                    values.append(value(held))
                    if not values[-1] <= values[best_iter]:  # NaN without held-out rows
                        best_iter, state = len(losses), copy.deepcopy(network.state_dict())
                    if task.iteration(lambda state: {"state_": arrays_of(state)}, state):
                        break
            except KeyboardInterrupt:
                interrupted = True
            network.load_state_dict(state)
            self.objective_ = value(rng.permutation(n)[:EVALUATION_ROWS])
        self.state_, self.best_iter_, self.n_iter_ = arrays_of(state), best_iter, len(values) - 1
        self.loss_curve_ = np.array(losses[: self.n_iter_])
        self.validation_curve_ = np.array(values)
        if interrupted:
            raise KeyboardInterrupt
        if best_iter == 0:
            found_none = "No epoch has raised the objective of held-out rows, the init is kept"
            warn_user(
                f"{found_none}: take another learning_rate, more rows, or NCA.", ConvergenceWarning
            )
        task.end()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Map rows with the network.

        Parameters
        ----------
        X : array of shape (n, p)

        Returns
        -------
        Z : float32 array of shape (n, m)
            Euclidean distances between its rows are the learned distances.
        """
        check_is_fitted(self, "state_")
        inputs = self._inputs(validate_rows(self, _dense(X), reset=False))
        torch = import_torch()
        with torch.random.fork_rng(devices=[]):
            network = self._network()
        network.load_state_dict({name: torch.as_tensor(A) for name, A in self.state_.items()})
        return outputs(network, inputs).numpy()

    def _check_parameters(self) -> None:
        """Raise an error that names the invalid parameter."""
        check_choice(self.objective, "objective", ("auto", *OBJECTIVES))
        check_choice(self.target, "target", ("classes", "continuous"))
        check_integer(self.batch_size, "batch_size", 2)
        check_positive(self.learning_rate, "learning_rate")
        if check_number(self.validation_fraction, "validation_fraction", 0) > 0.5:
            raise ValueError(
                f"validation_fraction must be at most 0.5, got {self.validation_fraction}."
            )
        if not equals(self.max_iter, "auto"):
            check_integer(self.max_iter, "max_iter", 1)
        if self.module is not None and self.n_components is not None:
            raise ValueError(
                "n_components must be None with a module, which sets it, got "
                f"{self.n_components!r}."
            )

    def _validate(
        self, X: Any, y: Any, pairs: Any, weights: Any
    ) -> tuple[np.ndarray, Any, np.ndarray]:
        """Return X, the pair weights, and the units of minibatches: rows (n, 1) or pairs."""
        X = _dense(X)
        if pairs is not None:
            if y is not None:
                raise ValueError("y and pairs exclude each other: pass one of them.")
            X = validate_rows(self, X, reset=True)
            pairs = check_pairs(pairs, len(X))
            weights = check_pair_weights(weights, len(pairs))
            return X, SparsePairWeights(pairs, weights, len(X)), pairs[weights > 0]
        if weights is not None:
            raise ValueError("weights are those of pairs: pass pairs, too.")
        X, pair_weights = validate_with_target(self, X, y)
        return X, pair_weights, np.arange(len(X))[:, None]

    def _network(self) -> Any:
        """Return a copy of the network, in float32, before its state is set."""
        torch = import_torch()
        network = copy.deepcopy(self.module)
        if network is None:
            network = default_network(self.n_components_, self.n_features_in_)
        elif callable(network) and not isinstance(network, torch.nn.Module):
            network = network(self.n_features_in_)
        if not isinstance(network, torch.nn.Module):
            raise TypeError(
                "module must be a torch.nn.Module, or a function of n_features that returns one; "
                f"got {network!r}."
            )
        return network.float()

    def _inputs(self, X: np.ndarray) -> Any:
        """Return the input of the network, a tensor."""
        with np.errstate(over="ignore"):
            inputs = ((X - self.origin_) / self.unit_).astype(np.float32)
        return import_torch().from_numpy(inputs)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _dense(X: Any) -> Any:
    """Return X, or raise an error if it is sparse."""
    if issparse(X):
        raise TypeError(
            "X is sparse, and networks take dense rows: pass X.toarray(), or reduce it by "
            "TruncatedSVD."
        )
    return X


def hold_out(
    units: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the held-out units, and the units that contain none of these rows."""
    units = rng.permutation(units)
    held = np.unique(units[: min(round(share * len(units)), HELD_OUT)])
    units = units[~np.isin(units, held).any(axis=1)]
    if units.size < 2:
        raise ValueError(
            f"validation_fraction={share} holds out rows of all pairs, which leaves none to learn "
            "from: take 0."
        )
    return held, units


def outputs(network: Any, inputs: Any) -> Any:
    """Return the outputs of a network for rows, computed in blocks."""
    torch = import_torch()
    with torch.no_grad():
        Z = torch.cat([network.eval()(inputs[block]) for block in row_blocks(*inputs.shape)])
    if Z.ndim != 2 or len(Z) != len(inputs):
        raise ValueError(
            f"module must map rows of shape (b, p) to (b, m); of {tuple(inputs.shape)} it makes "
            f"{tuple(Z.shape)}."
        )
    if not Z.isfinite().all():
        raise ValueError(
            "The network returns NaN or infinity: standardize the features, or lower learning_rate."
        )
    return Z


def default_network(m: int, p: int, scale: float = 1.0) -> Any:
    """Return `x -> s (A x + B relu(C x + d))` with B = 0, a network that starts as a linear map."""
    torch = import_torch()
    base: Any = torch.nn.Module

    class Network(base):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(p, m, bias=False)
            self.hidden = torch.nn.Linear(p, HIDDEN)
            self.out = torch.nn.Linear(HIDDEN, m, bias=False)
            self.register_buffer("scale", torch.tensor(scale))
            torch.nn.init.zeros_(self.out.weight)

        def forward(self, x: Any) -> Any:
            return self.scale * (self.linear(x) + self.out(self.hidden(x).relu()))

    return Network()


def begun(inputs: Any, n_components: int | None) -> Any:
    """Return the default network, initialized as PCA of these rows at a mean perplexity of 10."""
    X = inputs.numpy()
    n, p = X.shape
    m = min(p, MOST_COMPONENTS)
    if n_components is not None:
        m = check_integer(n_components, "n_components", 1, p)
    A = np.zeros((m, p), np.float32)
    A[: min(m, n)] = principal_directions(X, min(m, n), random_state=0)
    network = default_network(m, p, 1 / perplexity_bandwidth(nearest_squares(X @ A.T)))
    network.linear.weight.data[:] = import_torch().from_numpy(A)
    return network


def arrays_of(state: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the `state_dict()` of a network as arrays."""
    return {name: tensor.numpy(force=True) for name, tensor in state.items()}


def import_torch() -> Any:
    """Import and return torch, which only networks need."""
    try:
        import torch
    except ImportError as error:
        raise ImportError('NeuralNCA needs torch: pip install "nearkin[deep]".') from error
    return torch
