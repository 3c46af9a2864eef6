"""Canaries of the figures: small runs of the code that makes them. A figure is older than its code
where the numbers of its canaries are no longer what they were.

    python -m benchmarks.canaries           # all, two at a time, each in a process of its own
    python -m benchmarks.canaries NMMP RCA  # the numbers of these, as JSON

A canary calls the functions of the script of its figures, where it has such, on rows that are drawn
here or come with scikit-learn, in one thread; it needs no NEARKIN_DATA. Its numbers are what it
returns, and of every estimator of nearkin that is fitted meanwhile the number of fits and, as means
over the fits, how far rows stand apart after the map, and what is predicted of them.

Numbers are compared, not a digest of them: BLAS of another machine rounds in another way, and what
has moved can be named. `TOLERANCE` is below the last digit that a page prints, and far above
rounding, also that of descents in float32; `TOLERANCES` are those of runs that amplify it.
Distances do not depend on signs and turns of a map; their logarithms (of 1 + d) compare large ones
relatively and do not fail near zero.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.ndimage import gaussian_filter, rotate
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing as rows_of

import nearkin
from benchmarks.data import Set
from benchmarks.speed import million, predictors, spectral
from benchmarks.studies import (
    adapt,
    comparison,
    few_labels,
    kept,
    metric_learn,
    migrate,
    thresholds,
    verdicts,
)
from nearkin import (
    DNE,
    LDE,
    LMNN,
    MLKR,
    NCA,
    NMMP,
    DiscriminativeProjections,
    EmbeddingAdapter,
    LaplacianEigenmaps,
    Matcher,
    NCAClassifier,
    NCARegressor,
    NeuralNCA,
    SoftNeighborsClassifier,
    TDistributedNCA,
    estimators,
    label_issues,
    neighbors,
)
from nearkin.comparison import compare
from nearkin.datasets import load
from nearkin.graphs import binary, union
from nearkin.neighbors import EXACT, nearest, searcher
from nearkin.neighbors.search import measured_recall
from nearkin.vectors import (
    Labels,
    Relevance,
    Vectors,
    compare_vectors,
    evaluate_migration,
    judged_matrix,
)
from nearkin.vectors import comparison as adaptation
from reproductions.data import SOURCES, Data
from reproductions.experiment import Run
from reproductions.registry import EXPERIMENTS
from reproductions.tdl.tangent import tangent_distances, tangent_graph

ROOT = Path(__file__).parents[1]
TOLERANCE = 1e-4
# Found by flying with the kernels of other processors (OPENBLAS_CORETYPE=Nehalem, Haswell, SkylakeX):
# lines are fitted in spaces of few held-out rows, trace problems without shrinkage have directions of
# no scatter, and votes have ties.
TOLERANCES = {
    "comparison of vectors": 0.005,
    "decisions": 0.01,
    "tables of numbers and words": 0.01,
    "tables of more than 2,000 rows": 0.02,
    "nmmp-table4": 0.05,
    "nmmp-sensitivity": 0.01,
    "nca-figure2": 0.01,
    "tdl-tangent": 0.01,
    "dp-figures6-7": 0.3,
}
AT_A_TIME = 2
Numbers = dict[str, list[float]]


@dataclass(frozen=True)
class Canary:
    """A small run, and the packages that it needs, as they are imported."""

    run: Callable[[], Mapping[str, Any] | None]
    needs: tuple[str, ...] = ()

    def unmet(self) -> list[str]:
        return [need for need in self.needs if find_spec(need) is None]


CANARIES: dict[str, Canary] = {}


def canary(name: str, *needs: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Enter a function into the table of canaries."""

    def enter(run: Callable[[], Any]) -> Callable[[], Any]:
        CANARIES[name] = Canary(run, needs)
        return run

    return enter


# How they run, and how their numbers are compared.


def moved(then: Mapping[str, Numbers], now: Mapping[str, Numbers | str]) -> dict[str, str]:
    """Return what canaries find now and did not then, by their names."""
    said = {
        name: changed(then.get(name), found, TOLERANCES.get(name, TOLERANCE))
        for name, found in now.items()
    }
    return {name: change for name, change in said.items() if change}


def changed(then: Numbers | None, now: Numbers | str, tolerance: float = TOLERANCE) -> str | None:
    """Return the first number that is not what it was, or why none can be compared; or None."""
    if isinstance(now, str):
        return now
    if then is None:
        return "no numbers are recorded"
    for key in sorted({*then, *now}):
        a, b = then.get(key), now.get(key)
        if a is None or b is None or len(a) != len(b):
            return f"{key}: {a} is now {b}"
        for old, new in zip(a, b, strict=True):
            if not math.isclose(new, old, rel_tol=tolerance, abs_tol=tolerance):
                return f"{key}: {old:.7g} is now {new:.7g}"
    return None


def flown(names: Iterable[str]) -> dict[str, Numbers | str]:
    """Return the numbers of canaries, or why there are none.

    They run in a program of its own, whose libraries have one thread from the start, two at a time.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.canaries", *names],
        cwd=ROOT,
        env=os.environ | threads | {"MPLBACKEND": "agg"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(process.stdout)


def outcome(name: str) -> Numbers | str:
    """Return the numbers of a canary, or why there are none, and say how long it took."""
    if unmet := CANARIES[name].unmet():
        return f"not compared here: it needs {', '.join(unmet)}"
    start = time.process_time()
    try:
        return numbers_of(name)
    except Exception as error:
        return f"failed: {type(error).__name__}: {error}"
    finally:
        print(f"{name}: {time.process_time() - start:.1f} s", file=sys.stderr, flush=True)


def numbers_of(name: str) -> Numbers:
    """Run a canary in this process, which is of no use for another one afterwards: scripts are made
    smaller, and estimators are listened to.
    """
    heard = listen()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NEARKIN_DATA"] = folder  # no published rows
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            own = CANARIES[name].run() or {}
    found = {key: flat(value) for key, value in own.items()}
    for key, fits in heard.items():
        found[key] = [
            float(len(fits)),
            *(sum(part) / len(fits) for part in zip(*fits, strict=False)),
        ]
    return {key: [float(f"{value:.8g}") for value in values] for key, values in found.items()}


def flat(value: Any) -> list[float]:
    return np.nan_to_num(np.ravel(np.asarray(value, dtype=float)), posinf=1e9, neginf=-1e9).tolist()


# What is heard of an estimator.

N_HEARD = 6  # rows of every fit


def listen() -> dict[str, list[list[float]]]:
    """From now on, note what every fit of an estimator of nearkin finds, by its class."""
    heard = defaultdict[str, list[list[float]]](list)

    def noted(fit: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fit)
        def fit_and_note(self: Any, *arguments: Any, **named: Any) -> Any:
            result = fit(self, *arguments, **named)
            for key, values in found_by(self, named["X"] if "X" in named else arguments[0]).items():
                heard[f"{type(self).__name__}: {key}"].append(values)
            return result

        return fit_and_note

    names = (*estimators.__all__, "NCAClassifier", "NCARegressor", "EmbeddingAdapter")
    listened = {
        (one, method): getattr(one, method)
        for one in (getattr(nearkin, name) for name in names)
        for method in ("fit", "fit_pairs", "fit_triplets", "fit_quadruplets", "fit_relevance")
        if hasattr(one, method)
    }
    for (one, method), fit in listened.items():
        setattr(one, method, noted(fit))
    return heard


def found_by(model: Any, X: Any) -> dict[str, list[float]]:
    """Return what a fitted model does to some of its rows."""
    if not hasattr(X, "shape") or len(X.shape) != 2 or X.shape[0] < N_HEARD:
        return {}
    some = np.linspace(0, X.shape[0] - 1, N_HEARD).astype(int)
    found = {}
    Z = None
    if hasattr(model, "embedding_"):
        Z = model.embedding_[some]
    elif hasattr(model, "transform"):
        Z = np.asarray(model.transform(rows_of(X, some)), float)
    if Z is not None and Z.ndim == 2:
        distances = np.linalg.norm(np.diff(Z, axis=0), axis=1)
        found["distances"] = [float(Z.shape[1]), *np.log1p(distances).tolist()]
    if hasattr(model, "predict_proba"):
        found["probabilities"] = np.max(model.predict_proba(rows_of(X, some)), axis=1).tolist()
    elif hasattr(model, "predict") and not hasattr(model, "transform"):
        found["predictions"] = flat(model.predict(rows_of(X, some)))[:N_HEARD]
    if hasattr(model, "objective_"):
        found["objective"] = [float(model.objective_)]
    return found


# Rows.


def bundled(name: str, n: int = 200, scale: bool = True) -> tuple[Any, Any]:
    """Return rows and codes of a set that comes with the library, standardized, or with a little
    noise: where distances are equal but for rounding, neighbours would depend on the machine.
    """
    found = load(name)
    rows = np.random.default_rng(0).permutation(len(found.y))[:n]
    X = np.asarray(found.X, float)[np.sort(rows)]
    X += 1e-3 * np.random.default_rng(1).normal(size=X.shape)
    y = np.unique(found.y, return_inverse=True)[1][np.sort(rows)]
    return StandardScaler().fit_transform(X) if scale else X, y


def ties() -> tuple[Any, Any]:
    """Return rows of whole numbers about a whole mean: many distances are equal, and all exact."""
    found = load("balance_scale")
    return found.X - 3.0, (found.y == "B") + 2 * (found.y == "L")


def drawn(n: int, p: int, n_classes: int, seed: int = 0) -> tuple[Any, Any]:
    """Return rows of Gaussian classes that overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    centres = 1.5 / p**0.25 * rng.normal(size=(n_classes, p))
    return centres[y] + rng.normal(size=(n, p)), y


def frame(n: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return a table of numbers, words, dates and gaps, with classes and with numbers to predict."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    word, place = rng.integers(4, size=n), rng.integers(40, size=n)
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * (word == 1) + 0.5 * (place % 3)
    table = pd.DataFrame(X.round(2)).add_prefix("x")
    table.loc[rng.random(n) < 0.1, "x2"] = np.nan
    table["word"] = np.array(["ash", "beech", "elm", "oak"])[word]
    table["place"] = [f"town {number}" for number in place]
    table["mixed"] = np.where(rng.random(n) < 0.1, "none", X[:, 3].round(1).astype(str))
    table["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(900, size=n), "D")
    y = signal + 0.3 * rng.normal(size=n)
    return table, np.digitize(y, np.quantile(y, [0.4, 0.8])), y


def fits(*models: Any) -> None:
    """Fit models to rows of more features than rows, of equal distances, and to ordinary ones."""
    sets = (drawn(60, 90, 3), ties(), bundled("wine"))
    for model in models:
        for X, y in sets:
            clone(model).fit(X, y)


# Neighbours.


def found_neighbors(search: Any, X: Any, y: Any) -> Numbers:
    some = np.linspace(0, len(y) - 1, 25).astype(int)
    lists = {
        "all": neighbors.nearest(X, 5, search),
        "same class": neighbors.nearest_same_class(X, y, 5, search),
        "other classes": neighbors.nearest_other_class(X, y, 5, search),
    }
    return {
        f"{what} of {relation}": flat(
            np.concatenate([part[slice(*G.indptr[i : i + 2])] for i in some])
        )
        for relation, G in lists.items()
        for what, part in (("neighbours", G.indices), ("distances", G.data))
    }


@canary("exact search")
def exact_search() -> Mapping[str, Any]:
    """On whole numbers, where ties are many and products exact, and on others."""
    others = found_neighbors(EXACT, *drawn(300, 20, 80))  # classes of few rows
    return found_neighbors(EXACT, *ties()) | {
        f"{key}, few rows a class": value for key, value in others.items()
    }


@canary("approximate search", "faiss")
def approximate_search() -> Mapping[str, Any]:
    found = {}
    for world in ("modes", "nuisance"):
        X, y = million.drawn(3000, 1, world)
        for relation, question in million.QUESTIONS.items():
            G = question(X, y, 10, searcher("approximate", len(y)))
            recall = measured_recall(X, y, G, million.RELATION[relation])
            found[f"{world}, {relation}"] = [recall, G.data.mean(), G.nnz]
    return found


# Maps, each by its name; `million` has settings of its own.

MAPS = ("DNE", "NMMP", "LPP", "LDE", "MFA", "LFDA", "RCA", "DMLMJ", "GMML", "SDA")


def defaults_of(name: str) -> None:
    fits(getattr(nearkin, name)())


for name in MAPS:
    CANARIES[name] = Canary(partial(defaults_of, name))


@canary("DNE and NMMP, more")
def spectral_settings() -> None:
    """A share of the spectrum, other criteria, no shrinkage, and folds that choose k: without ties,
    which are not exact about the mean of a fold.
    """
    fits(DNE(0.9, n_neighbors=3), LDE(4, shrinkage=None))
    fits(*(NMMP(4, criterion=one, shrinkage=None) for one in ("trace_ratio", "ratio_trace")))
    DNE(n_neighbors="auto").fit(*bundled("wine"))


@canary("DiscriminativeProjections")
def discriminative_projections() -> None:
    X, y = bundled("wine")
    fits(DiscriminativeProjections())
    DiscriminativeProjections(3, target="continuous").fit(X, X[:, 0] + y)


@canary("LMNN")
def lmnn() -> None:
    """Without ties: which rows are within the margin would be rounding's."""
    LMNN().fit(*drawn(60, 90, 3))
    LMNN().fit(*bundled("wine"))


@canary("NCA by L-BFGS")
def nca_lbfgs() -> None:
    fits(NCA(), NCA(2), NCA(objective="log_likelihood"), NCA(structure="diagonal"))
    X, y = bundled("iris")
    NCA(target="continuous").fit(X, X[:, 0])
    SoftNeighborsClassifier().fit(X, y)


@canary("NCA by minibatches")
def nca_sgd() -> None:
    NCA(8, solver="sgd", random_state=0).fit(*drawn(1500, 20, 6))


@canary("MLKR")
def mlkr() -> None:
    X, y = load_diabetes(return_X_y=True)
    MLKR().fit(X[:200], y[:200])


@canary("TDistributedNCA")
def t_nca() -> None:
    """Of few steps: many more amplify rounding."""
    table, y, _ = frame(150)
    for estimator, rows in ((None, bundled("wine")), (NCAClassifier(random_state=0), (table, y))):
        TDistributedNCA(estimator=estimator, max_iter=20, random_state=0).fit(*rows)


@canary("NeuralNCA", "torch")
def neural_nca() -> None:
    for objective in ("expected_accuracy", "log_likelihood"):
        NeuralNCA(objective=objective, random_state=0).fit(*bundled("wine"))


@canary("million", "faiss")
def million_fits() -> None:
    for name in ("DNE", "NMMP", "NMMP without shrinkage", "LPP"):
        for world in ("modes", "nuisance"):
            million.MODELS[name](16, "approximate").fit(*million.drawn(1500, 1, world))


@canary("million, NCA", "faiss")
def million_nca() -> None:
    X, y = million.drawn(1500, 1)
    million.MODELS["NCA"](16, "approximate").fit(X, y)


@canary("speed")
def speed() -> None:
    for model, *_ in spectral.METHODS.values():
        clone(model).fit(*spectral.make_table(500))


@canary("metric-learn")
def beside_metric_learn() -> Mapping[str, Any]:
    """From labels, pairs, triplets, quadruplets and numbers; what stands beside metric-learn."""
    found = {}
    for one in metric_learn.COMPARISONS:
        X, y = (part[:300] for part in next(iter(one.sets.values()))(return_X_y=True))
        X = X + 1e-3 * np.random.default_rng(1).normal(size=X.shape)  # no ties
        folds = metric_learn.folds_of(X, y, one.draw)[:1]
        for _, _, learner in one.rows:
            fitted = metric_learn.fitted_here(learner, one.method, folds)
            for title, score in one.scores.items():
                A = fitted[0][0]
                found[f"{one.title}, {learner}, {title}"] = [score(A, folds[0], learner)]
    return found


@canary("tangent distance")
def tangent_distance() -> Mapping[str, Any]:
    X = images(60, 28)[0]
    G = tangent_graph(X, (28, 28), 5, n_candidates=20)
    return {"distances": tangent_distances(X[:6], X[6:10], (28, 28)), "graph": G.data[:50]}


# Few labels.


@canary("few labels")
def labels_of_few() -> Mapping[str, Any]:
    found = {}
    for name in ("wine", "balance_scale"):
        X, y = bundled(name, 150)
        (few,) = few_labels.draws(y, 0.1, 1)
        for method, label in few_labels.methods(X).items():
            found[f"{name}, {method}"] = [label(X, few)[few < 0].mean()]
    return found


@canary("TDL")
def tdl() -> Mapping[str, Any]:
    X, y = bundled("wine")
    (few,) = few_labels.draws(y, 0.1, 1)
    return {name: [label(X, few).mean()] for name, label in few_labels.labellers().items()}


@canary("LaplacianEigenmaps")
def eigenmaps() -> None:
    X, _ = drawn(400, 20, 5)
    LaplacianEigenmaps(10).fit(X, affinity=union(binary(nearest(X, 20))))
    LaplacianEigenmaps(5).fit(X)


# Predictors of tables.


@canary("tables of numbers and words")
def tables() -> None:
    """Below 2,000 rows: classes and numbers."""
    table, classes, numbers = frame(300)
    NCAClassifier(random_state=0).fit(table, classes)
    NCARegressor(random_state=0).fit(table, numbers)
    NCAClassifier(random_state=0).fit(*bundled("wine", scale=False))
    NCARegressor(random_state=0).fit(*(part[:200] for part in load_diabetes(return_X_y=True)))
    NCAClassifier(n_members=3, class_weight="balanced", random_state=0).fit(table, classes == 2)


@canary("tables of more than 2,000 rows")
def large_tables() -> Mapping[str, Any]:
    X, y = predictors.drawn(2600)
    found = {}
    for task, methods in predictors.METHODS.items():
        target = y > 1 if task == "classes" else y
        model = next(iter(methods.values()))(random_state=0).fit(X[:2400], target[:2400])
        found[task] = [model.score(X[2400:], target[2400:])]
    return found


@canary("decisions")
def decisions() -> Mapping[str, Any]:
    """Sets, intervals, quantiles, doubtful labels, unfamiliar rows, drift."""
    table, classes, numbers = frame(400)
    old, new = table[:300], table[300:].reset_index(drop=True)
    classifier = NCAClassifier(random_state=0).fit(old, classes[:300])
    regressor = NCARegressor(random_state=0).fit(old, numbers[:300])
    issues = label_issues(old, classes[:300])
    return {
        "sets": classifier.predict_set(new, coverage=0.9).sum(axis=0),
        "intervals": regressor.predict_interval(new, coverage=0.9)[:5],
        "quantiles": regressor.predict_quantiles(new, [0.1, 0.5])[:5],
        "issues": [issues.n_issues, *issues.rows[:5]],
        "familiarity": classifier.familiarity(new)[:5],
        "drift": [one.drift(new).has_drifted for one in (classifier, regressor)],
        "effects": np.sort(classifier.feature_effects_)[-3:],
    }


# A comparison.


@canary("comparison")
def compared() -> Mapping[str, Any]:
    """All methods, on one set by the script of the study, and the usual ones on another."""
    of_study = comparison.rank_one(Set("wine", "table"))
    X, y = bundled("balance_scale")
    found = compare(X, y, refit=False, n_jobs=1)
    numbers = {f"wine, {name}": one["scores"] for name, one in of_study["methods"].items()}
    for result in found.results:
        numbers[result.name] = [*result.score, result.dimension[0]]
        numbers[f"{result.name}, p"] = [1.0 if result.p_value is None else result.p_value]
    return numbers


@canary("tests of a comparison")
def tests_of_comparison() -> Mapping[str, Any]:
    found = {}
    for name in verdicts.SCENARIOS:
        sample = verdicts.draw(np.random.default_rng(0), name, 200, None)
        found[name] = list(verdicts.p_values(*sample, 0.0).values())
    return found


@canary("kept models")
def kept_models() -> Mapping[str, Any]:
    """The command: a CSV file is compared, the model saved, and new rows are predicted."""
    table = kept.leaking(np.random.default_rng(0))[:90]
    with tempfile.TemporaryDirectory() as folder:
        cells = kept.evaluate("claims", table, "classification", Path(folder))
    return {"line": [number_in(cell) for cell in cells[2:9]]}


def number_in(cell: str) -> float:
    """Return the number that a cell of a table begins with, NaN without one."""
    try:
        return float(cell.split()[0].strip("%*,"))
    except (IndexError, ValueError):
        return float("nan")


@canary("files")
def files() -> Mapping[str, Any]:
    """A table is read from CSV, Parquet and NPZ files."""
    from benchmarks.speed import command
    from nearkin.app.tables.reading import read_table

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, len(command.NAMES))), rng.choice(command.WORDS, 200)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (write, change, file_name) in command.TABLES.items():
            path = Path(folder, file_name)
            write(change(X), y, path)
            table = read_table(str(path), "y")
            found[name] = [*table.X.shape, *table.X[:3].sum(axis=1), len(set(table.y))]
    return found


# Vectors.


def sentences(n: int = 600) -> tuple[Any, Any]:
    X, y = drawn(n, 48, 12)
    X = X.astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@canary("adapters")
def adapters() -> Mapping[str, Any]:
    X, y = sentences()
    is_query = np.arange(len(y)) // 12 % 4 == 0
    Q, q, C, c = X[is_query], y[is_query], X[~is_query], y[~is_query]
    found: dict[str, Any] = {}
    for name, settings in (
        ("as it comes", {}),
        ("plda", {"start": "plda"}),
        ("nested", {"nested": (4,)}),
        ("seen", {"alpha": 0.05}),
    ):
        adapter = EmbeddingAdapter(8, **settings).fit(C, c)
        found[name] = adapt.score(adapter.transform, Q, q, C, c)
    for way in ("int8", "binary"):
        coded = adapter.quantized(way, C)
        sides = [coded.quantizer_.decode(coded.transform(rows)) for rows in (Q, C)]
        scores = adapt.class_scores(Vectors(*sides), q, c)
        found[way] = [scores[name].mean() for name in adapt.SCORES]
    rows = [(i, j, int(q[i] == c[j])) for i in range(60) for j in range(i, 440, 31)]
    judged = EmbeddingAdapter(8, alpha=1).fit_relevance(Q, C, np.array(rows))
    found["judged"] = adapt.score(judged.transform, Q, q, C, c)
    return found


@canary("matching")
def matching() -> Mapping[str, Any]:
    X, y = sentences()
    rows = np.arange(len(y))
    train, asked = rows[rows // 12 % 3 > 0], rows[rows // 12 % 3 == 0]
    found: dict[str, Any] = {}
    for expect, share in (("known", 0.0), ("new", 0.0), ("known", 0.3)):
        matcher = Matcher(EmbeddingAdapter(8), expect=expect, unanswerable=share)
        best = matcher.fit(X[train], y[train]).best_match(X[asked], X[train], precision=1e-9)
        found[f"{expect}, {share}"] = [*best.rows[:5], *best.probabilities[:5]]
    return found


@canary("thresholds of adapters")
def thresholds_of_adapters() -> Mapping[str, Any]:
    thresholds.QUERIES = 800
    adaptation.SETTINGS[:] = [adaptation.SETTINGS[0] | {"max_iter": 1}]
    adaptation.CHOICE_QUERIES = 1
    _, outcomes = thresholds.draw(0)
    return {"outcomes": outcomes}


@canary("comparison of vectors")
def vectors() -> Mapping[str, Any]:
    """By labels, and by graded judgements, whose few queries have bits that rounding turns."""
    X, y = sentences(240)
    query, document = (part.ravel() for part in np.mgrid[0:60, 60:240:7])
    grades = 2.0 * (y[query] == y[document]) + (y[query] == y[document] - 1)
    R = judged_matrix(query, document - 60, grades, (60, 180))
    found = {}
    for name, judgements in (
        ("labels", Labels(X, y, np.arange(240))),
        ("grades", Relevance(X[:60], X[60:], R, np.arange(60))),
    ):
        for one in compare_vectors(judgements, sizes=(8, 16)).results:
            if name == "grades" and "binary" in one.way.name:
                continue
            for kind, scores in one.scores.items():
                found[f"{name}, {one.way.name}, {kind}"] = list(scores.values())
    return found


@canary("migration")
def migration() -> Mapping[str, Any]:
    X, y = sentences(800)
    rng, found = np.random.default_rng(1), {}
    Y = (X @ rng.normal(size=(48, 48)) / 7 + 0.05 * rng.normal(size=X.shape)).astype(np.float32)
    for side in ("query", "document"):
        for name, transform in migrate.migration_maps(X[:500], Y[:500], y[:500], side).items():
            Z = transform(X[500:506])
            found[f"{side}, {name}"] = np.log1p(np.linalg.norm(Z - Y[500:506], axis=1))
        verdict = evaluate_migration(Y, X, side=side)
        found[f"{side}, verdict"] = list(verdict.scores["migration"].values())
    return found


# Beyond one machine.


@canary("Dask", "dask", "distributed")
def dask_maps() -> Mapping[str, Any]:
    import dask.array as da
    from distributed import Client

    from benchmarks.speed.million import drawn as rows_of
    from nearkin.dask import DaskDNE, DaskGMML, DaskLPP, DaskNCA, DaskPCA, DaskStandardScaler

    X, y = rows_of(300, 0, features=60)
    blocks, labels = da.from_array(X, chunks=(100, X.shape[1])), da.from_array(y, chunks=100)
    found = {}
    models = {
        "DNE": (DaskDNE(4), labels), "GMML": (DaskGMML(4), labels), "LPP": (DaskLPP(4), None),
        "PCA": (DaskPCA(4), None), "scaler": (DaskStandardScaler(), None), "NCA": (DaskNCA(4, max_iter=20, random_state=0), labels),
    }  # fmt: skip
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None):
        for name, (model, target) in models.items():
            model.fit(blocks, *([] if target is None else [target]))
            Z = np.asarray(model.transform(blocks[:6]))
            found[name] = np.log1p(np.linalg.norm(np.diff(Z, axis=0), axis=1))
    return found


# The papers: every experiment is its own canary, on sets of few rows.


def images(n: int, side: int, n_classes: int = 10) -> tuple[Any, Any]:
    """Return grey images: a bar for each class, blurred, with noise."""
    rng = np.random.default_rng(0)
    y, bar = np.arange(n) % n_classes, np.zeros((side, side))
    bar[side // 4 : -side // 4, side // 2 - 2 : side // 2 + 2] = 255
    turned = [
        rotate(bar, 180 * one / n_classes, reshape=False, order=1) for one in range(n_classes)
    ]
    X = [gaussian_filter(turned[one] + 60 * rng.normal(size=bar.shape), 1) for one in y]
    return np.clip(np.round(X), 0, 255).reshape(n, -1), y


def few_rows(name: str) -> dict[str, Any]:
    """Return arrays as a file of the papers' data has them."""
    p = SOURCES[name].shape[1]
    rng = np.random.default_rng(0)
    if name in ("mnist", "usps"):
        X, y = images(*((1400, 28) if name == "mnist" else (840, 16)), 4)
        return {
            "X": X if name == "mnist" else X / 127.5 - 1,
            "y": 1 + y,
            "split": np.arange(len(y)) % 7 == 6,
        }
    if name in ("news_rec", "tdt2"):
        n_words = 400
        y = np.arange(200) % 4
        words = rng.poisson(0.05 + 0.4 * (rng.random((4, n_words)) < 0.1)[y])
        X = csr_array(words.astype(float))
        parts = {key: X.data for key in ("data", "data_unnorm", "counts")}
        return parts | {"indices": X.indices, "indptr": X.indptr, "shape": X.shape, "y": 1 + y}
    if name == "ohsumed_letor3":
        X, y = drawn(1200, p, 3)
        X, part, groups = X / np.ptp(X, axis=0), np.arange(1200) // 3 % 5 + 1, np.arange(1200) // 30
        return {"X_qnorm": X, "X": X, "y": y, "part": part, "groups": groups}
    if name == "boston_housing":
        X, y = drawn(200, p, 2)
        return {"X": X, "y": np.round(X[:, 0] + y + rng.normal(size=200), 1)}
    people = {"umist_28x23": 12, "orl_112x92": 6, "coil20_16_subsampled": 10}
    if name in people:
        X, y = drawn(20 * people[name], p, 20)
        return {"X": X[np.argsort(y, kind="stable")], "y": np.sort(y)}
    X, y = drawn(600 if name == "mushroom" else 200, p, 2)
    return {"X": X, "y": y}


def repeat(name: str) -> Mapping[str, Any]:
    """Run an experiment, quickly, and return the numbers of its tables, those of time left out."""

    class FewRows(Data):
        def archive(self, name: str) -> dict[str, Any]:
            return few_rows(name)

        def rows(self, name: str) -> tuple[Any, Any]:
            if name in ("iris", "wine", "breast_cancer", "balance_scale", "digits"):
                return bundled(name, 240, scale=False)
            return super().rows(name)

    numbers: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run = Run(FewRows(), Path(folder), n_splits=2, quick=True)
        for piece in EXPERIMENTS[name].run(run):
            if piece.startswith("|") and not re.search(
                r"second|(?<!')\bs\b|clock|GiB", piece.split("\n")[0]
            ):
                cells = re.findall(r"(?<![\w.])[-+]?\d+\.\d+(?!\w)", piece)
                numbers += [float(cell) for cell in cells]
    return {"tables": [len(numbers), float(np.sum(numbers))]}


for name in EXPERIMENTS:
    CANARIES[name] = Canary(partial(repeat, name), ("torch",) * (name == "nca-figure3"))


if __name__ == "__main__":
    chosen = list(dict.fromkeys(sys.argv[1:] or CANARIES))
    # each in a process of its own, copied from this one: imports take longer than most canaries
    with get_context("fork").Pool(AT_A_TIME, maxtasksperchild=1) as pool:
        outcomes = pool.map(outcome, chosen, chunksize=1)
    print(json.dumps(dict(zip(chosen, outcomes, strict=True))))
