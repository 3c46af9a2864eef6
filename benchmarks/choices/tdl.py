"""Whether labels shape the coordinates of TDLClassifier. Frozen: chosen on 2026-11-22 for 0.1.0, last
run on 2026-11-26 with 0.3.0.

It led to the limit `reg=np.inf` as the default: with a hundred eigenvectors, the labels gain nothing
more as a cost; most rows are labelled correctly without it, fewer with `reg=1` and fewest with
`reg=0.1`. On the 31 sets of "classifier" in studies/few_labels.py on which defaults were chosen, at
most 300 rows, mean accuracy over sets, shares of labels and three draws.
"""

import numpy as np

from benchmarks.report import head, row
from benchmarks.studies.few_labels import CHOSEN_ON, FEW, accuracies, prepared, transduced
from nearkin import TDL, TDLClassifier

REGS = (np.inf, 1.0, 0.1)  # weights of the penalty; infinity: no cost of labels

if __name__ == "__main__":
    found = []
    for one in CHOSEN_ON:
        X, y = prepared(one, 300)
        m = min(max(100, 2 * len(np.unique(y))), len(y) - 2)
        shape = {"n_neighbors": 5, "bandwidth": np.inf, "laplacian": "normalized"}
        labels = [transduced(TDLClassifier(TDL(m, reg=reg, **shape))) for reg in REGS]
        found.append(
            [np.mean([accuracies(label, X, y, share, 3) for share in FEW]) for label in labels]
        )
    head("reg", "mean")
    for reg, mean in zip(REGS, np.mean(found, axis=0), strict=True):
        row(reg, f"{mean:.1f}")
