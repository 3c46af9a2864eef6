"""Which learned metric makes nearest neighbours right? A held-out comparison that may answer "none".

Every method is judged by the same k-NN vote on the same held-out rows. Whatever a method leaves open (its dimension,
DNE's k) is chosen by validation inside the training rows; scaling is learned there, too. The differences to k-NN on the
raw features are paired by fold, and tested by the corrected resampled t-test (folds share training rows, so their
differences are not independent; Nadeau and Bengio 2003) with Holm's correction for the number of methods.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.stats import t as student
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_consistent_length

from ._array import encode_labels, refuse_foreign
from ._memory import available_memory, human_bytes
from .estimators import DNE, LPP, NMMP

DIMENSIONS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200)
INNER_SPLITS = 3
PILOT_ROWS = 1000
SIGNIFICANCE = 0.05

Params = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A contestant: an unfitted map, and what inner validation chooses for it.

    Attributes
    ----------
    name : str
    estimator : transformer with a parameter `n_components`, or None for the raw features
    settings : function of the number of features p that returns the parameter settings to choose among
    nested : bool
        Whether the first m columns of a fit are the fit with m components; one fit then serves every dimension of
        `DIMENSIONS`. Otherwise `settings` must vary `n_components` itself.
    memory : function of the class sizes that returns the bytes a fit needs beyond the data
    """

    name: str
    estimator: BaseEstimator | None
    settings: Callable[[int], Sequence[Params]] = lambda p: [{}]
    nested: bool = True
    memory: Callable[[np.ndarray], float] = lambda sizes: 0.0


RAW = "raw k-NN"


def default_methods(random_state: int | None = 0) -> list[Method]:
    """Return the raw features, PCA, LDA, every nearkin method and scikit-learn's NCA, the quick ones first."""
    return [
        Method(RAW, None),
        Method("PCA", PCA()),
        Method("LDA", LinearDiscriminantAnalysis()),
        Method("LPP", LPP()),
        Method("DNE", DNE(), lambda p: [{"n_neighbors": k} for k in (1, 3, 10)]),
        Method("NMMP ratio trace", NMMP(criterion="ratio_trace"), memory=_nmmp_memory),
        Method(
            "NMMP", NMMP(), lambda p: _dimensions(p, (2, 3, 5, 10, 20, 40, 60, 100)), nested=False, memory=_nmmp_memory
        ),
        Method(
            "NCA (scikit-learn)",
            NeighborhoodComponentsAnalysis(random_state=random_state),
            lambda p: _dimensions(p, (2, 10)),
            nested=False,
            memory=lambda sizes: 40.0 * sizes.sum() ** 2,  # five n x n arrays of float64
        ),
    ]


def _dimensions(p: int, candidates: Sequence[int]) -> list[Params]:
    return [{"n_components": m} for m in candidates if m < p] + [{"n_components": p}] * (p <= max(candidates))


def _nmmp_memory(sizes: np.ndarray) -> float:
    return 35.0 * float(np.sum(sizes.astype(float) ** 2))


@dataclass(frozen=True)
class MethodResult:
    """What one method did on every held-out fold, and how it stands against the raw features.

    Attributes
    ----------
    name : str
    accuracy, balanced_accuracy : ndarray of shape (n_folds,)
        Share of held-out rows (or mean share over classes) that the vote gets right.
    dimension : ndarray of shape (n_folds,)
        Dimensions in use, as chosen inside the training rows.
    params : tuple of dict
        The chosen parameters of each fold.
    fit_seconds : ndarray of shape (n_folds,)
        Time of one fit with the chosen parameters, the choice not included.
    difference : float
        Mean accuracy minus that of the raw features, paired by fold.
    p_value : float
        Of the corrected resampled t-test, Holm-corrected over the methods; NaN for the raw features.
    """

    name: str
    accuracy: np.ndarray
    balanced_accuracy: np.ndarray
    dimension: np.ndarray
    params: tuple[Params, ...]
    fit_seconds: np.ndarray
    difference: float = 0.0
    p_value: float = float("nan")

    @property
    def verdict(self) -> str:
        """Return "baseline", "better", "worse" or "not shown to differ"."""
        if self.name == RAW:
            return "baseline"
        if not self.p_value < SIGNIFICANCE:
            return "not shown to differ"
        return "better" if self.difference > 0 else "worse"


@dataclass(frozen=True)
class Comparison:
    """The outcome of `compare`.

    Attributes
    ----------
    results : tuple of MethodResult
        Finished methods, highest mean accuracy first.
    winner : Pipeline or None
        The best method that is shown to beat the raw features, else k-NN on the raw features; settings chosen by
        validation on all rows, then fitted on all rows. None after an interruption.
    notes : tuple of str
        What was skipped, reduced or remarked, one line each.
    interrupted : bool
        Whether the run was stopped early; `results` then holds the methods finished until then.
    n_neighbors, n_folds : int
        k of the vote; number of held-out folds.
    scale : bool
    random_state : int
    """

    results: tuple[MethodResult, ...]
    winner: Pipeline | None
    notes: tuple[str, ...]
    interrupted: bool
    n_neighbors: int
    n_folds: int
    scale: bool
    random_state: int

    def __getitem__(self, name: str) -> MethodResult:
        """Return the result of a method by its name."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"{name!r}; finished were {', '.join(result.name for result in self.results)}")

    @property
    def best(self) -> MethodResult:
        """Return the result of the winner: the best method shown to be better, else the raw features."""
        return best_result(self.results)

    @property
    def verdict(self) -> str:
        """Return the outcome in one sentence."""
        raw, methods = self[RAW], [result for result in self.results if result.name != RAW]
        if not methods:
            return (
                f"{self.n_neighbors}-NN on the raw features is right in {raw.accuracy.mean():.1%}; nothing to compare."
            )
        first = methods[0] if self.best is raw else self.best
        evidence = (
            f"{first.name} {first.accuracy.mean():.1%} against {raw.accuracy.mean():.1%} of held-out rows right, "
            f"{100 * first.difference:+.1f} points, p = {first.p_value:.2g} after Holm over {len(methods)} methods"
        )
        if self.best is raw:
            return f"No method is shown to beat raw k-NN here (best: {evidence})."
        return f"{first.name} makes nearest neighbours right more often than the raw features: {evidence}."

    def to_frame(self) -> Any:
        """Return the ranking as a pandas DataFrame, one row a method (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(
            {
                "method": [r.name for r in self.results],
                "accuracy": [r.accuracy.mean() for r in self.results],
                "accuracy_std": [_std(r.accuracy) for r in self.results],
                "balanced_accuracy": [r.balanced_accuracy.mean() for r in self.results],
                "balanced_accuracy_std": [_std(r.balanced_accuracy) for r in self.results],
                "dimension": [float(np.median(r.dimension)) for r in self.results],
                "fit_seconds": [r.fit_seconds.mean() for r in self.results],
                "difference": [r.difference for r in self.results],
                "p_value": [r.p_value for r in self.results],
                "verdict": [r.verdict for r in self.results],
            }
        )


def compare(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    methods: Sequence[Method] | None = None,
    n_neighbors: int = 3,
    n_splits: int = 5,
    n_repeats: int = 3,
    scale: bool = True,
    time_budget: float = 120.0,
    memory_budget: float | None = None,
    random_state: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Compare learned metrics by k-NN on held-out rows, by repeated stratified cross-validation.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Numeric features, finite.
    y : array of shape (n,)
        Class labels, each at least twice.
    groups : array of shape (n,), default=None
        Rows of one group are never on both sides of a split.
    methods : sequence of Method, default=None
        Contestants; None takes `default_methods()`. The raw features always take part.
    n_neighbors : int, default=3
        k of the vote.
    n_splits, n_repeats : int, default=5, 3
        Folds, and how often they are drawn anew. Folds are reduced to the size of the smallest class, with a note.
    scale : bool, default=True
        Whether to standardize the features on the training rows (sparse X: divide by the deviation only).
    time_budget : float, default=120
        Seconds a method may take in all; one that is expected to need more, by a pilot on at most 1,000 rows and
        quadratic growth, or that does, is skipped with a note.
    memory_budget : float, default=None
        Bytes a fit may need; None takes half of what is free.
    random_state : int, default=0
        Seed of the folds and of the methods that draw.
    progress : callable, default=None
        Called as `progress(method name, folds done, folds)`.

    Returns
    -------
    Comparison
        After a KeyboardInterrupt it holds what was finished; with nothing finished the interrupt is raised again.

    Raises
    ------
    ValueError
        If X or y is malformed, a class has one row, or there are fewer than three groups.

    Notes
    -----
    Costs, for every method and fold, 3 fits for each of its settings and one more.
    """
    X, y, groups = _check_table(X, y, groups)
    contestants = list(methods) if methods is not None else default_methods(random_state)
    if all(method.name != RAW for method in contestants):
        contestants.insert(0, Method(RAW, None))
    protocol = _Protocol(X, y, groups, n_neighbors, scale, random_state)
    notes: list[str] = []
    folds = protocol.folds(n_splits, n_repeats, notes)
    budget = _Budget(time_budget, memory_budget or (available_memory() or np.inf) / 2)
    finished: list[MethodResult] = []
    results: tuple[MethodResult, ...] = ()
    winner = None
    interrupted = False
    try:
        for method in contestants:
            try:
                finished.append(_judge(method, protocol, folds, budget, notes, progress or (lambda *_: None)))
            except _Skipped as reason:
                notes.append(f"{method.name} skipped: {reason}")
        results = _ranked(finished, folds)
        winner = _fit_winner(results, contestants, protocol)
    except KeyboardInterrupt:
        if not finished:
            raise
        interrupted = True
        notes.append(f"Interrupted: {len(finished)} of {len(contestants)} methods were finished, no winner was fitted.")
        results = _ranked(finished, folds)
    return Comparison(results, winner, tuple(notes), interrupted, n_neighbors, len(folds), scale, random_state)


Fold = tuple[np.ndarray, np.ndarray]


class _Skipped(Exception):
    """A method was given up; the text says why."""


@dataclass(frozen=True)
class _Budget:
    seconds: float
    n_bytes: float

    def check_seconds(self, expected: float) -> None:
        if expected > self.seconds:
            raise _Skipped(f"expected to take {expected:.0f} s, the time budget is {self.seconds:g} s")


@dataclass(frozen=True)
class _Protocol:
    """The rules that every method is judged by."""

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    n_neighbors: int
    scale: bool
    random_state: int

    def folds(self, n_splits: int, n_repeats: int, notes: list[str]) -> list[Fold]:
        """Return the outer folds; reduce them to the rows (groups) of the smallest class, and say so."""
        members = self.y if self.groups is None else np.unique(np.stack([self.y, self.groups]), axis=1)[0]
        labels, counts = np.unique(members, return_counts=True)
        unit = "rows" if self.groups is None else "groups"
        possible = max(2, int(counts.min()))
        if possible < n_splits:
            notes.append(
                f"{n_splits} folds reduced to {possible}: class {labels[counts.argmin()]!s} has {counts.min()} {unit}."
            )
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=n_repeats)
        everybody = np.arange(len(self.y))
        return [fold for seed in seeds for fold in self._splits(everybody, min(n_splits, possible), seed)]

    def inner_folds(self, rows: np.ndarray) -> list[Fold]:
        """Return folds of some training rows."""
        members = self.y[rows] if self.groups is None else self.groups[rows]
        count = np.unique(members, return_counts=True)[1].min() if self.groups is None else len(np.unique(members))
        return self._splits(rows, int(np.clip(count, 2, INNER_SPLITS)), self.random_state)

    def _splits(self, rows: np.ndarray, n_splits: int, seed: int) -> list[Fold]:
        splitter = (StratifiedKFold if self.groups is None else StratifiedGroupKFold)(
            n_splits, shuffle=True, random_state=seed
        )
        groups = None if self.groups is None else self.groups[rows]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class")  # said in the notes
            splits = list(splitter.split(rows, self.y[rows], groups))
        return [(rows[train], rows[test]) for train, test in splits]

    def pipeline(self, method: Method, params: Params) -> Pipeline:
        """Return scaler, map and vote, unfitted."""
        steps: list[tuple[str, Any]] = []
        if self.scale:
            steps.append(("scale", StandardScaler(with_mean=not issparse(self.X))))
        if method.estimator is not None:
            steps.append(("map", clone(method.estimator).set_params(**params)))
        vote = KNeighborsClassifier(self.n_neighbors, algorithm="brute")
        return Pipeline([*steps, ("vote", vote)])

    def choose(self, method: Method, rows: np.ndarray) -> Params:
        """Return the parameters with the highest mean accuracy on inner folds of the rows; of equals the smallest."""
        settings = method.settings(self.X.shape[1])
        if method.estimator is None or (len(settings) == 1 and not method.nested):
            return settings[0]
        scores: dict[tuple[int, int | None], list[float]] = {}
        folds = self.inner_folds(rows)
        for train, test in folds:
            for number, setting in enumerate(settings):
                for m, score in self._scores_by_dimension(method, setting, train, test).items():
                    scores.setdefault((number, m), []).append(score)
        complete = {key: np.mean(values) for key, values in scores.items() if len(values) == len(folds)}
        number, m = max(complete, key=lambda key: (complete[key], -(key[1] or np.inf), -key[0]))
        return settings[number] | ({} if m is None else {"n_components": m})

    def _scores_by_dimension(
        self, method: Method, setting: Params, train: np.ndarray, test: np.ndarray
    ) -> dict[int | None, float]:
        """Return the accuracy for every number of leading dimensions; None stands for all of them."""
        *maps, (_, vote) = self.pipeline(method, setting).steps
        mapping = Pipeline(maps).fit(self.X[train], self.y[train])
        Z_train, Z_test = mapping.transform(self.X[train]), mapping.transform(self.X[test])
        cuts = [m for m in DIMENSIONS if m < Z_train.shape[1]] if method.nested else []
        return {
            m: vote.fit(Z_train[:, :m], self.y[train]).score(Z_test[:, :m], self.y[test]) for m in [*cuts, None]
        }  # fmt: skip


def _judge(
    method: Method,
    protocol: _Protocol,
    folds: list[Fold],
    budget: _Budget,
    notes: list[str],
    progress: Callable[[str, int, int], None],
) -> MethodResult:
    """Return what the method does on every fold, or raise `_Skipped`."""
    start = time.perf_counter()
    rows = []
    progress(method.name, 0, len(folds))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if method.name != RAW:
            _check_budget(method, protocol, folds, budget)
        for done, fold in enumerate(folds, start=1):
            rows.append(_judge_fold(method, protocol, fold))
            progress(method.name, done, len(folds))
            if method.name != RAW and done < len(folds):
                budget.check_seconds((time.perf_counter() - start) * len(folds) / done)
    notes.extend(_summarized(method.name, caught))
    accuracy, balanced, dimension, params, seconds = zip(*rows, strict=True)
    return MethodResult(
        method.name, np.array(accuracy), np.array(balanced), np.array(dimension), params, np.array(seconds)
    )  # fmt: skip


def _judge_fold(method: Method, protocol: _Protocol, fold: Fold) -> tuple[float, float, int, Params, float]:
    train, test = fold
    X, y = protocol.X, protocol.y
    try:
        params = protocol.choose(method, train)
        model = protocol.pipeline(method, params)
        start = time.perf_counter()
        model.fit(X[train], y[train])
        seconds = time.perf_counter() - start
        predicted = model.predict(X[test])
    except (ValueError, TypeError, MemoryError, np.linalg.LinAlgError) as error:
        if method.name == RAW:
            raise
        raise _Skipped(str(error).partition("\n")[0]) from error
    dimension = model[-1].n_features_in_
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y_pred contains classes not in y_true")
        balanced = balanced_accuracy_score(y[test], predicted)
    return accuracy_score(y[test], predicted), balanced, dimension, params, seconds


def _check_budget(method: Method, protocol: _Protocol, folds: list[Fold], budget: _Budget) -> None:
    """Raise `_Skipped` when a method is expected to need too much, before it does."""
    train = folds[0][0]
    n_bytes = method.memory(np.unique(protocol.y[train], return_counts=True)[1])
    if n_bytes > budget.n_bytes:
        raise _Skipped(f"a fit needs about {human_bytes(n_bytes)}, the memory budget is {human_bytes(budget.n_bytes)}")
    settings = method.settings(protocol.X.shape[1])
    fits = len(folds) * (1 + INNER_SPLITS * len(settings))
    pilot = check_random_state(0).permutation(train)[:PILOT_ROWS]
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            protocol.pipeline(method, settings[-1]).fit(protocol.X[pilot], protocol.y[pilot])
    except (ValueError, TypeError, MemoryError, np.linalg.LinAlgError) as error:
        raise _Skipped(str(error).partition("\n")[0]) from error
    budget.check_seconds(fits * (time.perf_counter() - start) * (len(train) / len(pilot)) ** 2)


def _summarized(name: str, caught: list[warnings.WarningMessage]) -> Iterator[str]:
    """Yield each distinct warning once, with how often it came."""
    for text, count in Counter(str(warning.message) for warning in caught).items():
        if not text.startswith("n_components="):  # the dimensions tried may exceed a fold's rank: harmless
            yield f"{name} warned in {count} fits: {text}"


def _ranked(finished: list[MethodResult], folds: list[Fold]) -> tuple[MethodResult, ...]:
    """Return the results by mean accuracy, with differences to the raw features and corrected p-values."""
    raw = next(result for result in finished if result.name == RAW)
    test_share = float(np.mean([len(test) / len(train) for train, test in folds]))
    others = [result for result in finished if result.name != RAW]
    p_values = holm([corrected_resampled_t_test(r.accuracy - raw.accuracy, test_share) for r in others])
    judged = [
        replace(result, difference=float(np.mean(result.accuracy - raw.accuracy)), p_value=p_value)
        for result, p_value in zip(others, p_values, strict=True)
    ]
    return tuple(sorted([raw, *judged], key=lambda result: -result.accuracy.mean()))


def corrected_resampled_t_test(differences: np.ndarray, test_share: float) -> float:
    """Return the two-sided p-value for a mean difference of 0 over the folds of a repeated cross-validation.

    `t = mean(d) / sqrt((1/J + test_share) var(d))` with J - 1 degrees of freedom; `test_share`, the test rows over the
    training rows, corrects for the training rows that folds share (Nadeau and Bengio, Machine Learning 52, 2003).
    """
    J = len(differences)
    mean, variance = differences.mean(), differences.var(ddof=1)
    if variance == 0:
        return 1.0 if mean == 0 else 0.0
    statistic = mean / np.sqrt((1 / J + test_share) * variance)
    return float(2 * student.sf(abs(statistic), J - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down corrected p-values, in the order given."""
    order = np.argsort(p_values)
    steps = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(p_values) else []
    return corrected.tolist()


def _fit_winner(results: Sequence[MethodResult], contestants: Sequence[Method], protocol: _Protocol) -> Pipeline:
    """Return the winner with its settings chosen by validation on all rows, fitted on all rows."""
    name = best_result(results).name
    method = next(method for method in contestants if method.name == name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever it warns of, it warned of in the folds
        params = protocol.choose(method, np.arange(len(protocol.y)))
        return protocol.pipeline(method, params).fit(protocol.X, protocol.y)


def best_result(results: Sequence[MethodResult]) -> MethodResult:
    """Return the first result that is shown to be better than the raw features, else that of the raw features."""
    better = [result for result in results if result.verdict == "better"]
    return better[0] if better else next(result for result in results if result.name == RAW)


def _std(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _check_table(X: Any, y: Any, groups: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
    refuse_foreign(X)
    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    y = np.asarray(y)
    check_consistent_length(X, y, groups)
    classes, codes = encode_labels(y)
    sizes = np.bincount(codes)
    if sizes.min() < 2:
        raise ValueError(
            f"class {classes[sizes.argmin()]!s} has a single row, which cannot be both learned from and held out: "
            "merge it with another class or drop it."
        )
    if groups is not None:
        groups = np.unique(np.asarray(groups), return_inverse=True)[1]
        if groups.max() < 2:
            raise ValueError(f"groups holds {groups.max() + 1} groups: at least 3 are needed to hold some out.")
    return X, y, groups
