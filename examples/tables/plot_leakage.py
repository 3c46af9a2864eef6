"""
Copies and row numbers that flatter a score
===========================================

Why does a model do so well in cross-validation and so badly afterwards? Often because of rows that
occur twice, or of a column that is not known for new rows. Both are added here to clean tables, so
that the honest score is known. The picture shows what plain cross-validation reports, and what
:func:`nearkin.comparison.compare` reports, which keeps copies on one side of every split and leaves
out row numbers.
"""

# %%
# Rows that occur twice
# ---------------------
# Some of 442 people with diabetes are entered twice, the second time measured with a small error.
# The classes are fast and slow progression of the disease.
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin.comparison import compare

X, progression = load_diabetes(return_X_y=True)
y = np.where(progression > np.median(progression), "fast", "slow")
nearest = make_pipeline(StandardScaler(), KNeighborsClassifier(1))
folds = StratifiedKFold(5, shuffle=True, random_state=0)
rng = np.random.default_rng(0)
order = rng.permutation(len(y))

shares, plain, honest = (0, 0.1, 0.25, 0.5, 1), [], []
for share in shares:
    again = order[: int(share * len(y))]
    error = rng.normal(scale=1e-3 * X.std(), size=(len(again), X.shape[1]))
    rows, labels = np.vstack([X, X[again] + error]), np.append(y, y[again])
    plain.append(cross_val_score(nearest, rows, labels, cv=folds).mean())
    comparison = compare(
        rows,
        labels,
        methods=[],
        references=[],
        n_neighbors=1,
        n_splits=5,
        n_repeats=1,
        refit=False,
        n_jobs=1,
    )
    honest.append(comparison.raw.score.mean())
    print(
        f"{len(again)} people entered twice: {comparison.protocol.n_twins} rows with a twin found"
    )

# %%
# A column that numbers the rows
# ------------------------------
# Tables are often sorted. That of iris is sorted by species, so that the number of a row gives the
# species away. Only the two columns of the sepals are kept beside it. In these, many flowers are
# equal: equal flowers, too, stay on one side of a split.
flowers = load_iris(as_frame=True).frame.iloc[:, [0, 1, 4]].rename(columns={"target": "species"})
flowers.insert(0, "id", range(1, len(flowers) + 1))
vote = make_pipeline(StandardScaler(), KNeighborsClassifier(5))
with_id = cross_val_score(vote, flowers.drop(columns="species"), flowers.species, cv=folds).mean()
sepals = cross_val_score(vote, flowers.iloc[:, [1, 2]], flowers.species, cv=folds).mean()
without_id = compare(
    flowers, "species", methods=[], references=[], n_neighbors=5, refit=False, n_jobs=1
)
print(f"plain cross-validation: {with_id:.1%} with the id column, {sepals:.1%} without")
print(
    f"compare: {without_id.raw.score.mean():.1%}; {without_id.protocol.n_twins} rows with a twin; "
    f"{without_id.remarks[0]}"
)

# %%
# The scores
# ----------
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 4), width_ratios=[3, 2], layout="constrained")
percent = 100 * np.array(shares)
left.plot(percent, plain, "s--", color="#D55E00")
left.plot(percent, honest, "o-", color="#0072B2")
left.text(98, plain[-1] - 0.04, "plain\ncross-validation", color="#D55E00", ha="right", va="top")
left.text(
    98, honest[-1] - 0.015, "twins on one side of a split", color="#0072B2", ha="right", va="top"
)
left.set(
    xlabel="people entered twice (%)", ylabel="accuracy of 1-NN on held-out rows", ylim=(0.5, 1.02)
)
left.set_title(f"All rows twice: plain {plain[-1]:.0%}, honest {honest[-1]:.0%}")

scores = [with_id, without_id.raw.score.mean()]
bars = right.bar(
    ["plain, with\nthe id column", "id column\nleft out"],
    scores,
    color=["#D55E00", "#0072B2"],
    width=0.6,
)
right.bar_label(bars, [f"{score:.0%}" for score in scores])
right.set(ylabel="accuracy of 5-NN on held-out rows", ylim=(0, 1.08))
right.set_title("Row numbers as a column")
plt.show()

# %%
# Without copies, the two scores on the left differ only by the draw of the folds. The more people
# are entered twice, the more of the held-out rows have their own copy among the training rows, and
# the higher plain cross-validation climbs; a new person has no copy there. On the right nearly the
# whole difference is due to the row numbers.
#
# A column that is the target in other words
# ------------------------------------------
# The command ``nearkin compare`` also names columns that alone predict the target almost perfectly.
# Here the flowers were treated by species, which nobody knows before the species is known.
treated = flowers.assign(treatment=flowers.species.map({0: "water", 1: "shade", 2: "sand"}))
with TemporaryDirectory() as folder:
    table = Path(folder, "flowers.csv")
    treated.to_csv(table, index=False)
    command = [
        sys.executable,
        "-m",
        "nearkin",
        "compare",
        str(table),
        "--target",
        "species",
        "--methods",
        "pca",
        "--quick",
    ]
    found = subprocess.run(
        [*command, "--no-references"], cwd=folder, capture_output=True, text=True, check=True
    )
print(*found.stdout.splitlines()[:4], sep="\n")

# %%
# .. seealso::
#
#    :doc:`/guide/compare` has the rules for these columns, and ``groups`` for rows that belong together in other ways.
#    :func:`nearkin.comparison.twin_groups` returns the groups of twins for scikit-learn's splitters.
