"""
Learning from pairs
===================

Labels are not always at hand. Sometimes all that is known of two rows is whether they are alike:
two photographs of one person, two names of one product. :class:`~nearkin.GMML` and
:class:`~nearkin.PairNCA` learn a metric from such pairs.

The pictures show distances between pairs of held-out rows, before and after. A good metric
separates the pairs that are alike from the others, and the area under the ROC curve (AUC) measures
how well: 1 is perfect, 0.5 is chance.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from nearkin import GMML, PairNCA

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
scaler = StandardScaler().fit(X_train)

# %%
# Pairs of wines
# --------------
# Two wines are alike (1) if they are of the same cultivar, and unlike (-1) otherwise. The methods
# see the pairs, and not the cultivars. Training pairs are pairs of training rows, held-out pairs
# are pairs of the other rows.


def random_pairs(X, y, n_pairs):
    """Return pairs of different rows, shape (n_pairs, 2, p), and whether they are alike."""
    rng = np.random.default_rng(0)
    i = np.array([rng.choice(len(X), 2, replace=False) for _ in range(n_pairs)])
    return X[i], np.where(y[i[:, 0]] == y[i[:, 1]], 1, -1)


pairs, alike = random_pairs(scaler.transform(X_train), y_train, 200)
new_pairs, new_alike = random_pairs(scaler.transform(X_test), y_test, 2000)
print(f"{sum(alike == 1)} training pairs are alike, {sum(alike == -1)} are not")

# %%
# Learn from them
# ---------------
# ``fit_pairs`` takes the pairs; ``pair_distance`` returns learned distances. ``GMML`` has a closed
# form and uses pairs of both kinds. ``PairNCA`` is fitted by descent, and makes the pairs that are
# alike likely among all pairs of rows.

distances = {
    "Standardized features": np.linalg.norm(new_pairs[:, 0] - new_pairs[:, 1], axis=1),
    "GMML": GMML().fit_pairs(pairs, alike).pair_distance(new_pairs),
    "PairNCA": PairNCA().fit_pairs(pairs, alike).pair_distance(new_pairs),
}

# %%
# The picture
# -----------

fig, axes = plt.subplots(3, 1, figsize=(9, 8.5), layout="constrained")
for ax, (name, d) in zip(axes, distances.items(), strict=True):
    bins = np.linspace(0, np.quantile(d, 0.995), 32)
    ax.hist(d[new_alike == 1], bins, density=True, color="#0072B2", alpha=0.6, label="alike")
    unlike = {"histtype": "step", "linewidth": 2, "color": "#D55E00"}
    ax.hist(d[new_alike == -1], bins, density=True, label="not alike", **unlike)
    ax.set_title(f"{name}: AUC {roc_auc_score(new_alike, -d):.3f} on held-out pairs", fontsize=13)
    ax.set(ylabel="density of pairs", yticks=[], xlim=(0, bins[-1]))
axes[-1].set_xlabel("distance of the two rows of a held-out pair")
axes[0].legend()
plt.show()

# %%
# After learning, pairs that are alike and pairs that are not overlap less. The scale of a learned
# distance means nothing by itself; only the order of the pairs counts for the AUC. Some pairs stay
# on the wrong side in every space.
#
# .. seealso::
#    :doc:`/guide/python` for pairs in place of labels, :doc:`/theory/others` for the objective of GMML.
