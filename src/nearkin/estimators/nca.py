"""Neighbourhood Components Analysis (Goldberger, Roweis, Hinton and Salakhutdinov, NIPS 2004)."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from .._callbacks import FitTask, with_callbacks
from .._labels import check_shared_labels
from .._memory import require_memory
from .._validation import validate_labelled_rows, validate_target_rows
from ..neighbors import searcher
from ..objectives.pair_weights import PairWeights, SameClass, TargetKernel, target_bandwidth
from ._alpha_path import choose_alpha, n_iterations
from ._rows_in_place import rows_and_init, rows_in_place
from ._sgd import Minibatches, SGDState
from .descent_embedding import COMPARED, EARLY, DescentEmbedding, n_directions
from .nca_problem import NCAProblem, NCARows, check_parameters, coordinates_of, inits


def _descends_by_minibatches(nca: NCA) -> bool:
    if nca.solver != "sgd":
        raise AttributeError(f"partial_fit needs solver='sgd', got solver={nca.solver!r}.")
    return True


class NCA(DescentEmbedding):
    """Neighbourhood Components Analysis: maximizes the accuracy of stochastic nearest neighbours.

    Row i draws row j as its neighbour with probability p_ij and takes over its label; with classes C_i,

        p_ij = exp(-||A x_i - A x_j||^2) / sum_k exp(-||A x_i - A x_k||^2),  p_ii = 0        (eq. 1)
        q_i = sum_(j in C_i) p_ij                                                             (eq. 2)

    and the map A maximizes the expected share of rows that are labelled right, or the mean log-probability of that,

        f(A) = 1/n sum_i q_i  (eq. 3)          g(A) = 1/n sum_i log q_i  (eq. 6)

    minus the penalty `alpha / sqrt(n) ||A||^2 u^2`. u is the typical distance of neighbours, so that alpha means the
    same for any scale of the features. For real-valued targets the sum over C_i becomes one over all rows, with weights
    `w_ij = exp(-(y_i - y_j)^2 / (2 h^2))` (section 5). h is a quarter of the targets' standard deviation, estimated by
    their interquartile range, IQR / 1.349 (of the distinct ones where that is 0), which outliers do not change.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or the rank of the centred rows for p > n.
    objective : {"expected_accuracy", "log_likelihood"}, default="expected_accuracy"
        f or g. g penalizes badly misclassified samples heavily; f ignores them.
    structure : {"full", "diagonal"}, default="full"
        A diagonal A weights the features and does not mix them; its n_components must be None.
    target : {"classes", "continuous"}, default="classes"
        What y holds: labels, or real numbers.
    n_candidates : "auto", int or None, default="auto"
        None lets every other row be a neighbour: exact, O(n^2) an iteration. An integer k keeps the k nearest in the
        current embedding, searched again every 15 iterations, and 500 rows, evenly drawn, that stand for all others;
        for g also the nearest of the same class. "auto" is exact up to 8,000 rows, then k = 50; with solver="sgd"
        it is always k = 15, and the 500 rows are drawn at random for every step.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How candidates are searched. "auto" is approximate from 100,000 rows on; a transformer is one like
        scikit-learn's KNeighborsTransformer, which is cloned.
    alpha : float or "cv", default=0.15
        Weight of the penalty; 0 for none, as in the paper: it then overfits where rows are few. "cv" compares 0.015,
        0.05, 0.15 and 0.5 by the soft vote (`SoftNeighborsClassifier`) on held-out rows, in 3 folds of at most about
        2,000 rows: its accuracy, or for real-valued targets its mean absolute error. It takes the one nearest to 0.15
        of those at most one standard error of the difference behind the best. The map is that of a fit with this
        alpha; the choice costs as much as one to four fits.
    init : {"auto", "identity", "pca", "lda", "random"} or array of shape (m, p), default="auto"
        Where the descent begins. "auto" takes the identity if all dimensions are kept, and otherwise PCA or, for fewer
        dimensions than classes and dense X, LDA (S_w shrunk by 0.01), whichever has the lower loss. Directions are
        scaled to a mean perplexity of the p_ij of 10 (half the rows, for fewer than 20), larger where the penalty would
        exceed 1: no init is flat. An array is taken as it is; for a diagonal map, of shape (p,).
    n_init : int, default=1
        Descents: from `init`, the others from random directions. The lowest loss is kept.
    solver : {"lbfgs", "sgd"}, default="lbfgs"
        L-BFGS, an iteration for the gradient of all rows, or stochastic gradient, a step for that of some rows. "sgd"
        is for many rows, from about 10,000, and copies none of them but those of a step.
    batch_size : "auto" or int, default="auto"
        With solver="sgd", the largest number of rows that draw their neighbours in a step. "auto" is a twentieth of
        them, but at least 128 and at most 512.
    max_iter : "auto" or int, default="auto"
        With solver="lbfgs", iterations allowed to a descent: "auto" is 200. With "sgd", epochs, in each of which every
        row draws once: "auto" is as many as hold 500 steps, one epoch for 256,000 rows or more.
    tol : float, default=1e-5
        A descent has converged when an iteration lowers the loss by less, relative to max(loss, 1). With solver="sgd",
        when a step does in the mean over the last fifth of them, up to noise; all epochs are taken even so.
    warm_start : bool, default=False
        Whether `fit` begins with `components_` of the last fit, if there is one, instead of `init`.
    random_state : int, RandomState or None, default=None
        Seed of the random directions; with solver="sgd", of all that is drawn.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A. It has a scale: p_ij is what eq. 1 says of `transform(X)`.
    n_components_ : int
    alpha_ : float
        The weight of the penalty in use.
    alpha_scores_ : dict of float to float, or None
        For alpha="cv", the held-out accuracy of every alpha; of real-valued targets minus the mean absolute error.
    target_bandwidth_ : float
        h, for target="continuous".
    objective_ : float
        f or g at A, a mean over the rows: exact, or the estimate from the candidates at A. With solver="sgd" it is
        always an estimate, from at most 5,000 rows, each with its 50 nearest (at least) and 2,000 that stand for all.
    objective_error_ : float
        Standard error of `objective_` from taking some rows only; 0 where all are used.
    perplexity_ : float
        Mean of exp(entropy) of the p_ij of a row, the learned k, from at most 1,000 rows and their 100 nearest;
        `SoftNeighborsClassifier.local_k` has that of every row.
    n_iter_ : int
        Iterations of the descent that was kept, or epochs.
    loss_curve_ : ndarray of shape (at least `n_iter_` + 1,)
        What is minimized, before and after every iteration. With candidates it may jump where they are searched again.
        With solver="sgd", estimates, each at the map of its step: of the first, then the mean over every epoch.
    search_, search_recall_
        See `LDE`: of the candidates, as they were searched the last time.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If max_iter ended the descent before it converged, or it has not moved from its init.

    See Also
    --------
    NCAClassifier, LMNN, PairNCA

    Notes
    -----
    The scale of the features decides where the descent begins and what the penalty costs: standardize them. Embeddings
    of text are better whitened, `make_pipeline(RCA(shrinkage="auto"), NCA(64))`: on those of banking77 precision at 10
    rises from .86 to .90. But 22 of 34 tables lose by it, one 4 points, and so do pixels.

    Cost: an iteration takes O(n^2 m + n p m), with candidates O(n k m + n p m) and a search among n^2 pairs every 15
    iterations; memory is O(n (p + m + k)), never n x n. Up to 2,000 rows everything is computed in float64, beyond in
    float32 with float64 sums. Sparse X stays sparse if n_components is given; a diagonal map needs n x p dense numbers.

    Stochastic gradient: f and g are means over rows, so a step estimates their gradient from b rows, without bias. It
    is against the mean of the last gradients (Adam with one scale for all entries); its length falls evenly from 0.1 of
    the norm of a map that keeps distances to 0. Candidates are searched at the init and after a fifth of the steps. A
    step costs O(b k m p); memory beyond X, which may be a numpy.memmap, is O(n (m + k)). 10,000 rows make the init.

    KeyboardInterrupt, or a callback, ends the descent; the best map so far is kept (there is none while alpha is
    chosen), and the interrupt is raised again.

    References
    ----------
    J. Goldberger, S. Roweis, G. Hinton, R. Salakhutdinov: Neighbourhood Components Analysis. NIPS 17 (2004).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import NCA
    >>> X, y = load_wine(return_X_y=True)
    >>> nca = NCA(2).fit(scale(X), y)
    >>> nca.transform(scale(X)).shape
    (178, 2)
    >>> nca.objective_ > 0.95  # share of rows that a random near neighbour labels right
    True
    """

    compared_as: ClassVar[dict] = {
        "NCA": COMPARED | {"params": EARLY, "regression": {"target": "continuous"} | EARLY},
        "NCA log": COMPARED | {"params": {"objective": "log_likelihood"} | EARLY},
    }

    _needs_labels = True
    _sgd_state: SGDState | None = None

    def __init__(
        self,
        n_components: int | None = None,
        *,
        objective: str = "expected_accuracy",
        structure: str = "full",
        target: str = "classes",
        n_candidates: int | str | None = "auto",
        search: Any = "exact",
        alpha: float | str = 0.15,
        init: Any = "auto",
        n_init: int = 1,
        solver: str = "lbfgs",
        batch_size: int | str = "auto",
        max_iter: int | str = "auto",
        tol: float = 1e-5,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.objective = objective
        self.structure = structure
        self.target = target
        self.n_candidates = n_candidates
        self.search = search
        self.alpha = alpha
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any) -> NCA:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes, -1 a class like any other; or real numbers that are not all equal. A
            row alone in its class cannot be labelled right: it counts 0 in f and is left out of g.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations(self))
        X, pair_weights = self._validate(X, y)
        m, rng = n_directions(self, X.shape[1]), check_random_state(self.random_state)
        search = searcher(self.search, X.shape[0])
        within_span = self.structure == "full" and not (issparse(X) and m < X.shape[1])
        nca, self.alpha_scores_ = copy(self), None
        if self.alpha == "cv":
            nca.alpha, self.alpha_scores_ = choose_alpha(self, X, pair_weights, m, task, within_span=within_span)
        self.alpha_ = float(nca.alpha)
        problem: NCAProblem | Minibatches
        if self.solver == "lbfgs":
            rows = NCARows.of(X, within_span=within_span, pair_weights=pair_weights, search=search)
            problem = NCAProblem(nca, rows, m, rng)
        else:
            rows, init = rows_and_init(nca, X, pair_weights, search, m, rng, within_span=within_span)
            problem = Minibatches(nca, rows, init, X.shape[0], np.random.default_rng(rng.randint(2**31)))
        return self.fit_problem(problem, X.dtype, task)

    @available_if(_descends_by_minibatches)  # type: ignore[untyped-decorator]
    @with_callbacks
    def partial_fit(self, X: Any, y: Any) -> NCA:
        """Continue from the present map with more rows, or begin with these.

        One epoch of solver="sgd": each of the rows is an anchor once, and draws its neighbour among the rows of this
        call; labels matter within a call only. Steps shrink with 1 / sqrt(t), t counting those of all calls, and the
        penalty counts all rows. The first call sets the unit u (and the bandwidth h). Pass rows in random order, some
        thousands at a time: among fewer, neighbours are too far apart.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal; to begin with, at least n_components.
        y : array of shape (n,)
            As for `fit`.

        Returns
        -------
        self
            `objective_` and `perplexity_` are those of the rows of this call; `loss_curve_` is longer by one.
        """
        check_parameters(self)
        task = FitTask(self, X, y, n_iterations=1)
        first = not hasattr(self, "components_")
        if first and self.alpha == "cv":
            raise ValueError("alpha='cv' needs fit: begin with it, on the first rows, or take a number, such as 0.15.")
        X, pair_weights = self._validate(X, y, reset=first)
        nca, n, state, rng = copy(self), X.shape[0], self._sgd_state, check_random_state(self.random_state)
        nca.alpha = self.alpha_ = self.alpha_ if self.alpha == "cv" else float(self.alpha)
        search = searcher(self.search, n)
        if state is None:
            m = n_directions(self, min(X.shape)) if first else len(self.components_)
            rows, init = rows_and_init(nca, X, pair_weights, search, m, rng, within_span=False)
            B = next(inits(nca, rows, init)) if first else coordinates_of(nca, self.components_, "components_", rows)
            state = SGDState.of(B, None, rows, 0)
        rows = rows_in_place(X, state.unit, pair_weights, search)
        batches = Minibatches(nca, rows, None, state.n_counted + n, np.random.default_rng(rng.randint(2**31)), state)
        return self.fit_problem(batches, X.dtype, task)

    def _validate(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, PairWeights]:
        pair_weights: PairWeights
        if self.target == "classes":
            X, codes = validate_labelled_rows(self, X, y, reset=reset)
            check_shared_labels(codes)
            pair_weights = SameClass(codes)
        else:
            X, targets = validate_target_rows(self, X, y, reset=reset)
            if reset:
                self.target_bandwidth_ = target_bandwidth(targets)
            pair_weights = TargetKernel(targets - np.median(targets), self.target_bandwidth_)
        if self.structure == "diagonal" and issparse(X):
            require_memory(4 * 8 * X.shape[0] * X.shape[1], "A diagonal map of sparse X", "take structure='full'")
        return X, pair_weights
