"""
How many components?
====================

A map to fewer dimensions makes k-NN quicker, and may make it more accurate, until too few are left.
How many components are enough? Cross-validation inside the training rows answers, separately for
each method. The picture shows its curves for PCA, :class:`~nearkin.NMMP` and :class:`~nearkin.NCA`
on handwritten digits of 64 pixels, and what the chosen numbers of components give on held-out rows.
"""

# %%
# The curves
# ----------
# Each accuracy is a mean over five folds of the training rows. The smallest number of components
# whose mean is within one standard error of the best one is taken, by the rule of Breiman et al.
# (1984): the curves are flat there, and which point is best is a matter of luck.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from nearkin import NCA, NMMP
from nearkin.plotting import COLORS, MARKERS

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, train_size=300, stratify=y, random_state=0
)
components = np.array([3, 6, 12, 24])

enough = []
fig, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
for estimator, color, marker in zip((NCA, NMMP, PCA), COLORS, MARKERS, strict=False):
    models = [make_pipeline(estimator(m), KNeighborsClassifier(3)) for m in components]
    scores = np.array([cross_val_score(model, X_train, y_train, cv=5) for model in models])
    mean, error = scores.mean(axis=1), scores.std(axis=1, ddof=1) / np.sqrt(5)
    chosen = np.argmax(mean >= mean.max() - error[mean.argmax()])
    held_out = models[chosen].fit(X_train, y_train).score(X_test, y_test)
    enough.append(f"{components[chosen]} of {estimator.__name__}")
    label = (
        f"{estimator.__name__}: {components[chosen]} components, {held_out:.1%} of held-out "
        "rows right"
    )
    ax.errorbar(
        components,
        mean,
        yerr=error,
        color=color,
        marker=marker,
        markersize=5,
        capsize=3,
        label=label,
    )
    ax.plot(
        components[chosen],
        mean[chosen],
        marker,
        color=color,
        markersize=13,
        markerfacecolor="none",
        markeredgewidth=2,
    )
raw = KNeighborsClassifier(3).fit(X_train, y_train).score(X_test, y_test)
ax.plot([], [], " ", label=f"all 64 pixels: {raw:.1%} of held-out rows right")
ax.set(
    xscale="log",
    xlabel="number of components",
    ylabel="accuracy of 3-NN in cross-validation (± std. error)",
)
ax.set_xticks(components, components)
ax.minorticks_off()
ax.legend(loc="lower right", title="large marker: chosen on the training rows")
ax.set_title(f"Enough components, by cross-validation: {', '.join(enough)}")
plt.show()

# %%
# With few components, NCA is ahead; by this rule, the same number is enough for all three. The
# accuracy of the chosen numbers on held-out rows is fair: these rows had no part in the choice. The
# best point of a curve is not, since it was picked on the rows on which it is scored.
#
# :func:`nearkin.comparison.compare` makes such a choice inside the training rows of every fold, and
# :func:`nearkin.comparison.score_by_dimension` returns its curves. :class:`~nearkin.DNE` needs none: the number of
# negative eigenvalues sets the dimension.
#
# .. seealso::
#
#    :doc:`/guide/dimensions`, :doc:`/gallery/methods/plot_dne_spectrum`
