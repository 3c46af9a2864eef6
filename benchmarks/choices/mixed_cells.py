"""From which share of numbers on a column of numbers and words is read as numbers (`LEAST_READ` in
tables/columns.py), and from how many rows on a word among them has an indicator (`LEAST_ROWS`, there
and in tables/gaps.py). Frozen: chosen on 2026-11-27, after 0.3.0.

It led to: "held-out scores of this reading are nowhere worse than those of a category: log loss .49 /
.51 at 0.1, .51 / .60 at 0.5, .50 / .66 at 0.9, R2 .925 / .895. So one share is enough; it is one half,
since with fewer the column is words"; and to five rows: "With 2, 5, 10 and 20, log losses of drawn
tables with 30 words are .48, .51, .53, .53 for one half of words, and .49, .48, .48, .48 for a tenth."

Tables are drawn whose column x holds numbers in a share of the rows and one of several words, of
Zipf's frequencies, in the others; y depends on both. `wild`: columns of `wild/` that hold both, read
in both ways, in five folds of training rows.
"""

from unittest import mock

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import KFold

from benchmarks.measure import command
from benchmarks.report import head, row
from nearkin import NCAClassifier, NCARegressor
from nearkin.tables import columns

NUMBERS, CATEGORY = 1e-9, 1.1  # shares from which on a column is numbers: always, never
N, SEEDS = 250, 4


def drawn_loss(share, n_words, seed):
    """Return the log loss of the second half of a drawn table."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=(2, 2 * N))
    weights = 1 / np.arange(1, n_words + 1)
    word = rng.choice(n_words, 2 * N, p=weights / weights.sum())
    of_word = rng.normal(size=n_words)
    has_number = rng.random(2 * N) < share
    logits = 2 * np.where(has_number, x, of_word[word]) + z
    cells = np.where(has_number, np.round(50 + 20 * x, 1).astype(str), [f"word {w}" for w in word])
    frame, y = pd.DataFrame({"x": cells, "z": z}), rng.random(2 * N) < 1 / (1 + np.exp(-logits))
    model = NCAClassifier(random_state=0).fit(frame[:N], y[:N])
    return log_loss(y[N:], model.predict_proba(frame[N:]))


def mean_losses(constant, values, share, n_words):
    """Return the mean loss by the value of a constant of `columns`."""
    found = []
    for value in values:
        with mock.patch.object(columns, constant, value):
            found.append(np.mean([drawn_loss(share, n_words, seed) for seed in range(SEEDS)]))
    return [f"{one:.3f}" for one in found]


def drawn():
    head("words", "share of numbers", "log loss, numbers with words", "category")
    for n_words in (4, 30):
        for share in (0.1, 0.3, 0.5, 0.7, 0.9):
            row(n_words, share, *mean_losses("LEAST_READ", (NUMBERS, CATEGORY), share, n_words))
    rows = (2, 5, 10, 20)
    head("share of numbers, 30 words", *(f"log loss, indicators from {n} rows on" for n in rows))
    for share in (0.5, 0.9):
        row(share, *mean_losses("LEAST_ROWS", rows, share, 30))


WILD = (
    ("focus", "fuel type"),
    ("focus", "engine size2"),
    ("thanksgiving", "What's the age cutoff at your \"kids' table\" at Thanksgiving?"),
    (
        "thanksgiving",
        "How much total combined money did all members of your HOUSEHOLD earn last year?",
    ),
)


def wild():
    from benchmarks.studies.wild import TABLES, scores, withheld

    head("table: column", "score", "numbers with words", "category")
    for table, column in WILD:
        X, y, _, _ = withheld(table, cleaned=False)
        rows = np.random.default_rng(0).permutation(len(y))[:700]
        others = [name for name in X if name != column][:8]
        X, y, is_real = (
            X.iloc[rows][[column, *others]].reset_index(drop=True),
            y[rows],
            TABLES[table].is_real,
        )
        found = []
        for least in (NUMBERS, CATEGORY):
            with mock.patch.object(columns, "LEAST_READ", least):
                of_folds = []
                for train, test in KFold(5, shuffle=True, random_state=0).split(X):
                    model = (NCARegressor if is_real else NCAClassifier)(random_state=0)
                    model.fit(X.iloc[train], y[train])
                    if is_real:
                        of_folds.append(r2_score(y[test], model.predict(X.iloc[test])))
                    else:
                        of_folds.append(scores(model, X.iloc[test], y[test], is_real=False)[1])
            found.append(np.mean(of_folds))
        row(
            f"{table}: {column[:40]}",
            "R2" if is_real else "log loss",
            *(f"{one:.3f}" for one in found),
        )


if __name__ == "__main__":
    command(drawn, wild, threads=1)
