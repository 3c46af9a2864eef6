"""
Two moons and a handful of labels
=================================

What do rows without a label say? They show where the data are dense, and a class rarely ends in the
middle of a dense region. Here two classes form two moons, and only two rows of each have a label.

The first picture shows the classes, the others what three classifiers predict everywhere: 1-NN,
which learns from the labelled rows alone, and :class:`~nearkin.LapRLSClassifier` and
:class:`~nearkin.TDLClassifier`, which learn from all rows.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier

from nearkin import LapRLSClassifier, TDLClassifier

X, y = make_moons(300, noise=0.08, random_state=0)
X_new, y_new = make_moons(1000, noise=0.08, random_state=1)

# %%
# Hide the labels
# ---------------
# -1 marks the rows without a label. Which rows have one is drawn at random, ten times. Here
# LapRLSClassifier has a narrower kernel and a smaller ridge than by default, as the moons are bent:
# these settings were chosen on such moons.

models = {
    "1-NN": KNeighborsClassifier(1),
    "LapRLSClassifier": LapRLSClassifier(kernel=partial(rbf_kernel, gamma=5), gamma_A=1e-4),
    "TDLClassifier": TDLClassifier(),
}
draws = []
for draw in range(10):
    rng = np.random.default_rng(draw)
    draws.append(
        np.concatenate([rng.choice(np.flatnonzero(y == c), 2, replace=False) for c in (0, 1)])
    )


def fit(name, known):
    """Fit a model to all rows and the labels of some; 1-NN to these rows alone."""
    if name == "1-NN":
        return models[name].fit(X[known], y[known])
    partly_labelled = np.full(len(y), -1)
    partly_labelled[known] = y[known]
    return models[name].fit(X, partly_labelled)


scores = {name: [fit(name, known).score(X_new, y_new) for known in draws] for name in models}

# %%
# The picture
# -----------
# It shows the first draw. The titles give the accuracy on new rows, for this draw and on average
# over all.

colors, markers = ["#0072B2", "#D55E00"], ["o", "s"]
fig, axes = plt.subplots(2, 2, figsize=(9, 7), sharex=True, sharey=True, layout="constrained")
for ax, name in zip(axes.flat, ["The classes", *models], strict=True):
    if name == "The classes":
        ax.set_title("The two classes, whose labels are hidden\nbut for two rows of each")
    else:
        DecisionBoundaryDisplay.from_estimator(
            fit(name, draws[0]),
            X,
            response_method="predict",
            cmap=ListedColormap(colors),
            alpha=0.3,
            eps=0.3,
            ax=ax,
        )
        ax.set_title(
            f"{name}: {scores[name][0]:.0%} of new rows right\n(mean of ten draws: "
            f"{np.mean(scores[name]):.0%})"
        )
    for c, (color, marker) in enumerate(zip(colors, markers, strict=True)):
        seen = color if name == "The classes" else "#555555"
        ax.scatter(*X[y == c].T, s=9, color=seen, linewidths=0)
        of_class = draws[0][y[draws[0]] == c]
        ax.scatter(
            *X[of_class].T,
            s=120,
            color=color,
            marker=marker,
            edgecolors="black",
            label=f"label {c}",
            zorder=3,
        )
    ax.set(xticks=[], yticks=[], xlabel="feature 1", ylabel="feature 2", aspect="equal")
fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()

# %%
# In this draw, a labelled row of the upper moon lies close to the lower one. 1-NN assigns
# everything near it to the upper moon, including parts of the lower one. The other two follow the
# moons, but TDLClassifier also takes a part of the lower moon for the upper one: few labels can
# mislead every method, and other draws give other pictures.
#
# .. seealso::
#    :doc:`/guide/few_labels` for what to do with few labels, :doc:`/theory/tdl` for TDL,
#    :doc:`/measured/few_labels` for a comparison on 14 real data sets.
