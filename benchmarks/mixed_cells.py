"""From which share of numbers on is a column of numbers and words read as numbers?

    python benchmarks/mixed_cells.py
    NEARKIN_DATA=folder python benchmarks/mixed_cells.py --wild

Tables are drawn whose column x holds numbers in a share of the rows and one of several words in the others; y depends
on both. NCA reads x as numbers with indicators of words, or as a category. With `--wild`, columns of `wild/` that hold
both are read in both ways, in five folds of training rows.
"""

from __future__ import annotations

import argparse
import warnings
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from nearkin import NCAClassifier, NCARegressor
from nearkin.tables import columns

NUMBERS, CATEGORY = 1e-9, 1.1  # shares from which on a column is numbers: always, never
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
N_WORDS = (4, 30)
LEAST_ROWS = (2, 5, 10, 20)
N, SEEDS = 250, 4


def drawn(share: float, n_words: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows and classes; the words have the frequencies of Zipf."""
    rng = np.random.default_rng(seed)
    n = 2 * N
    x, z = rng.normal(size=(2, n))
    weights = 1 / np.arange(1, n_words + 1)
    word = rng.choice(n_words, n, p=weights / weights.sum())
    of_word = rng.normal(size=n_words)
    has_number = rng.random(n) < share
    logits = 2 * np.where(has_number, x, of_word[word]) + z
    cells = np.where(has_number, np.round(50 + 20 * x, 1).astype(str), [f"word {w}" for w in word])
    return pd.DataFrame({"x": cells, "z": z}), rng.random(n) < 1 / (1 + np.exp(-logits))


def loss(share: float, n_words: int, seed: int) -> float:
    """Return the log loss of the second half of a drawn table."""
    frame, y = drawn(share, n_words, seed)
    model = NCAClassifier(random_state=0).fit(frame[:N], y[:N])
    return float(log_loss(y[N:], model.predict_proba(frame[N:])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wild", action="store_true", help="columns of `wild/`")
    if parser.parse_args().wild:
        return in_the_wild()
    print("log loss as numbers with words, as a category; by the share of numbers")
    for n_words in N_WORDS:
        for share in SHARES:
            found = []
            for least in (NUMBERS, CATEGORY):
                with mock.patch.object(columns, "LEAST_READ", least):
                    found.append(np.mean([loss(share, n_words, seed) for seed in range(SEEDS)]))
            print(f"| {n_words} words | {share} | {found[0]:.3f} | {found[1]:.3f} |", flush=True)
    print("log loss by the rows from which on a word has an indicator, 30 words")
    for share in (0.5, 0.9):
        found = []
        for least in LEAST_ROWS:
            with mock.patch.object(columns, "LEAST_ROWS", least):
                found.append(np.mean([loss(share, 30, seed) for seed in range(SEEDS)]))
        print(f"| {share} | {' | '.join(f'{one:.3f}' for one in found)} |", flush=True)
    return None


# table, column, and rows that are taken
WILD = (
    ("focus", "fuel type", 700),
    ("focus", "engine size2", 700),
    ("thanksgiving", "What's the age cutoff at your \"kids' table\" at Thanksgiving?", 700),
    (
        "thanksgiving",
        "How much total combined money did all members of your HOUSEHOLD earn last year?",
        700,
    ),
)


def in_the_wild() -> None:
    from wild import TABLES, withheld

    for table, column, n in WILD:
        X, y, _, _ = withheld(table, cleaned=False)
        rows = np.random.default_rng(0).permutation(len(y))[:n]
        X, y, is_real = X.iloc[rows].reset_index(drop=True), y[rows], TABLES[table].is_real
        others = [name for name in X if name != column][:8]
        found = []
        for least in (NUMBERS, CATEGORY):
            scores = []
            for train, test in KFold(5, shuffle=True, random_state=0).split(X):
                with mock.patch.object(columns, "LEAST_READ", least):
                    model = (NCARegressor if is_real else NCAClassifier)(random_state=0)
                    model.fit(X.iloc[train][[column, *others]], y[train])
                new = X.iloc[test][[column, *others]]
                if is_real:
                    scores.append(r2_score(y[test], model.predict(new)))
                else:
                    P = np.maximum(model.predict_proba(new), 1e-4)
                    at = {label: place for place, label in enumerate(model.classes_.tolist())}
                    scores.append(
                        np.mean([-np.log(p[at[one]]) for p, one in zip(P, y[test], strict=True)])
                    )
            found.append(np.mean(scores))
        kind = "R2" if is_real else "log loss"
        print(f"| {table}: {column[:40]} | {kind} | {found[0]:.3f} | {found[1]:.3f} |", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        main()
