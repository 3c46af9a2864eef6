"""
How many dimensions? DNE's negative eigenvalues
===============================================

How many dimensions should a learned space have? :class:`~nearkin.DNE` computes an answer together
with its directions. Each direction has an eigenvalue: the scatter between neighbours of the same
class minus the scatter between neighbours of different classes. Where it is negative, the direction
separates neighbours of different classes more than it spreads neighbours of the same class. The
number of negative eigenvalues sets the dimension.

The pictures show the eigenvalues for images of handwritten digits and, below them, the accuracy of
3-NN on held-out images in the space of the first 1, 2, 3, ... directions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from nearkin import DNE

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

# %%
# Fit
# ---
# All 64 features are pixels from 0 to 16. They share a unit, so they are not standardized.
# ``n_components=None`` keeps the directions with negative eigenvalues; a share such as 0.96 keeps
# the fewest whose eigenvalues make up 96 % of the negative sum, the rule of the paper.

dne = DNE(n_neighbors=5).fit(X_train, y_train)
shorter = DNE(n_components=0.96, n_neighbors=5).fit(X_train, y_train)
print(f"{dne.n_components_} of {len(dne.eigenvalues_)} eigenvalues are negative")
print(f"the first {shorter.n_components_} make up 96 % of the negative sum")

# %%
# Accuracy by dimension
# ---------------------
# The directions do not depend on how many are kept, so one fit that keeps all of them serves for
# every dimension. PCA is measured in the same way.

dimensions = np.unique(
    [*range(1, 16), *range(16, X.shape[1] + 1, 4), shorter.n_components_, dne.n_components_]
)
maps = {"DNE": DNE(X.shape[1], n_neighbors=5), "PCA": PCA()}
accuracy = {}
for name, model in maps.items():
    Z_train, Z_test = model.fit(X_train, y_train).transform(X_train), model.transform(X_test)
    accuracy[name] = [
        KNeighborsClassifier(3).fit(Z_train[:, :m], y_train).score(Z_test[:, :m], y_test)
        for m in dimensions
    ]

# %%
# The picture
# -----------

numbers = np.arange(1, len(dne.eigenvalues_) + 1)
eigenvalues = dne.eigenvalues_ / abs(dne.eigenvalues_[0])
fig, (top, bottom) = plt.subplots(2, 1, figsize=(9, 8), sharex=True, layout="constrained")
for shown, color, label in (
    (numbers <= dne.n_components_, "#0072B2", "negative: kept"),
    (numbers > dne.n_components_, "#D55E00", "zero or positive: left out"),
):
    top.bar(numbers[shown], eigenvalues[shown], color=color, label=label)
top.axhline(0, color="black", linewidth=0.8)
top.set_yscale("symlog", linthresh=1e-3)
top.set_yticks([-1, -0.1, -0.01, 0, 0.01], ["-1", "-0.1", "-0.01", "0", "0.01"])
top.set_ylabel("eigenvalue, relative to the first")
top.set_title(
    f"DNE on digits: {dne.n_components_} of {len(numbers)} eigenvalues are negative", fontsize=13
)
top.legend(loc="lower right")

bottom.plot(dimensions, accuracy["DNE"], ".-", color="#0072B2", label="DNE")
bottom.plot(dimensions, accuracy["PCA"], ".--", color="#777777", label="PCA")
right = dict(zip(dimensions, accuracy["DNE"], strict=True))
for m, text in (
    (shorter.n_components_, "96 % of the negative sum"),
    (dne.n_components_, "all negative ones"),
):
    bottom.axvline(m, color="black", linewidth=0.8, linestyle=":")
    bottom.text(
        m - 0.6,
        0.35,
        f"{text}:\n{m} directions, {right[m]:.1%} right",
        rotation=90,
        ha="right",
        va="bottom",
    )
bottom.set(xlabel="number of directions", ylabel="accuracy of 3-NN on held-out rows")
bottom.set_title(
    f"Held-out accuracy in the space of the first directions (all 64: {right[64]:.1%})", fontsize=13
)
bottom.legend(loc="lower right")
plt.show()

# %%
# The negative eigenvalues fall by orders of magnitude: in the upper picture, the scale is
# logarithmic beyond 0.001. So the last negative directions hardly change a distance, and the
# accuracy has levelled off long before. The number of negative eigenvalues is a safe dimension
# rather than the smallest good one; a share of their sum gives fewer directions, here at about the
# same accuracy. Above ten directions, the curves of DNE and PCA are close to each other on these
# images.
#
# .. seealso::
#    :doc:`/guide/dimensions` for other ways to choose the dimension, :doc:`/theory/dne` for the objective.
