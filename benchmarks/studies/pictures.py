"""Pictures of labelled rows: how well two dimensions hold classes on rows that the fit has not seen,
and what they show of labels that are chance; written to docs/measured/pictures.md.

    pip install umap-learn openTSNE
    NEARKIN_DATA=folder python -m benchmarks.studies.pictures
    NEARKIN_DATA=folder python -m benchmarks.studies.pictures --sets development --labels given
    python -m benchmarks.studies.pictures write

Each fit is measured twice: with the labels, and with those of the training rows permuted; a method
that sees no labels draws the same picture for both. Results are kept, and the page is written from
them, nothing by hand. What cannot be imported or read is left out, with the reason.

All methods have all cores, their defaults and random_state=0. With a seed, UMAP works in one thread;
on single data sets it is measured once more without. A first fit, in which numba compiles UMAP, is
not counted. Seconds are those of the clock: let nothing else run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.manifold import trustworthiness
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import data
from benchmarks.data import CLASSES, HALVES, folds_of
from benchmarks.measure import Kept, command, stamp, timed
from benchmarks.report import bold, failed, made, mean_ranks, p_text, signed_rank_tests, table
from nearkin import NCA, NCAClassifier, TDistributedNCA
from nearkin.statistics import holm, paired_test
from nearkin.tables import TableEncoder

PACKAGES = ("nearkin", "numpy", "scipy", "scikit-learn", "umap-learn", "openTSNE", "numba")
SINGLE = ("digits", "banking77", "mnist")
# Of classes, up to 2,000 rows; settings were chosen on the development half.
SMALL = 2000
LARGE = ("chess", "marketing", "nursery", "penbased", "satimage", "splice")
TABLES = {
    half: tuple(
        name
        for name in names
        if name in (*CLASSES, "breast_cancer", "iris", "wine") and name not in LARGE
    )
    for half, names in HALVES.items()
}
N_FOLDS = 5
TRUST_ROWS, TRUST_NEIGHBORS = 2000, 10
GIVEN, PERMUTED = "given", "permuted"
OURS, ON_FRAME = "TDistributedNCA", "TDistributedNCA, data frame"
UMAP, UNSEEDED, TSNE = "supervised UMAP", "supervised UMAP, no seed", "openTSNE"
RESULTS, KEYS = (
    Path("benchmarks", "results", "pictures.jsonl"),
    ("data", "fold", "method", "labels"),
)


class Split(NamedTuple):
    """Rows and labels, for training and held out; of a table also the rows of its data frame."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray
    frame: pd.DataFrame | None = None
    frame_new: pd.DataFrame | None = None


@lru_cache(1)
def split(name: str, fold: int) -> Split:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        train, test = folds_of(X, y, N_FOLDS)[fold]
        return Split(X[train] / 16, y[train], X[test] / 16, y[test])
    if name == "mnist":
        X, y, X_new, y_new = data.published_split(name)
        return Split(X / 255, y.astype(int), X_new / 255, y_new.astype(int))
    if name == "banking77":
        X, y, X_new, y_new = data.published_split("banking77_minilm")
        codes = np.unique(np.append(y, y_new), return_inverse=True)[1]
        return Split(X, codes[: len(y)], X_new, codes[len(y) :])
    frame, y, frame_new, y_new = data.table(name).split(N_FOLDS, fold)
    encoder = make_pipeline(TableEncoder(missing="keep"), SimpleImputer(), StandardScaler())
    X, X_new = encoder.fit_transform(frame), encoder.transform(frame_new)
    return Split(X, y, X_new, y_new, frame, frame_new)


# Each function fits a method and returns what places new rows, and the places of the training rows
# where the method has others for them than its transform.
Fitted = tuple[Callable[[Any], np.ndarray], np.ndarray | None]


def fit_t_nca(X: Any, y: np.ndarray, **settings: Any) -> Fitted:
    return TDistributedNCA(random_state=0, **settings).fit(X, y).transform, None


def fit_umap(X: np.ndarray, y: np.ndarray, random_state: int | None = 0) -> Fitted:
    from umap import UMAP

    model = UMAP(random_state=random_state).fit(X, y)
    return model.transform, model.embedding_


def fit_tsne(X: np.ndarray, y: np.ndarray) -> Fitted:
    from openTSNE import TSNE

    embedding = TSNE(random_state=0, n_jobs=-1).fit(X)
    return lambda X_new: np.asarray(embedding.transform(X_new)), np.asarray(embedding)


def fit_linear(model: Any, X: np.ndarray, y: np.ndarray) -> Fitted:
    return model.fit(X, y).transform, None


def fit_lda(X: np.ndarray, y: np.ndarray) -> Fitted:
    return fit_linear(LinearDiscriminantAnalysis(n_components=min(2, len(np.unique(y)) - 1)), X, y)


def fit_nca(X: np.ndarray, y: np.ndarray) -> Fitted:
    solver = "sgd" if len(X) > 10_000 else "lbfgs"  # as its documentation advises
    return fit_linear(NCA(2, solver=solver, random_state=0), X, y)


METHODS: dict[str, Callable[[Any, np.ndarray], Fitted]] = {
    ON_FRAME: lambda X, y: fit_t_nca(X, y, estimator=NCAClassifier(random_state=0)),
    OURS: fit_t_nca,
    UMAP: fit_umap,
    UNSEEDED: lambda X, y: fit_umap(X, y, None),
    TSNE: fit_tsne,
    "LDA": fit_lda,
    "NCA": fit_nca,
    "PCA": lambda X, y: fit_linear(PCA(2, random_state=0), X, y),
}
WITHOUT_LABELS = (TSNE, "PCA")
NEEDS = {UMAP: "umap", UNSEEDED: "umap", TSNE: "openTSNE"}


@lru_cache(1)
def compile_umap() -> None:
    """Let numba compile what UMAP needs for few rows and, from 4,096 on, for many."""
    rng = np.random.default_rng(0)
    for n in (200, 5000):
        X = rng.normal(size=(n, 10)).astype(np.float32)
        fit_umap(X, rng.integers(3, size=n))[0](X[:100] + 1)


def measured(method: str, rows: Split, kinds: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield seconds and scores with labels of each kind, or why there are none."""
    X, X_new = (rows.frame, rows.frame_new) if method == ON_FRAME else (rows.X, rows.X_new)
    drawn: tuple[np.ndarray, np.ndarray, dict[str, float]] | None = None
    for kind in kinds:
        y = np.random.default_rng(0).permutation(rows.y) if kind == PERMUTED else rows.y
        try:
            if drawn is None or method not in WITHOUT_LABELS:
                drawn = draw(method, X, y, X_new)
            Z, Z_new, seconds = drawn
            yield kind, {"status": "ok"} | seconds | scores(Z, y, Z_new, rows)
        except Exception as error:
            yield kind, {"status": f"failed: {type(error).__name__}: {str(error)[:200]}"}


def draw(
    method: str, X: Any, y: np.ndarray, X_new: Any
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Return the places of training rows and of new ones, and the seconds for both."""
    fit = timed(METHODS[method], X, y)
    transform, Z = fit.result
    new = timed(transform, X_new)
    Z = transform(X) if Z is None else Z
    return Z, new.result, {"fit": round(fit.seconds, 3), "transform": round(new.seconds, 4)}


def scores(Z: np.ndarray, y: np.ndarray, Z_new: np.ndarray, rows: Split) -> dict[str, Any]:
    knn = KNeighborsClassifier(5).fit(Z, y)
    hits = knn.predict(Z_new) == rows.y_new
    some = np.random.default_rng(0).permutation(len(Z_new))[:TRUST_ROWS]
    n_neighbors = min(TRUST_NEIGHBORS, (len(some) - 1) // 2)  # fewer than half of the rows
    return {
        "held_out": float(hits.mean()),
        "training": float(np.mean(knn.predict(None) == y)),  # None: no row votes for itself
        "trust": trustworthiness(rows.X_new[some], Z_new[some], n_neighbors=n_neighbors),
        "chance": float(np.mean(rows.y_new == np.bincount(rows.y).argmax())),
        "rows": len(Z),
        "features": rows.X.shape[1],
        "classes": len(np.unique(rows.y)),
        "hits": "".join(map(str, hits.astype(int))),
    }


def jobs(sets: tuple[str, ...], methods: tuple[str, ...]) -> Iterator[tuple[str, int, str]]:
    """Yield data, fold and method of all that can be read and imported."""
    missing = {method for method in methods if find_spec(NEEDS.get(method, "nearkin")) is None}
    for method in missing:
        print(f"{method}: left out, no module {NEEDS[method]}", file=sys.stderr)
    chosen = [name for group in sets for name in TABLES.get(group, (group,))]
    for name in sorted(chosen, key=lambda name: name == "mnist"):  # the last: it takes longest
        try:
            split(name, 0)
        except FileNotFoundError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
            continue
        left_out = missing | {ON_FRAME if name in SINGLE else UNSEEDED}
        for fold in range(1 if name in ("banking77", "mnist") else N_FOLDS):
            yield from ((name, fold, method) for method in methods if method not in left_out)


def measure(
    sets: tuple[str, ...] = (*SINGLE, "held-out"), methods: tuple[str, ...] = tuple(METHODS),
    labels: tuple[str, ...] = (GIVEN, PERMUTED), results: Path = RESULTS,
) -> None:  # fmt: skip
    """Measure what is not kept."""
    kept = Kept(results, *KEYS)
    for name, fold, method in jobs(sets, methods):
        kinds = [kind for kind in labels if (name, fold, method, kind) not in kept.done]
        kinds = [kind for kind in kinds if (method, kind) != (UNSEEDED, PERMUTED)]
        if kinds and NEEDS.get(method) == "umap":
            compile_umap()
        for kind, found in measured(method, split(name, fold), kinds):
            job = dict(zip(KEYS, (name, fold, method, kind), strict=True))
            kept.add(job, found | stamp(PACKAGES))


def write(results: Path = RESULTS, page: Path = Path("docs", "measured", "pictures.md")) -> None:
    """Write the page."""
    page.write_text(document(Kept(results, *KEYS).lines) + "\n")


# the page

ORDER = (ON_FRAME, OURS, UMAP, UNSEEDED, TSNE, "LDA", "NCA", "PCA")
HEAD = f"""\
# Pictures

Two dimensions for rows that the fit has not seen: `TDistributedNCA` beside UMAP with labels, openTSNE (no labels), and the
linear LDA, `NCA` and PCA, with their defaults. `write` prints every table.

- held-out, training: accuracy of 5-NN in the plane on rows kept aside, and on the training rows, which is what one sees
- trust: trustworthiness of at most {TRUST_ROWS:,} held-out rows (the {TRUST_NEIGHBORS} nearest in the plane are near in the features), 1 at
  best; a method which places rows by class has less of it
- permuted: training accuracy where labels were permuted; above the most frequent class it is made up
- seconds of a fit, milliseconds for a new row"""

TITLES = {
    "held-out": "## Tables on which nothing was chosen",
    "development": "## Tables on which settings were chosen\n\nThese support no claim.",
}


HEADER = (
    "method", "held-out", "training", "trust", "permuted", "fit, s", "ms a row",
)  # fmt: skip


def document(lines: list[dict[str, Any]]) -> str:
    frame = pd.DataFrame(lines)
    done = frame[frame["status"] == "ok"]
    parts = [HEAD]
    for name in SINGLE:
        if name in set(done["data"]):
            parts += single_text(name, done[done["data"] == name])
    for half, title in TITLES.items():
        on_tables = done[done["data"].isin(TABLES[half])]
        if len(on_tables):
            parts += [title, *tables_text(on_tables, done[done["data"] == "banking77"])]
    parts += failed(frame, "method", "data", "labels")
    return "\n\n".join([*parts, (
        "## Commands\n\n    pip install umap-learn openTSNE\n"
        "    NEARKIN_DATA=folder python -m benchmarks.studies.pictures\n"
        "    python -m benchmarks.studies.pictures write\n\n"
        f"{made(done, 'two cores of an x86-64 machine')}"
    )])  # fmt: skip


def in_order(names: Any) -> list[str]:
    return [method for method in ORDER if method in names]


def means(part: pd.DataFrame, labels: str) -> pd.DataFrame:
    """Return means over folds, then over data sets, methods in order."""
    keys = ["held_out", "training", "trust", "chance", "fit", "new_row"]
    part = part[part["labels"] == labels]
    part = part.assign(new_row=1000 * part["transform"] / part["hits"].str.len())
    found = part.groupby(["method", "data"])[keys].mean().groupby("method").mean()
    return found.loc[in_order(found.index)]


def means_table(part: pd.DataFrame) -> str:
    given = means(part, GIVEN)
    permuted = means(part, PERMUTED).reindex(given.index)
    rows = [
        [
            method,
            *(share(one[key]) for key in ("held_out", "training")),
            f"{one['trust']:.3f}",
            share(permuted.loc[method, "training"]),
            *(f"{one[key]:.2f}" for key in ("fit", "new_row")),
        ]
        for method, one in given.iterrows()
    ]
    return table(HEADER, rows)


def share(value: float) -> str:
    """Return a share in percent, nothing where there is none."""
    return "" if np.isnan(value) else f"{100 * value:.2f} %"


def single_text(name: str, part: pd.DataFrame) -> list[str]:
    """Return the figures of a data set, and the tests of ours against the others on its rows."""
    one, n_folds = part.iloc[0], part["fold"].nunique()
    how = f"{n_folds} stratified folds" if n_folds > 1 else "one split"
    given = part[part["labels"] == GIVEN].sort_values("fold")
    hits = {
        method: [np.array(list(text), dtype=int) for text in lines["hits"]]
        for method, lines in given.groupby("method", sort=False)
    }
    said = []
    if OURS in hits:
        ends = np.cumsum([len(fold) for fold in hits[OURS]])
        rows = np.split(np.arange(ends[-1]), ends[:-1])
        found = {
            method: paired_test(hits[OURS], theirs, rows, one["rows"])
            for method, theirs in hits.items()
            if method != OURS and len(theirs) == len(rows)
        }
        p_values = holm([test.p_value for test in found.values()])
        differences = (
            f"{method} {100 * test.difference:+.2f} (p {p_text(p)})"
            for (method, test), p in zip(found.items(), p_values, strict=True)
        )
        folds, single = "corrected for common training rows", "of fitted models, not methods"
        said = [
            f"{OURS} is better by, in points (Holm; {folds if n_folds > 1 else single}): "
            f"{', '.join(differences)}."
        ]
    return [
        f"## {name}",
        f"{one['rows']:,} rows for training, {len(one['hits']):,} held out ({how}), {one['features']} features, "
        f"{one['classes']} classes, the most frequent one {share(part['chance'].mean())}.",
        means_table(part),
        *said,
    ]


def tables_text(on_tables: pd.DataFrame, banking: pd.DataFrame) -> list[str]:
    """Return means over tables, ranks, and the accuracy on every table and banking77."""
    both = pd.concat([on_tables, banking[banking["method"] != UNSEEDED]])
    both = both[both["labels"] == GIVEN]
    values = both.pivot_table(index="data", columns="method", values="held_out")
    values = values[in_order(values)]
    parts = [
        f"Means over {on_tables['data'].nunique()} tables of classes, those of at most {SMALL:,} rows of this half of "
        f'[Tables](tables.md), {N_FOLDS} folds. "{ON_FRAME}" has `estimator=NCAClassifier()`, as `nearkin compare`; '
        "the others take the features of `TableEncoder`, standardized. The most frequent class has "
        f"{share(means(on_tables, GIVEN)['chance'].mean())}.",
        means_table(on_tables),
    ]
    for ours, other in ((ON_FRAME, OURS), (OURS, ON_FRAME)):
        if ours in values:
            others = values.drop(columns=[ours, other], errors="ignore")
            parts += ranking(ours, others, values[ours].fillna(values.get(OURS)))
    rows = []
    for name, one in values.iterrows():
        cells = ["" if np.isnan(value) else f"{100 * value:.1f}" for value in one]
        rows.append([name, *bold(cells, one)])
    print(f"Held-out accuracy:\n\n{table(['data', *values], rows)}")
    return parts


def ranking(ours: str, others: pd.DataFrame, of_ours: pd.Series) -> list[str]:
    """Return mean ranks and Wilcoxon's signed-rank tests against ours, by Holm."""
    values = others.assign(**{ours: of_ours}).dropna(axis=1)
    values = values[in_order(values)]
    p = signed_rank_tests(values, ours)["p"]
    rows = []
    for name, rank in zip(values, mean_ranks(values), strict=True):
        gain = of_ours - values[name]
        against = [f"{sum(gain > 0)}, {sum(gain < 0)}", p_text(p[name])] if name in p else ["", ""]
        rows.append([name, share(values[name].mean()), f"{rank:.2f}", *against])
    return [
        f"Over {len(values)} data sets (the tables, and banking77), with {ours} as ours; p of Wilcoxon's "
        "signed-rank test, by Holm:",
        table(["method", "mean accuracy", "rank", "ours better, worse", "p"], rows),
    ]


if __name__ == "__main__":
    command(measure, write)
