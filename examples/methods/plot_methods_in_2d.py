"""
What each method looks at, in two dimensions
============================================

Which pairs of rows does a method use, and which direction does it find? Here one class forms two
clusters, and the other lies between them, so that both have the same mean. Every method reduces the
two features to one direction, drawn as a black line. The title of each panel gives the accuracy of
3-NN along that line, on rows that no method was fitted to.

PCA and LDA use no pairs of rows. For the others, blue lines are pairs of the same class, which are
attracted, and orange lines are pairs of different classes, which are repelled.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba_array
from matplotlib.lines import Line2D
from scipy.sparse import coo_array
from scipy.special import softmax
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import KNeighborsClassifier

from nearkin import DNE, LDE, LFDA, LMNN, NCA, NMMP
from nearkin.graphs import binary, heat_kernel, kth_distance, mutual, scaled_weights, union
from nearkin.neighbors import nearest_other_class, nearest_same_class

BLUE, ORANGE = "#0072B2", "#D55E00"


def two_classes(n, seed):
    """Return rows in three long clusters, of which the middle one is a class of its own."""
    rng = np.random.default_rng(seed)
    side = rng.permutation(np.resize([-1, 0, 1, 0], n))
    X = np.column_stack([rng.uniform(-6, 6, n), 2.2 * side + 0.5 * rng.standard_normal(n)])
    turn = np.deg2rad(15)
    return X @ [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]], (side == 0).astype(
        int
    )


X, y = two_classes(100, seed=0)
X_new, y_new = two_classes(2000, seed=1)
same, other = y[:, None] == y, y[:, None] != y

# %%
# Spectral methods: two graphs
# ----------------------------
# :class:`~nearkin.DNE`, :class:`~nearkin.NMMP` and :class:`~nearkin.LDE` join each row to its nearest rows of the same
# class and to its nearest rows of the other class. DNE and LDE take a pair if either row is a
# neighbour of the other, NMMP only if both are. LDE gives near pairs larger weights.
# :class:`~nearkin.LFDA` weights all pairs of a class by their distance, and takes all pairs of
# different classes, near or not.

k = 3
G_same, G_other = nearest_same_class(X, y, k), nearest_other_class(X, y, k)
all_same = nearest_same_class(X, y, len(X)).tocoo()
scale = kth_distance(all_same.tocsr(), 7)
local = scaled_weights(all_same.data**2, scale[all_same.row] * scale[all_same.col])
graphs = {
    "PCA": (None, None),
    "LDA": (None, None),
    "DNE": (union(binary(G_same)), union(binary(G_other))),
    "NMMP": (mutual(binary(G_same)), mutual(binary(G_other))),
    "LDE": (union(heat_kernel(G_same)), union(heat_kernel(G_other))),
    "LFDA": (
        coo_array((0.15 * local, (all_same.row, all_same.col)), shape=same.shape),
        0.03 * other,
    ),
}
models = {
    "PCA": PCA(1),
    "LDA": LinearDiscriminantAnalysis(),
    "DNE": DNE(1, n_neighbors=k),
    "NMMP": NMMP(1, n_neighbors_within=k, n_neighbors_between=k),
    "LDE": LDE(1, n_neighbors_within=k, n_neighbors_between=k),
    "LFDA": LFDA(1),
    "LMNN": LMNN(n_neighbors=3),
    "NCA": NCA(1, n_init=3, random_state=0),
}
directions = {}
for name, model in models.items():
    model.fit(X, y)
    A = model.scalings_.T if name == "LDA" else model.components_
    directions[name] = np.linalg.svd(A)[2][0]  # the leading direction of the metric A'A

# %%
# Descents: pairs in the learned space
# ------------------------------------
# :class:`~nearkin.LMNN` attracts the three nearest rows of the same class and repels rows of the other class that come
# within their distance and a margin of 1, measured in the learned space. (It learns a metric of
# both dimensions here, for which its minimum is global, and the line is its leading direction.)
# :class:`~nearkin.NCA` weights all pairs by the probability that a row draws the other as its
# neighbour in the learned space.

targets = binary(nearest_same_class(X, y, 3))
d = euclidean_distances(models["LMNN"].transform(X), squared=True)
farthest_target = targets.multiply(d).max(axis=1).toarray()[:, None]
graphs["LMNN"] = (targets, 0.5 * (other & (d < farthest_target + 1)))

d = euclidean_distances(models["NCA"].transform(X), squared=True)
np.fill_diagonal(d, np.inf)
P = softmax(-d, axis=1)
graphs["NCA"] = (5 * P * same, 5 * P * other)

# %%
# The picture
# -----------


def draw_pairs(ax, W, color):
    """Draw the pairs of rows that have a weight, darker for larger weights."""
    W = coo_array(W)
    colors = np.repeat(to_rgba_array(color), W.nnz, axis=0)
    colors[:, 3] = 0.7 * np.minimum(W.data, 1)
    ax.add_collection(
        LineCollection(X[np.column_stack([W.row, W.col])], colors=colors, linewidths=1, zorder=1)
    )


fig, axes = plt.subplots(4, 2, figsize=(9, 10.5), sharex=True, sharey=True, layout="constrained")
for ax, (name, v) in zip(axes.flat, directions.items(), strict=True):
    accuracy = KNeighborsClassifier(3).fit(X @ v[:, None], y).score(X_new @ v[:, None], y_new)
    for W, color in zip(graphs[name], (BLUE, ORANGE), strict=True):
        if W is not None:
            draw_pairs(ax, W, color)
    ax.axline(X.mean(axis=0), X.mean(axis=0) + v, color="black", linewidth=2)
    for c, marker, color in ((0, "o", "white"), (1, "^", "#444444")):
        ax.scatter(
            *X[y == c].T,
            s=26,
            marker=marker,
            color=color,
            edgecolors="#444444",
            zorder=2,
            label=f"class {c}",
        )
    ax.set_title(f"{name}: {accuracy:.0%} of held-out rows right")
    ax.set(xticks=[], yticks=[], aspect="equal")
handles = ax.get_legend_handles_labels()[0]
for text, color in (
    ("same class", BLUE),
    ("different classes", ORANGE),
    ("direction found", "black"),
):
    handles.append(Line2D([], [], color=color, label=text))
fig.legend(handles=handles, loc="outside lower center", ncols=5)
fig.suptitle("Pairs that each method compares, and the direction that it finds", fontsize=14)
plt.show()

# %%
# The directions of DNE, NMMP, LDE, LMNN and NCA cross the three clusters, so that these stay apart.
# PCA finds the direction in which all rows vary most, whatever their class. LDA compares the means
# of the classes, which are the same but for chance. LFDA knows that the first class has two parts,
# but in its between-class scatter all pairs of different classes count alike, and these differ most
# along the clusters: it fails on these data. This is not a ranking of the methods: on real tables
# the order is different. Without descents from several directions (``n_init``), NCA may stop in a
# local optimum.
#
# .. seealso::
#    :doc:`/guide/which_method` for real tables, :doc:`/theory/index` for the objectives.
