"""What shrinking the within-class scatter gains: 3-NN after every method that does, with the
papers' form beside it.

    NEARKIN_DATA=folder python benchmarks/shrinkage.py --store shrinkage.json

prints Markdown: the 18 sets of comparison.py, ten held-out folds, the dimension chosen on folds of
the training rows, or as it comes (n_components=None). With --amounts it compares amounts, of which
the default was chosen, on folds of training rows alone; take another file for it. Results are kept
in the file, so that a run that was cut off goes on. With --images N it compares them on N of
MNIST's 60,000 training images and 3,000 others, in 64 dimensions.

    NEARKIN_DATA=folder python benchmarks/shrinkage.py --training-rows --store training_rows.json

learns from 60, 200, 600 and 1,500 rows of each set of defaults.py, and scores 3-NN on at most 1,000
others, mean of two random splits. It prints what a half gains over the paper's form by the number
of training rows for each dimension of their span, what a default that follows this number would
gain, and how many components of NMMP classify best.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import defaults
import numpy as np
from comparison import MOST_ROWS, SETS, Set, rows_of, some
from rankings import table
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from nearkin import DMLMJ, LDE, LFDA, MFA, NMMP, RCA
from nearkin.evaluation import Method, all_methods, compare

SHRINKING = ("RCA", "LDE", "MFA", "LFDA", "NMMP", "NMMP ratio trace")
FORMS: dict[str, Any] = {"paper": None, "default": 0.5}
AMOUNTS: dict[str, Any] = {
    "paper": None,
    "0.3": 0.3,
    "0.5": 0.5,
    "0.7": 0.7,
    "1": 1.0,
}
SMALL: dict[str, Any] = {"RCA": RCA, "LDE": LDE, "MFA": MFA, "LFDA": LFDA, "NMMP": NMMP}
TRAINING_ROWS = (60, 200, 600, 1500)
OF_TRAINING_ROWS: dict[str, Any] = {
    **{method.__name__: method for method in (LDE, LFDA, MFA, RCA, DMLMJ)},
    "NMMPr": partial(NMMP, criterion="ratio_trace"),
}
BOUNDS = (
    0,
    2,
    5,
    10,
    20,
    50,
    np.inf,
)  # of the number of training rows for each dimension of their span
DIMENSIONS = (2, 5, 10, 20, 30, 50, 100, 300)


def without_amounts(method: Method, p: int) -> list[dict[str, Any]]:
    """Return the settings of a method but for the amount of shrinkage, each once."""
    found: list[dict[str, Any]] = []
    for setting in method.settings(p):
        rest = {name: value for name, value in setting.items() if name != "shrinkage"}
        if rest not in found:
            found.append(rest)
    return found


def methods() -> list[Method]:
    """Return every method that shrinks, in every form, with and without a dimension.

    "chosen" is what `compare` does: inner folds choose between the paper's form and the default.
    """
    found = []
    for method in all_methods():
        if method.name in SHRINKING and method.estimator is not None:
            for form, shrinkage in FORMS.items():
                model = clone(method.estimator).set_params(shrinkage=shrinkage)
                settings = {"settings": partial(without_amounts, method), "nested": method.nested}
                found.append(Method(f"{method.name}|{form}", model, **settings))
                every = clone(model).set_params(n_components=None)
                found.append(Method(f"{method.name}|{form}|all", every, nested=False))
            found.append(replace(method, name=f"{method.name}|chosen"))
    return found


def measure(one: Set, known: dict[str, float], n_splits: int) -> Iterator[None]:
    """Add the accuracies of the methods on a set to what is known, in percent, one after the other."""
    X, y = some(*rows_of(one), MOST_ROWS)
    for method in methods():
        if method.name not in known:
            with threadpool_limits(1):
                folds = {
                    "n_splits": n_splits,
                    "n_repeats": 1,
                    "n_neighbors": 3,
                    "score": "accuracy",
                    "refit": False,
                }
                found = compare(X, y, methods=[method], references=(), scale=not one.units, **folds)
            known |= {result.name: 100 * float(result.score.mean()) for result in found.results}
            yield


def by_amount(one: Set, n_folds: int = 2) -> dict[str, float]:
    """Return the best accuracy of any leading dimension on folds of training rows, over raw, by
    method and amount.
    """
    X, y = some(*rows_of(one), MOST_ROWS)
    # the held-out rows are not looked at
    rows = next(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))[0]
    folds = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X[rows], y[rows]))[:n_folds]
    found: dict[str, list[np.ndarray]] = {}
    for train, test in ((rows[train], rows[test]) for train, test in folds):
        scaler = StandardScaler(with_mean=not one.units, with_std=not one.units).fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        raw = vote(A, y[train], B, y[test])
        for name, model in SMALL.items():
            for amount, shrinkage in AMOUNTS.items():
                model_of = partial(model, shrinkage=shrinkage)
                over = [
                    vote(*mapped, y[test]) - raw
                    for mapped in leading(model_of, name, A, y[train], B)
                ]
                found.setdefault(f"{name}|{amount}", []).append(np.array(over))
    return {key: float(np.mean(over, axis=0).max()) for key, over in found.items()}


def leading(
    model: Any, name: str, A: np.ndarray, y: np.ndarray, B: np.ndarray
) -> Iterator[tuple[Any, ...]]:
    """Yield training rows, their labels and test rows after maps to ever more dimensions: of one
    fit, but for NMMP.
    """
    p = min(A.shape[1], len(A) - 1)
    every = None if name == "NMMP" else model().fit(A, y)
    for m in DIMENSIONS:
        of_m = model(min(m, p)).fit(A, y) if every is None else every
        yield of_m.transform(A)[:, :m], y, of_m.transform(B)[:, :m]


def vote(Z: np.ndarray, y: np.ndarray, new: np.ndarray, new_y: np.ndarray) -> float:
    """Return the accuracy of 3-NN in percent."""
    return 100 * KNeighborsClassifier(3, algorithm="brute").fit(Z, y).score(new, new_y)


def on_images(n: int) -> str:
    """Return the accuracies on held-out images of MNIST, which are not scaled, by method and
    amount.
    """
    data = np.load(Path(os.environ["NEARKIN_DATA"]) / "mnist.npz")
    X, y = data["X"].astype(np.float32), data["y"]
    train, test = np.arange(n), np.arange(60_000, 63_000)
    rows = [["raw", f"{vote(X[train], y[train], X[test], y[test]):.1f}"]]
    for model in (partial(NMMP, n_neighbors_within=10), LDE, RCA):
        maps = [
            model(n_components=64, shrinkage=shrinkage).fit(X[train], y[train])
            for shrinkage in AMOUNTS.values()
        ]
        scores = [
            vote(one.transform(X[train]), y[train], one.transform(X[test]), y[test]) for one in maps
        ]
        rows.append([type(maps[0]).__name__, *(f"{score:.1f}" for score in scores)])
    return table(["method", *AMOUNTS], rows)


def component_rules(rank: int, n_classes: int) -> dict[str, int]:
    """Return numbers of components of NMMP by the name of a rule."""
    half = -(-rank // 2)
    return {
        "half of the rank": half,
        "max(20, 3c)": min(half, max(20, 3 * n_classes)),
        "3c": min(half, 3 * n_classes),
        "2c": min(half, 2 * n_classes),
    }


def by_training_rows(name: str) -> dict[str, Any]:
    """Return accuracies of 3-NN by number of training rows, method and amount, mean of two splits,
    in percent.
    """
    X, y = defaults.rows_of(name)
    found = {}
    for n in TRAINING_ROWS:
        if 2 * len(np.unique(y)) <= n <= 0.75 * len(y):
            splits = StratifiedShuffleSplit(
                2, train_size=n, test_size=min(len(y) - n, 1000), random_state=0
            )
            scores: dict[str, list[float]] = {}
            for train, test in splits.split(X, y):
                scaler = StandardScaler().fit(X[train])
                A, B = scaler.transform(X[train]), scaler.transform(X[test])
                varies = A.std(axis=0) > 0
                A, B = A[:, varies], B[:, varies]
                rank, n_classes = int(np.linalg.matrix_rank(A - A.mean(axis=0))), len(np.unique(y))
                scores.setdefault("raw", []).append(vote(A, y[train], B, y[test]))
                models = {
                    f"{method}|{shrinkage}": model(shrinkage=shrinkage)
                    for method, model in OF_TRAINING_ROWS.items()
                    for shrinkage in (None, 0.1, 0.5)
                }
                for rule, m in component_rules(rank, n_classes).items():
                    models |= {
                        f"NMMP {rule}|{shrinkage}": NMMP(m, shrinkage=shrinkage)
                        for shrinkage in (None, 0.5)
                    }
                for key, model in models.items():
                    model.fit(A, y[train])
                    score = vote(model.transform(A), y[train], model.transform(B), y[test])
                    scores.setdefault(key, []).append(score)
            means = {key: float(np.mean(values)) for key, values in scores.items()}
            found[str(n)] = {"p": A.shape[1], "c": n_classes, "r": rank, "acc": means}
    return found


def text_of_training_rows(results: dict[str, dict[str, Any]]) -> str:
    """Return three tables: gains by rows for each dimension, rules of the amount, and rules of
    NMMP's components.
    """
    cells = [
        (int(n), one["r"], one["acc"]) for of_set in results.values() for n, one in of_set.items()
    ]
    ratio = np.array([n / rank for n, rank, _ in cells])
    none, half = (
        np.array([[acc[f"{method}|{amount}"] for method in OF_TRAINING_ROWS] for *_, acc in cells])
        for amount in (None, 0.5)
    )
    rows = []
    for low, high in pairwise(BOUNDS):
        here = (ratio >= low) & (ratio < high)
        gains = (half - none)[here]
        share = f"{100 * np.mean(gains > 0.5):.0f} % / {100 * np.mean(gains < -0.5):.0f} %"
        bounds = f"{low} to {high}" if high < np.inf else "more"
        rows.append([bounds, here.sum(), f"{gains.mean():+.1f}", f"{gains.min():+.1f}", share])
    header = [
        "rows for each dimension",
        "cells",
        "1/2 - None",
        "worst",
        "gains / loses more than .5",
    ]
    tables = [table(header, rows)]
    rules = {
        "None": none,
        "a half": half,
        "the better of the two": np.maximum(none, half),
    }
    for limit in (5, 10, 20, 50):
        rules[f"a half up to {limit} rows for each dimension, else None"] = np.where(
            ratio[:, None] > limit, none, half
        )
    tables.append(
        table(
            ["default", "mean"], [[name, f"{scores.mean():.2f}"] for name, scores in rules.items()]
        )
    )
    of_rules: dict[str, list[str]] = {rule: [rule] for rule in component_rules(1, 1)}
    for shrinkage in (0.5, None):
        scores = np.array(
            [[acc[f"NMMP {rule}|{shrinkage}"] for rule in of_rules] for *_, acc in cells]
        )
        losses = scores - scores.max(axis=1, keepdims=True)
        for row, mean, loss in zip(
            of_rules.values(), scores.mean(axis=0), losses.min(axis=0), strict=True
        ):
            row += [f"{mean:.1f}", f"{loss:+.1f}"]
    header = [
        "components",
        "`shrinkage=0.5`: mean",
        "worst loss",
        "`shrinkage=None`: mean",
        "worst loss",
    ]
    return "\n\n".join([*tables, table(header, list(of_rules.values()))])


def text_of_amounts(results: dict[str, dict[str, float]]) -> str:
    """Return the mean and the worst difference to the raw features, by method and amount."""
    rows = []
    for name in SMALL:
        over = {amount: [one[f"{name}|{amount}"] for one in results.values()] for amount in AMOUNTS}
        rows.append(
            [name, *(f"{np.mean(values):+.1f} ({np.min(values):+.1f})" for values in over.values())]
        )
    return table(["method", *AMOUNTS], rows)


def text(results: dict[str, dict[str, float]], suffix: str = "") -> str:
    """Return the table of differences to the raw features: the paper's form, then shrunk, then the
    choice.
    """
    forms = list(FORMS) if suffix else [*FORMS, "chosen"]
    over = {
        name: [
            [one[f"{method}|{form}{suffix}"] - one["raw k-NN"] for form in forms]
            for method in SHRINKING
        ]
        for name, one in results.items()
    }
    rows = [
        [
            name,
            f"{results[name]['raw k-NN']:.1f}",
            *(" / ".join(f"{d:+.1f}" for d in both) for both in differences),
        ]
        for name, differences in over.items()
    ]
    every = np.array(list(over.values()))
    for label, values in (("mean", every.mean(axis=0)), ("worst", every.min(axis=0))):
        rows.append([label, "", *(" / ".join(f"{d:+.1f}" for d in both) for both in values)])
    return table(["set", "raw", *SHRINKING], rows)


def summary(results: dict[str, dict[str, float]]) -> str:
    """Return the mean and the worst difference to the raw features: the paper's form / the default."""
    rows = []
    for label, suffix in (("dimension chosen", ""), ("`n_components=None`", "|all")):
        over = np.array(
            [
                [
                    [one[f"{method}|{form}{suffix}"] - one["raw k-NN"] for form in FORMS]
                    for method in SHRINKING
                ]
                for one in results.values()
            ]
        )
        for what, values in (("mean", over.mean(axis=0)), ("worst", over.min(axis=0))):
            cells = (" / ".join(f"{d:+.1f}" for d in both) for both in values)
            rows.append([f"{label}, {what}", *cells])
    return table(["", *SHRINKING], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--amounts", action="store_true", help="compare amounts, on folds of training rows alone"
    )
    parser.add_argument(
        "--training-rows", action="store_true", help="compare numbers of training rows"
    )
    parser.add_argument(
        "--images", type=int, metavar="N", help="compare amounts on so many images of MNIST"
    )
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these")
    parser.add_argument("--splits", type=int, default=10, help="folds (default: 10)")
    parser.add_argument(
        "--store", type=Path, default=Path("shrinkage.json"), help="default: shrinkage.json"
    )
    options = parser.parse_args()
    if options.images:
        return print(on_images(options.images))
    results: dict[str, Any] = (
        json.loads(options.store.read_text()) if options.store.exists() else {}
    )
    if options.training_rows:
        for name in (name for group in defaults.GROUPS.values() for name in group):
            if name not in results and (options.sets is None or name in options.sets):
                with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
                    results[name] = by_training_rows(name)
                options.store.write_text(json.dumps(results, indent=1))
        return print(text_of_training_rows(results))
    chosen = [one for one in SETS if options.sets is None or one.name in options.sets]
    if options.amounts:
        for one in chosen:
            results[one.name] = results.get(one.name) or by_amount(one)
            options.store.write_text(json.dumps(results, indent=1))
        print(
            "Over the raw features in points, mean (and worst set), on folds of training rows, at "
            "the best dimension:\n"
        )
        print(text_of_amounts({one.name: results[one.name] for one in chosen}))
        return
    for one in chosen:
        for _ in measure(one, results.setdefault(one.name, {}), options.splits):
            options.store.write_text(json.dumps(results, indent=1))
    print(
        "Difference to 3-NN on the raw features in points: the paper's form / the default / the "
        "better of the two by inner folds; dimension chosen.\n"
    )
    print(text({one.name: results[one.name] for one in chosen}))
    print("\nWith `n_components=None`:\n")
    print(text({one.name: results[one.name] for one in chosen}, "|all"))
    print(f"\nOver the sets:\n\n{summary({one.name: results[one.name] for one in chosen})}")


if __name__ == "__main__":
    main()
