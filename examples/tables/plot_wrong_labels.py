"""
Wrong labels in a table
=======================

Which rows should somebody look at again? Some tumours of a table are given the other label here, so
that the answer is known. :func:`nearkin.label_issues` ranks all rows by how likely their label is
to be wrong. The picture shows how many of the wrong labels are among the first rows, and how many
it expects there; and where they lie in the learned space.
"""

# %%
# One label in ten is wrong
# -------------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import NCAClassifier, label_issues

tumours = load_breast_cancer(as_frame=True).frame
tumours["target"] = np.array(["malignant", "benign"])[tumours.target]
known, new = train_test_split(tumours, test_size=0.4, random_state=0)
known = known.reset_index(drop=True)
rng = np.random.default_rng(0)
flipped = rng.random(len(known)) < 0.1
given = known.copy()
given.loc[flipped, "target"] = np.where(known.target == "benign", "malignant", "benign")[flipped]

found = label_issues(given, "target")
print(f"{flipped.sum()} labels are wrong, {found.n_issues} are expected to be")
print(found.to_frame().head(8).to_string(index=False))

# %%
# The rows near the first one speak against its label.
print(f"row {found.rows[0]} is labelled {found.labels[0]}; the nearest rows:")
for row, label in zip(found.neighbors[0], found.neighbor_labels[0], strict=True):
    print(f"   row {row}: {label}")

# %%
# Among the first rows
# --------------------
hits = np.cumsum(flipped[found.rows])
n_shown = 3 * flipped.sum()
looked_at = np.arange(1, n_shown + 1)
model = NCAClassifier().fit(given.drop(columns="target"), given.target)
Z = model.transform(given.drop(columns="target"))
flagged = np.isin(np.arange(len(given)), found.rows[: found.n_issues])

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot(looked_at, hits[:n_shown], color="#0072B2")
left.plot(looked_at, found.expected[:n_shown], "--", color="#D55E00")
left.plot(looked_at, flipped.mean() * looked_at, ":", color="grey")
left.text(n_shown, hits[n_shown - 1] - 2, "wrong", color="#0072B2", ha="right", va="top")
left.text(
    n_shown, found.expected[n_shown - 1] + 1, "expected", color="#D55E00", ha="right", va="bottom"
)
left.text(n_shown, flipped.mean() * n_shown + 1, "in any order", color="grey", ha="right")
left.set(xlabel="rows looked at", ylabel="wrong labels among them")
left.set_title(f"{hits[flipped.sum() - 1]} of {flipped.sum()} wrong labels come first")

for label, color in (("malignant", "#CC79A7"), ("benign", "#009E73")):
    rows = (given.target == label).to_numpy()
    right.scatter(Z[rows, 0], Z[rows, 1], s=8, color=color, alpha=0.6, label=label)
right.scatter(
    Z[flipped, 0], Z[flipped, 1], s=50, facecolors="none", edgecolors="black", label="wrong"
)
right.scatter(Z[flagged, 0], Z[flagged, 1], s=18, marker="x", color="black", label="listed first")
right.set(xlabel="first axis", ylabel="second axis", title="The learned space")
right.legend(loc="best", fontsize="small")
plt.show()

# %%
# Without the listed rows
# -----------------------
# 1-NN, which believes every label, is scored on new rows whose labels are right: learned without
# the rows that are listed first, without as many drawn at random, and with all. ``NCAClassifier``
# itself averages over many rows and tolerates wrong labels well: it needs no cleaning.
drawn = np.isin(np.arange(len(given)), rng.choice(len(given), found.n_issues, replace=False))
scores = {}
for what, kept in (
    ("all rows", np.ones(len(given), dtype=bool)),
    ("as many at random left out", ~drawn),
    ("the listed ones left out", ~flagged),
):
    rows = given[kept]
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(1))
    model.fit(rows.drop(columns="target"), rows.target)
    scores[what] = model.score(new.drop(columns="target"), new.target)
    print(f"{what}: {scores[what]:.1%} of new rows right")

# %%
# .. seealso::
#
#    :doc:`/guide/checking` says what the probabilities assume, and how ``nearkin check`` prints all
#    this for a file.
