"""Models of every method, as `nearkin compare --save` would write them had that method won."""

from dataclasses import replace

import numpy as np
from scipy.sparse import random_array
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from nearkin.app.model import learned_model
from nearkin.evaluation import RAW, compare, default_methods

METHODS = {method.name: method for method in default_methods(semi_supervised=True)}
FOR_SPARSE_ROWS = [RAW, "RCA", "LPP", "LFDA", "LDE", "MFA", "DNE", "NMMP", "NMMP ratio trace", "TDL"]
N_ROWS = 40


def fitted(name, table, *, scale=True):
    """Return a comparison on a table that a method is declared to have won, and the fitted pipeline."""
    comparison = compare(table.X, table.y, task=table.task, methods=[], n_splits=2, n_repeats=1, scale=scale)
    raw = best = comparison[RAW]
    *steps, vote = raw.pipeline.steps
    if name != RAW:
        best = replace(raw, method=METHODS[name], difference=0.1, p_value=0.01)
        steps.append(("map", clone(METHODS[name].estimator)))
    y = table.y if len(table.labelled) == len(table.y) else np.where(table.y == None, -1, table.y).astype(int)  # noqa: E711
    pipeline = Pipeline([*steps, vote]).fit(table.X, y)
    return replace(comparison, results=(best, raw), winner=pipeline), pipeline


def winner(name, table, *, scale=True):
    """Return the model of a table on which a method is declared to have won."""
    return learned_model(fitted(name, table, scale=scale)[0], table)


def write_tables(folder):
    """Write a CSV with text, and NPZ files with dense, single-precision and sparse rows; each has other rows, too."""
    rng = np.random.default_rng(0)
    for name, colours in (("table", ["red", "green", "blue"]), ("new", ["red", "green", "pink"])):
        sizes = rng.standard_normal((N_ROWS, 3)).round(3)
        words = rng.choice(colours, N_ROWS)
        kinds = np.arange(N_ROWS) * 3 // N_ROWS
        rows = (f"{a},{b},{c},{word},kind {k}\n" for (a, b, c), word, k in zip(sizes, words, kinds, strict=True))
        (folder / f"words {name}.csv").write_text("width,height,depth,colour,kind\n" + "".join(rows))
        X = rng.standard_normal((N_ROWS, 6))
        np.savez(folder / f"dense {name}.npz", X=X, y=kinds)
        np.savez(folder / f"single {name}.npz", X=X.astype(np.float32), y=kinds)
        S = random_array((N_ROWS, 9), density=0.4, format="csr", random_state=rng)
        np.savez(folder / f"sparse {name}.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=kinds)
