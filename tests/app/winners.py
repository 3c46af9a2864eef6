"""Models of every method, as `nearkin compare --save` would write them had the automatic choice
been that method.
"""

from dataclasses import replace

import numpy as np
from scipy.sparse import random_array

from nearkin.app.tables.model import learned_model
from nearkin.comparison import RAW, Vote, all_methods, compare
from nearkin.comparison.contestants import Choice, contestant
from nearkin.comparison.protocol import Fold

METHODS = {method.name: method for method in all_methods(semi_supervised=True)}
FOR_SPARSE_ROWS = [
    RAW,
    "NCA tables",
    "RCA",
    "LPP",
    "LFDA",
    "LDE",
    "MFA",
    "DNE",
    "NMMP",
    "NMMP ratio trace",
    "TDL",
]
N_ROWS = 40
HARD, SOFT = Vote(3), Vote(10, soft=True)


def fitted(name, table, *, scale=True, vote=HARD):
    """Return a comparison on a table whose automatic choice is declared to be a method, and the
    fitted pipeline.
    """
    folds = {"n_splits": 2, "n_repeats": 1, "n_neighbors": 3}
    comparison = compare(
        table,
        table.target,
        task=table.task,
        methods=[],
        references=[],
        refit=False,
        scale=scale,
        **folds,
    )
    rows = Fold(comparison.protocol, comparison.protocol.labelled)
    method = METHODS[name] if isinstance(name, str) else name
    pipeline, voters = contestant(method).pipeline(rows, Choice({}, vote))
    return replace(
        comparison, winner=pipeline, winner_method=method.name, winner_rows=voters
    ), pipeline


def winner(name, table, *, scale=True, vote=HARD):
    """Return the model of a table for which a method is declared to be the automatic choice."""
    return learned_model(fitted(name, table, scale=scale, vote=vote)[0], table)


def write_tables(folder):
    """Write a CSV with text, and NPZ files with dense, single-precision and sparse rows; each has
    other rows, too.
    """
    rng = np.random.default_rng(0)
    for name, colours in (("table", ["red", "green", "blue"]), ("new", ["red", "green", "pink"])):
        sizes = rng.standard_normal((N_ROWS, 3)).round(3)
        words = rng.choice(colours, N_ROWS)
        kinds = np.arange(N_ROWS) * 3 // N_ROWS
        rows = (
            f"{a},{b},{c},{word},kind {k}\n"
            for (a, b, c), word, k in zip(sizes, words, kinds, strict=True)
        )
        (folder / f"words {name}.csv").write_text(
            "width,height,depth,colour,kind\n" + "".join(rows)
        )
        gaps = zip(sizes, words, kinds, np.arange(N_ROWS), strict=True)
        rows = (f"{'' if i % 7 == 0 else a},€{b},{1 + i % 28}.{1 + i % 12}.2024,{w if i % 5 else ''},kind {k}\n"
                for (a, b, _), w, k, i in gaps)  # fmt: skip
        (folder / f"gaps {name}.csv").write_text("width,price,day,colour,kind\n" + "".join(rows))
        X = rng.standard_normal((N_ROWS, 6))
        np.savez(folder / f"dense {name}.npz", X=X, y=kinds)
        np.savez(folder / f"single {name}.npz", X=X.astype(np.float32), y=kinds)
        S = random_array((N_ROWS, 9), density=0.4, format="csr", random_state=rng)
        np.savez(
            folder / f"sparse {name}.npz",
            data=S.data,
            indices=S.indices,
            indptr=S.indptr,
            shape=S.shape,
            y=kinds,
        )
