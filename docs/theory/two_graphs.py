"""Two graphs and a direction: `python docs/theory/two_graphs.py docs/images/theory/two_graphs.png`."""

import sys

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from nearkin import DNE
from nearkin.graphs import binary, union
from nearkin.neighbors import nearest_other_class, nearest_same_class

K = 2
BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#222222"  # Okabe and Ito's, for the colour-blind
MARKERS = "o^"

rng = np.random.default_rng(3)
along, across = rng.uniform(-3, 3, 28), rng.normal(0, 0.22, 28)
y = np.arange(28) % 2
turn = np.array([[np.cos(0.5), np.sin(0.5)], [-np.sin(0.5), np.cos(0.5)]])
X = np.column_stack([along, across + np.where(y == 0, -0.5, 0.5)]) @ turn

dne = DNE(1, n_neighbors=K).fit(X, y)
v = dne.components_[0]

fig, (plane, line) = plt.subplots(
    2, 1, figsize=(5.2, 6.4), height_ratios=[4, 1], layout="constrained", dpi=150
)
graphs = {
    "within-class graph: to be short": (nearest_same_class(X, y, K), BLUE, "solid"),
    "between-class graph: to be long": (nearest_other_class(X, y, K), ORANGE, "dashed"),
}
for label, (neighbors, color, style) in graphs.items():
    i, j = union(binary(neighbors)).nonzero()
    edges = np.stack([X[i], X[j]], axis=1)[i < j]
    plane.add_collection(
        LineCollection(edges, colors=color, linestyles=style, linewidths=1.4, label=label, zorder=1)
    )
for c, name in enumerate(["class 1", "class 2"]):
    rows = y == c
    how = {"marker": MARKERS[c], "s": 46, "c": ["white", INK][c], "edgecolors": INK, "zorder": 2}
    plane.scatter(*X[rows].T, label=name, **how)
    line.scatter(X[rows] @ v, np.full(rows.sum(), c), **how)
start = np.array([1.1, -2.0])
plane.annotate(
    "", start + 1.2 * v, start, arrowprops={"arrowstyle": "-|>", "lw": 2.5, "color": INK}
)
plane.text(1.15, -1.55, "direction found", fontsize=12)
plane.set(aspect="equal", xticks=[], yticks=[], ylim=(-2.2, 2.5))
plane.set_title(f"Two graphs of the {K} nearest neighbours", fontsize=14)
plane.legend(loc="upper left", fontsize=10.5, frameon=False, ncols=1, bbox_to_anchor=(0, 1))
line.set_title("The rows along that direction", fontsize=14)
line.set(yticks=[0, 1], yticklabels=["class 1", "class 2"], ylim=(-0.6, 1.6), xticks=[])
line.tick_params(labelsize=12)
for ax in (plane, line):
    ax.spines[["top", "right"]].set_visible(False)
fig.savefig(sys.argv[1])
print(
    f"smallest eigenvalue of S_w - S_b: {dne.eigenvalues_[0]:.1f}, the other: "
    f"{dne.eigenvalues_[1]:.1f}"
)
