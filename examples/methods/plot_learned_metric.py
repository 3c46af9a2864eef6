r"""
Reading a learned metric, and clustering with it
================================================

What has a learned metric found out? A linear map :math:`A` measures distances with the matrix
:math:`M = A^\top A`. A diagonal :math:`M` can be read like a list: each feature has a weight, and
features of weight 0 do not count. The first picture shows these weights for wines.

A learned metric also serves methods that know nothing of labels. The second picture compares
clusters of digits, in the space of the pixels and in a learned one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from nearkin import NCA
from nearkin.graphs import binary, union
from nearkin.neighbors import nearest

# %%
# Which features count?
# ---------------------
# :class:`~nearkin.NCA` with ``structure="diagonal"`` weights the features and does not mix them. The features are
# standardized first, so that weights are per standard deviation. Each of five folds gives its own
# weights, and the accuracy of 3-NN on its held-out wines.

wine = load_wine()
X, y = wine.data, wine.target
weights, learned, raw = [], [], []
for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
    scaler = StandardScaler().fit(X[train])
    X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
    nca = NCA(structure="diagonal").fit(X_train, y[train])
    weights.append(np.diag(nca.get_mahalanobis_matrix()))
    vote = KNeighborsClassifier(3)
    raw.append(vote.fit(X_train, y[train]).score(X_test, y[test]))
    learned.append(vote.fit(nca.transform(X_train), y[train]).score(nca.transform(X_test), y[test]))

# %%
# The dots are the folds and the bars their means.

W = np.array(weights)
order = W.mean(axis=0).argsort()
fig, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
position = np.arange(len(order))
ax.barh(position, W.mean(axis=0)[order], color="#56B4E9", label="mean of five folds")
ax.scatter(W[:, order], np.tile(position, (5, 1)), color="black", s=18, zorder=2, label="each fold")
ax.set_yticks(position, [wine.feature_names[j].replace("_", " ") for j in order])
ax.set_xlabel("weight of the feature in the learned metric")
ax.set_title(
    "Wine: weights of 13 features by diagonal NCA\n3-NN on held-out rows: "
    f"{np.mean(learned):.1%} with these weights, "
    f"{np.mean(raw):.1%} with equal ones",
    fontsize=13,
)
ax.legend(loc="lower right")
plt.show()

# %%
# A weight near 0 does not say that a feature is unrelated to the class: of features that say the
# same, one may stand for all. Where the dots of a feature lie far apart, the rows do not determine
# its weight.
#
# Clusters in a learned space
# ---------------------------
# NCA is fitted to 30 % of the digits, with their labels. Then all digits are clustered without
# labels: by k-means in the learned space, and by spectral clustering of the graph of ten nearest
# neighbours there. The adjusted Rand index compares the clusters with the digits (0 is chance, 1 is
# perfect). It is computed on the rows whose labels were **not** used: on the others it would
# measure how well NCA was fitted.

X, y = load_digits(return_X_y=True)
X, y = X[:1000] / 16, y[:1000]
labelled = np.random.default_rng(0).random(len(y)) < 0.3
spaces = {"pixels": X, "learned space": NCA(9).fit(X[labelled], y[labelled]).transform(X)}
figures = {}
for name, Z in spaces.items():
    graph = union(binary(nearest(Z, 10)))
    spectral = SpectralClustering(
        10, affinity="precomputed", assign_labels="cluster_qr", random_state=0
    )
    clusters = {
        "k-means": KMeans(10, n_init=3, random_state=0).fit_predict(Z),
        "spectral clustering": spectral.fit_predict(graph),
    }
    figures[name] = {
        method: adjusted_rand_score(y[~labelled], c[~labelled]) for method, c in clusters.items()
    }
    print(name, {method: round(figure, 3) for method, figure in figures[name].items()})

# %%

fig, ax = plt.subplots(figsize=(9, 3.2), layout="constrained")
for height, method in enumerate(("spectral clustering", "k-means")):
    before, after = (figures[name][method] for name in spaces)
    ax.annotate(
        "", (after, height), (before, height), arrowprops={"arrowstyle": "->", "linewidth": 2}
    )
    for value, color, marker in ((before, "#D55E00", "s"), (after, "#0072B2", "o")):
        ax.plot(value, height, marker, color=color, markersize=11)
        ax.annotate(
            f"{value:.2f}",
            (value, height),
            (0, 12),
            textcoords="offset points",
            ha="center",
            color=color,
        )
ax.set_yticks([0, 1], ["spectral\nclustering", "k-means"])
ax.set(
    ylim=(-0.6, 1.7),
    xlim=(0.5, 1),
    xlabel="adjusted Rand index with the digits, on the rows without a label",
)
ax.set_title(
    "Clusters agree better with the digits in the learned space (circles)\nthan in that of "
    "the pixels (squares)"
)
plt.show()

# %%
# .. seealso::
#    :doc:`/guide/python` for the metric as a matrix and as a function, :doc:`/theory/nca` for NCA.
