"""The amount of `shrinkage`, and NMMP's number of components. Frozen: chosen on 2026-11-22 for 0.1.0,
last run on 2026-11-26 with 0.3.0.

It led to: `shrinkage=0.5` ("amounts from 0.3 to 0.7 hardly differ" on folds of training rows alone,
`amounts`); "`nearkin compare` lets inner folds choose between the paper's form and 1/2" (`forms`: 3-NN
on three held-out folds of 15 sets); "A default that depends on the number of rows gains nothing"; and
`NMMP`'s default of 3c components, with `shrinkage=None` half of the rank (`training_rows`: 39 sets,
60 to 1,500 training rows, at most 1,000 others, mean of two splits).
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.data import SETS, published_split, some
from benchmarks.measure import command
from benchmarks.report import head, row
from benchmarks.studies.defaults import GROUPS, spectral_sets, split
from nearkin import DMLMJ, LDE, LFDA, MFA, NMMP, RCA
from nearkin.comparison import Method, all_methods, compare

AMOUNTS = {"paper": None, "0.3": 0.3, "0.5": 0.5, "0.7": 0.7, "1": 1.0}
DIMENSIONS = (2, 5, 10, 20, 30, 50, 100, 300)


def vote(Z, y, new, new_y):
    """Return the accuracy of 3-NN in percent."""
    return 100 * KNeighborsClassifier(3, algorithm="brute").fit(Z, y).score(new, new_y)


def amounts():
    """By method and amount: the best accuracy of any leading dimension on two of four folds of nine
    tenths of the rows, over raw, mean and worst set.
    """
    models = {"RCA": RCA, "LDE": LDE, "MFA": MFA, "LFDA": LFDA, "NMMP": NMMP}
    over = {(name, amount): [] for name in models for amount in AMOUNTS}
    for one in SETS:
        X, y = some(one, 1000)
        # the held-out rows are not looked at
        rows = next(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))[0]
        folds = list(StratifiedKFold(4, shuffle=True, random_state=1).split(X[rows], y[rows]))[:2]
        gains = {key: [] for key in over}
        for train, test in ((rows[train], rows[test]) for train, test in folds):
            scaler = StandardScaler(with_mean=not one.units, with_std=not one.units).fit(X[train])
            A, B = scaler.transform(X[train]), scaler.transform(X[test])
            raw, p = vote(A, y[train], B, y[test]), min(A.shape[1], len(A) - 1)
            for name, amount in over:
                model = partial(models[name], shrinkage=AMOUNTS[amount])
                every = None if name == "NMMP" else model().fit(A, y[train])
                scores = []
                for m in DIMENSIONS:
                    map_ = every or model(min(m, p)).fit(A, y[train])
                    Z, new = map_.transform(A)[:, :m], map_.transform(B)[:, :m]
                    scores.append(vote(Z, y[train], new, y[test]) - raw)
                gains[name, amount].append(scores)
        for key, scores in gains.items():
            over[key].append(np.mean(scores, axis=0).max())
    head("method", *AMOUNTS)
    for name in models:
        values = (over[name, amount] for amount in AMOUNTS)
        row(name, *(f"{np.mean(one):+.1f} ({np.min(one):+.1f})" for one in values))


def images(n=10_000):
    """3-NN on 3,000 test images of MNIST after maps to 64 dimensions, by method and amount."""
    X, y, new, new_y = published_split("mnist")
    X, y, new, new_y = X[:n], y[:n], new[:3000], new_y[:3000]
    head("method", *AMOUNTS)
    row("raw", f"{vote(X, y, new, new_y):.1f}")
    for model in (partial(NMMP, n_neighbors_within=10), LDE, RCA):
        maps = [model(n_components=64, shrinkage=one).fit(X, y) for one in AMOUNTS.values()]
        scores = (vote(one.transform(X), y, one.transform(new), new_y) for one in maps)
        row(type(maps[0]).__name__, *(f"{score:.1f}" for score in scores))


SHRINKING = ("RCA", "LDE", "MFA", "LFDA", "NMMP", "NMMP ratio trace")
FORMS = {"paper": None, "default": 0.5}


def settings_without_amounts(method: Method, p: int) -> list[dict[str, Any]]:
    found = []
    for setting in method.settings(p):
        rest = {name: value for name, value in setting.items() if name != "shrinkage"}
        if rest not in found:
            found.append(rest)
    return found


def methods() -> Iterator[Method]:
    """Yield every method that shrinks in both forms, with the dimension chosen and with all; "chosen"
    is what `compare` does: inner folds choose the form, too.
    """
    for method in all_methods():
        if method.name in SHRINKING and method.estimator is not None:
            for form, shrinkage in FORMS.items():
                model = clone(method.estimator).set_params(shrinkage=shrinkage)
                settings = partial(settings_without_amounts, method)
                yield Method(
                    f"{method.name}|{form}", model, settings=settings, nested=method.nested
                )
                every = clone(model).set_params(n_components=None)
                yield Method(f"{method.name}|{form}|all", every, nested=False)
            yield replace(method, name=f"{method.name}|chosen")


def forms():
    """The difference to raw 3-NN: the paper's form / 1/2, over the sets."""
    over = []
    how = {"n_splits": 3, "n_repeats": 1, "n_neighbors": 3, "score": "accuracy", "refit": False}
    for one in SETS[:15]:
        X, y = some(one, 1000)
        found = compare(X, y, methods=list(methods()), references=(), scale=not one.units, **how)
        scores = {result.name: 100 * result.score.mean() for result in found.results}
        over.append({name: score - scores["raw k-NN"] for name, score in scores.items()})
    head("", *SHRINKING)
    for label, suffix in (("dimension chosen", ""), ("`n_components=None`", "|all")):
        for what, summary in (("mean", np.mean), ("worst", np.min)):
            cells = [
                [
                    f"{summary([one[f'{name}|{form}{suffix}'] for one in over]):+.1f}"
                    for form in FORMS
                ]
                for name in SHRINKING
            ]
            row(f"{label}, {what}", *map(" / ".join, cells))


OF_TRAINING_ROWS = {
    **{method.__name__: method for method in (LDE, LFDA, MFA, RCA, DMLMJ)},
    "NMMPr": partial(NMMP, criterion="ratio_trace"),
}
# of the number of training rows for each dimension of their span
BOUNDS = (0, 2, 5, 10, 20, 50, np.inf)


def component_rules(rank, n_classes):
    """Return numbers of components of NMMP by the name of a rule."""
    half = -(-rank // 2)
    most = {"max(20, 3c)": max(20, 3 * n_classes), "3c": 3 * n_classes, "2c": 2 * n_classes}
    return {"half of the rank": half} | {rule: min(half, m) for rule, m in most.items()}


def training_rows():
    """What 1/2 gains over the paper's form by the number of training rows for each dimension, what a
    default that follows this number would gain, and how many components of NMMP classify best.
    """
    ratios, cells = [], []
    for _, X, y, _ in spectral_sets(name for group in GROUPS.values() for name in group):
        c = len(np.unique(y))
        for n in (n for n in (60, 200, 600, 1500) if 2 * c <= n <= 0.75 * len(y)):
            scores = {}
            for train, test in split(y, n, 2).split(X, y):
                scaler = StandardScaler().fit(X[train])
                A, B = scaler.transform(X[train]), scaler.transform(X[test])
                A, B = A[:, varies := A.std(axis=0) > 0], B[:, varies]
                rank = int(np.linalg.matrix_rank(A - A.mean(axis=0)))
                models = {
                    (name, amount): model(shrinkage=amount)
                    for name, model in OF_TRAINING_ROWS.items()
                    for amount in (None, 0.5)
                }
                models |= {
                    (rule, amount): NMMP(m, shrinkage=amount)
                    for rule, m in component_rules(rank, c).items()
                    for amount in (None, 0.5)
                }
                for key, model in models.items():
                    model.fit(A, y[train])
                    score = vote(model.transform(A), y[train], model.transform(B), y[test])
                    scores.setdefault(key, []).append(score)
            ratios.append(n / rank)
            cells.append({key: np.mean(values) for key, values in scores.items()})
    ratios = np.array(ratios)
    none, half = (
        np.array([[cell[name, amount] for name in OF_TRAINING_ROWS] for cell in cells])
        for amount in (None, 0.5)
    )
    head("rows for each dimension", "cells", "1/2 - None", "worst", "gains / loses more than .5")
    for low, high in pairwise(BOUNDS):
        here = (ratios >= low) & (ratios < high)
        gains = (half - none)[here]
        share = f"{100 * np.mean(gains > 0.5):.0f} % / {100 * np.mean(gains < -0.5):.0f} %"
        bounds = f"{low} to {high}" if high < np.inf else "more"
        row(bounds, here.sum(), f"{gains.mean():+.1f}", f"{gains.min():+.1f}", share)
    rules = {"None": none, "a half": half, "the better of the two": np.maximum(none, half)}
    for limit in (5, 10, 20, 50):
        name = f"a half up to {limit} rows for each dimension, else None"
        rules[name] = np.where(ratios[:, None] > limit, none, half)
    head("default", "mean")
    for name, scores in rules.items():
        row(name, f"{scores.mean():.2f}")
    of = ("`shrinkage=0.5`: mean", "worst loss", "`shrinkage=None`: mean", "worst loss")
    head("components", *of)
    for rule in component_rules(1, 1):
        shown = []
        for amount in (0.5, None):
            every = np.array(
                [[cell[one, amount] for one in component_rules(1, 1)] for cell in cells]
            )
            ours = np.array([cell[rule, amount] for cell in cells])
            shown += [f"{ours.mean():.1f}", f"{(ours - every.max(axis=1)).min():+.1f}"]
        row(rule, *shown)


if __name__ == "__main__":
    command(forms, amounts, images, training_rows, threads=1)
