"""Transductive Distance Learning (Li, Yang and Wang, ICML 2007) on MNIST: Table 2, tangent
distance, new rows, and many rows.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from nearkin.estimators import TDL, LaplacianEigenmaps
from nearkin.graphs import binary, heat_kernel, union
from nearkin.neighbors import nearest

from ..experiment import Experiment, Printed, Run, mean_std, paired, table
from ..splits import Split, some_labels
from .experiments import LAPLACIANS, accuracy
from .tangent import tangent_graph

GRAPHS: dict[str, Callable[[csr_array], csr_array]] = {
    "union": lambda G: union(binary(G)),
    "mean": lambda G: csr_array((binary(G) + binary(G).T) / 2),
    "union, heat": lambda G: union(heat_kernel(G)),
}
PRINTED = {
    "Euclidean": (Printed(96.13, 0.07), Printed(95.91, 0.07)),
    "tangent": (Printed(97.49, 0.04), Printed(97.41, 0.03)),
}
COLUMNS = [
    "TDL",
    "Laplacian Eigenmaps",
    "TDL - Laplacian Eigenmaps, paired",
]


def _mnist(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows, grey from 0 to 1; 10,000 of them for a glance."""
    archive = run.data.archive("mnist")
    rows = slice(10_000 if run.quick else None)
    return archive["X"][rows].astype(np.float32) / 255, archive["y"][rows].astype(int)


@dataclass(frozen=True)
class Pair:
    """TDL and Laplacian Eigenmaps on the same graph: accuracies by split."""

    ours: list[float]
    theirs: list[float]

    def cells(self, printed: tuple[Printed, Printed] | None) -> list[str]:
        """Return a row of a table, beside what the paper prints if these are its rows."""
        both = self.ours, self.theirs
        means = (
            map(Printed.beside, printed, both)
            if printed
            else (mean_std(values, 2) for values in both)
        )
        return [*means, paired(*both, 2)]


def _eigenmaps(X: np.ndarray, W: csr_array, laplacian: str) -> LaplacianEigenmaps:
    return LaplacianEigenmaps(60, laplacian=laplacian).fit(X, affinity=W)


def _tdl(X: np.ndarray, W: csr_array, laplacian: str, few: np.ndarray) -> TDL:
    return TDL(60, reg=128.0, reg_unit=1.0, laplacian=laplacian).fit(X, few, affinity=W)


def _pair(run: Run, what: str, X: np.ndarray, y: np.ndarray, W: csr_array, laplacian: str) -> Pair:
    eigenmaps = _eigenmaps(X, W, laplacian)
    ours, theirs = [], []
    for _, rng in run.repeat(f"{what}, {laplacian}", run.splits(10)):
        few = some_labels(y, 0.05, rng)
        ours.append(accuracy(_tdl(X, W, laplacian, few).embedding_, y, few, 10))
        theirs.append(accuracy(eigenmaps.embedding_, y, few, 10))
    return Pair(ours, theirs)


def _protocol(run: Run, X: np.ndarray) -> str:
    return f"{len(X):,} rows, 5 % labelled, 60 vectors, 10-NN, {run.splits(10)} splits"


def _timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def table_2(run: Run) -> Iterator[str]:
    """MNIST by Euclidean distance, and graph and Laplacian chosen by hidden labels."""
    X, y = _mnist(run)
    G = nearest(X, 20)
    yield from _beside_the_paper(run, X, y, G, "Euclidean")
    yield from _past_the_paper(run, X, y, G)


def table_2_tangent(run: Run) -> Iterator[str]:
    """MNIST by tangent distance, all rows."""
    X, y = _mnist(run)
    G = tangent_graph(X, (28, 28), 20, n_candidates=400)
    yield from _beside_the_paper(run, X, y, G, "tangent")


def _beside_the_paper(
    run: Run, X: np.ndarray, y: np.ndarray, G: csr_array, distance: str
) -> Iterator[str]:
    printed = None if run.quick else PRINTED[distance]
    yield f"{_protocol(run, X)}: ours (paper; z)." if printed else f"{_protocol(run, X)}."
    rows = []
    for graph in ("union", "mean"):
        W = GRAPHS[graph](G)
        for laplacian in LAPLACIANS:
            pair = _pair(run, graph, X, y, W, laplacian)
            rows.append([graph, laplacian, *pair.cells(printed)])
    yield table(["graph", "Laplacian", *COLUMNS], rows)


def _past_the_paper(run: Run, X: np.ndarray, y: np.ndarray, G: csr_array) -> Iterator[str]:
    """Choose the graph and its Laplacian, for every split by its own labels."""
    yield (
        "Beyond the paper: 3 folds of the labelled rows choose the graph (5, 10 or 20 neighbours; "
        "union, mean, or union with heat weights) and the Laplacian."
    )
    candidates = {}
    for k in (5, 10, 20):
        for name, graph in GRAPHS.items():
            W = graph(_first(G, k))
            for laplacian in LAPLACIANS:
                candidates[k, name, laplacian] = (W, _eigenmaps(X, W, laplacian).embedding_)
    taken, results = [], []
    for _, rng in run.repeat("chosen", run.splits(10)):
        few = some_labels(y, 0.05, rng)
        best = max(candidates, key=lambda one: _hidden_accuracy(candidates[one][1], few))
        W, Z = candidates[best]
        tdl = _tdl(X, W, best[2], few)
        results.append(
            [
                accuracy(tdl.embedding_, y, few, 10),
                accuracy(Z, y, few, 10),
                _label_spreading(W, y, few),
            ]
        )
        taken.append("{}-NN, {}, {}".format(*best))
    ours, theirs, spread = np.transpose(results)
    chosen = "; ".join(f"{name} ({taken.count(name)})" for name in sorted(set(taken)))
    cells = [
        mean_std(ours, 2),
        mean_std(theirs, 2),
        paired(ours, theirs, 2),
        mean_std(spread, 2),
        chosen,
    ]
    yield table(
        [*COLUMNS, "scikit-learn's LabelSpreading, same graphs", "chosen (splits)"], [cells]
    )


def _first(G: csr_array, k: int) -> csr_array:
    """Return the first k of the listed neighbours, which are as many in every row."""
    n = G.shape[0]
    lists = (G.data.reshape(n, -1)[:, :k].ravel(), G.indices.reshape(n, -1)[:, :k].ravel())
    return csr_array((*lists, np.arange(n + 1) * k), shape=(n, n))


def _hidden_accuracy(Z: np.ndarray, few: np.ndarray) -> float:
    known = few >= 0
    return cross_val_score(
        KNeighborsClassifier(10, algorithm="brute"), Z[known], few[known], cv=3
    ).mean()


def _label_spreading(W: csr_array, y: np.ndarray, few: np.ndarray) -> float:
    spreading = LabelSpreading(kernel=lambda *_: W).fit(np.zeros((len(y), 1)), few)
    return 100 * float(np.mean(spreading.transduction_[few < 0] == y[few < 0]))


def tangent(run: Run) -> Iterator[str]:
    """MNIST by tangent distance, the prior metric of section 5.3."""
    X, y = _mnist(run)
    X, y = X[:10_000], y[:10_000]
    yield f"{_protocol(run, X)}."
    rows = []
    for name, G in (("Euclidean", nearest(X, 20)), ("tangent", tangent_graph(X, (28, 28), 20))):
        for laplacian in LAPLACIANS:
            pair = _pair(run, name, X, y, GRAPHS["union"](G), laplacian)
            rows.append([name, laplacian, *pair.cells(None)])
    yield table(["distance", "Laplacian", *COLUMNS], rows)


def unseen(run: Run) -> Iterator[str]:
    """Test rows as part of the fit, and the same rows as new ones."""
    X, y = _mnist(run)
    n = len(X) * 6 // 7
    few = some_labels(y[:n], 0.05, np.random.default_rng(0))
    everything = np.concatenate([few, np.full(len(X) - n, -1)])
    known = np.flatnonzero(few >= 0)
    rows = []
    for laplacian in LAPLACIANS:
        tdl = TDL(60, reg=128.0, reg_unit=1.0, laplacian=laplacian)
        Z = tdl.fit(X, everything).embedding_
        inside = Split(Z[known], y[known], Z[n:], y[n:]).accuracy(10)
        tdl.fit(X[:n], few)
        seconds, Z = _timed(lambda: tdl.transform(X[n:]))  # noqa: B023
        outside = Split(tdl.embedding_[known], y[known], Z, y[n:]).accuracy(10)
        rows.append([laplacian, f"{inside:.2f}", f"{outside:.2f}", f"{seconds:.0f}"])
    yield (
        f"{len(X) - n:,} rows, % classified correctly by the 10-NN votes of {len(known):,} "
        f"labelled rows of {n:,}:"
    )
    yield table(["Laplacian", "part of the fit", "new", "seconds for the new rows"], rows)


def many_rows(run: Run) -> Iterator[str]:
    """Time and memory of TDL by the number of rows."""
    images, y = _mnist(run)
    copies = len(images) * 3 // 7  # to 100,000 rows
    X = np.vstack([images, moved(images[:copies])])
    y = np.concatenate([y, y[:copies]])
    X = PCA(32, random_state=0).fit_transform(X)
    order = np.random.default_rng(0).permutation(len(X))
    rows = []
    for n in (len(X) // 10, len(X) * 3 // 10, len(X)):
        X_n, y_n = X[order[:n]], y[order[:n]]
        few = some_labels(y_n, 0.05, np.random.default_rng(0))
        search, G = _timed(lambda: nearest(X_n, 20))  # noqa: B023
        W = GRAPHS["mean"](G)
        tracemalloc.start()
        fit, tdl = _timed(lambda: _tdl(X_n, W, "unnormalized", few))  # noqa: B023
        gibibytes = tracemalloc.get_traced_memory()[1] / 2**30
        tracemalloc.stop()
        score = accuracy(tdl.embedding_, y_n, few, 10)
        cells = [f"{search:.0f}", f"{fit:.0f}", f"{gibibytes:.2f}", f"{tdl.residual_:.0e}"]
        rows.append([f"{n:,}", *cells, f"{score:.2f}"])
    columns = [
        "s for the neighbours",
        "s for the fit",
        "GiB that the fit takes",
        "largest residual",
        "10-NN, %",
    ]
    yield table(["rows", *columns], rows)


def moved(images: np.ndarray) -> np.ndarray:
    """Return images of 28 x 28 pixels moved by one pixel to the right, and one down."""
    return np.roll(images.reshape(-1, 28, 28), (1, 1), axis=(1, 2)).reshape(len(images), -1)


LISTS = (
    'The 20-NN graph has weight 1 if either row lists the other ("union"), or the mean of both '
    'directions ("mean").'
)
EXPERIMENTS = (
    Experiment(
        "tdl-table2",
        "TDL, Table 2: MNIST by Euclidean distance",
        (LISTS,),
        table_2,
        threads=None,
    ),
    Experiment(
        "tdl-tangent-70000",
        "TDL, Table 2: MNIST by tangent distance",
        (
            "Graphs as above; neighbours are sought among the 400 nearest by Euclidean distance of smoothed images.",
        ),
        table_2_tangent,
        threads=None,
    ),
    Experiment(
        "tdl-tangent",
        "TDL, section 5.3: the effect of the prior metric",
        ("The first 10,000 rows of MNIST, where the paper has 70,000; the union of 20-NN lists.",),
        tangent,
        threads=None,
    ),
    Experiment(
        "tdl-unseen",
        "TDL: new rows",
        (
            "Not in the paper: the test rows of MNIST, with the labels of 5 % of its training rows, "
            "heat weights.",
        ),
        unseen,
        threads=None,
    ),
    Experiment(
        "tdl-rows",
        'TDL, section 2.2: "able to handle datasets with 10^5 samples"',
        (
            "MNIST and 30,000 of its images moved by one pixel, in 32 principal components, and "
            "random parts of them; otherwise as in Table 2. One thread.",
        ),
        many_rows,
    ),
)
