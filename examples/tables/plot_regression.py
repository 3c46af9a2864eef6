"""
Numbers in place of classes
===========================

k-NN also predicts numbers: by the mean of the nearest rows. Does a learned space help, as it does
with classes? Three maps take a target of numbers: :class:`~nearkin.MLKR`, and with
``target="continuous"`` also :class:`~nearkin.NCA` and
:class:`~nearkin.DiscriminativeProjections`. Here they reduce ten columns to two, to predict the progression of diabetes
in 442 people. The first picture compares R² on held-out rows, before and after; the second shows
two of the maps.
"""

# %%
# R² of held-out rows
# -------------------
# Everything is fitted to the training rows of five folds and scored on the others.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import MLKR, NCA, DiscriminativeProjections
from nearkin.plotting import COLORS, EmbeddingDisplay

X, y = load_diabetes(return_X_y=True)
knn = KNeighborsRegressor(20)
models = {
    "k-NN, 10 columns": make_pipeline(StandardScaler(), knn),
    "PCA to 2, k-NN": make_pipeline(StandardScaler(), PCA(2), knn),
    "NCA to 2, k-NN": make_pipeline(StandardScaler(), NCA(2, target="continuous"), knn),
    "MLKR to 2, k-NN": make_pipeline(StandardScaler(), MLKR(2), knn),
    "Discriminative\nProjections to 2, k-NN": make_pipeline(
        StandardScaler(), DiscriminativeProjections(2, target="continuous"), knn
    ),
}
folds = KFold(5, shuffle=True, random_state=0)
r2 = {name: cross_val_score(model, X, y, cv=folds) for name, model in models.items()}

fig, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
for place, (name, scores) in enumerate(r2.items()):
    color = "black" if place < 2 else COLORS[0]
    ax.plot(scores, np.full(len(scores), place), "o", color=color, alpha=0.35)
    ax.plot(scores.mean(), place, "D", color=color, markersize=9)
    ax.text(
        scores.mean(),
        place - 0.2,
        f"{scores.mean():.2f}",
        ha="center",
        va="bottom",
        backgroundcolor="white",
    )
ax.axvline(r2["k-NN, 10 columns"].mean(), color="black", linestyle="--", linewidth=0.8, zorder=0)
ax.set_yticks(range(len(r2)), r2)
ax.set_ylim(len(r2) - 0.5, -0.7)
ax.set_xlabel("R² on held-out rows (dots: five folds; diamond: their mean)")
fig.suptitle("Two learned dimensions hold what ten columns tell k-NN; two of PCA do not")
plt.show()

# %%
# The folds differ more than the learned maps do, so this picture ranks none of them.
#
# Maps of held-out rows
# ---------------------
# :class:`~nearkin.plotting.EmbeddingDisplay` learns a map from two thirds of the rows and draws the others, with
# their R² in the title.
fig, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
for ax, mapping in zip(axes, (PCA(2), MLKR(2)), strict=True):
    pipeline = make_pipeline(StandardScaler(), mapping)
    EmbeddingDisplay.from_estimator(pipeline, X, y, task="regression", n_neighbors=20, ax=ax)
    ax.set_title(ax.get_title().replace(": ", ":\n"), fontsize=11)
plt.show()

# %%
# Fast progression is yellow, slow is blue. In the map of MLKR, the colours are in better order than
# in that of PCA, and its R² is higher; some people with fast progression lie among the others in
# both.
#
# .. seealso::
#
#    :doc:`/guide/which_method` says when to use which method; :doc:`/guide/tables` is on
#    :class:`~nearkin.NCARegressor`.
