"""
Rows before and after NCA
=========================

What does :class:`~nearkin.NCA` change about the neighbours of a row? In its model a row draws
another row as its neighbour, a nearer one with a higher probability, and takes over its label. NCA
learns the map under which this label is right most often.

The two maps show images of the digits 3, 5, 8 and 9, by PCA and by NCA. In both, lines join one
held-out image with the training images that it may draw as its neighbour.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import euclidean_distances
from sklearn.model_selection import train_test_split

from nearkin import NCA, SoftNeighborsClassifier

X, y = load_digits(return_X_y=True)
shown = np.isin(y, [3, 5, 8, 9])
X_train, X_test, y_train, y_test = train_test_split(
    X[shown], y[shown], test_size=0.5, stratify=y[shown], random_state=0
)

# %%
# Two maps
# --------
# NCA's map has a scale: its probabilities hold for a bandwidth of 1. PCA's has none, and "auto"
# takes the bandwidth with which a row has about ten neighbours.

maps = {"PCA": PCA(2), "NCA": NCA(2)}
votes = {"PCA": SoftNeighborsClassifier(bandwidth="auto"), "NCA": SoftNeighborsClassifier()}
Z_train, Z_test, p_own = {}, {}, {}
for name, vote in votes.items():
    Z_train[name] = maps[name].fit(X_train, y_train).transform(X_train)
    Z_test[name] = maps[name].transform(X_test)
    probabilities = vote.fit(Z_train[name], y_train).predict_proba(Z_test[name])
    p_own[name] = probabilities[y_test[:, None] == vote.classes_]
    print(
        f"{name}: a held-out row has {vote.local_k(Z_test[name]).mean():.0f} neighbours on average"
    )

# %%
# One row
# -------
# We look at the held-out image that gains most: its label has a low probability before, and a high
# one after.

row = np.argmax(p_own["NCA"] - p_own["PCA"])
image = y_test[row]
print(
    f"a {image}: probability of its label {p_own['PCA'][row]:.2f} before, "
    f"{p_own['NCA'][row]:.2f} after"
)

# %%
# The picture
# -----------

fig, axes = plt.subplots(1, 2, figsize=(9, 5.4), layout="constrained")
styles = {3: ("#0072B2", "o"), 5: ("#D55E00", "s"), 8: ("#009E73", "^"), 9: ("#CC79A7", "D")}
for ax, (name, vote) in zip(axes, votes.items(), strict=True):
    Z, z = Z_train[name], Z_test[name][row]
    p = softmax(-euclidean_distances([z], Z, squared=True)[0] / vote.bandwidth_**2)
    for digit, (color, marker) in styles.items():
        of_class = y_train == digit
        ax.scatter(
            *Z[of_class].T,
            s=26,
            marker=marker,
            color=color,
            alpha=0.7,
            linewidths=0,
            label=f"digit {digit}",
        )
        for j in np.flatnonzero(of_class & (p > 1e-3)):
            ax.plot(
                *zip(z, Z[j], strict=True), color=color, alpha=np.sqrt(p[j] / p.max()), zorder=0
            )
    ax.scatter(*z, s=90, marker="*", color="black", label=f"a held-out {image}", zorder=3)
    ax.set_title(
        f"{name}: the star's label has probability {p_own[name][row]:.2f}\n"
        f"{vote.score(Z_test[name], y_test):.0%} of all held-out rows right",
        fontsize=13,
    )
    ax.set(xticks=[], yticks=[], xlabel="dimension 1", ylabel="dimension 2")
    ax.set_aspect("equal", "datalim")
fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=5)
plt.show()

# %%
# Before, the image lies among other digits, and the few nearest images vote. After, it lies among
# images of its own digit, and many of them vote: NCA also learns the number of neighbours. This row
# was chosen for its large gain; the second line of each title is for all held-out rows, some of
# which NCA's map also gets wrong.
#
# .. seealso::
#    :doc:`/theory/nca` for the objective, :doc:`/guide/python` for probabilities of new rows.
