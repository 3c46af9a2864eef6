"""
Methods of your own
===================

Two files to copy. A *spectral* method is a constructor and ``_solve``, which computes scatters and
solves an eigenproblem; :class:`~nearkin.estimators.base.SpectralEmbedding` does the rest:
validation, neighbour search, sparse rows, more features than rows. A method by *descent* is a loss
with its gradient and a ``fit`` of a few lines, on
:class:`~nearkin.estimators.descent_embedding.DescentEmbedding`. Both pass the checks of the package.
"""

# %%
# A spectral method
# -----------------
# A nonparametric discriminant analysis (after Fukunaga and Mantock 1983) is LDA with neighbours of
# other classes in place of class means. ``rows`` provides graphs and scatters; the between-class
# scatter is that of the graph of neighbours of other classes.
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin.descent import lbfgs
from nearkin.estimators.base import SpectralEmbedding
from nearkin.estimators.descent_embedding import (
    DescentEmbedding,
    UnitRows,
    check_n_components,
    directions,
)
from nearkin.estimators.validation import validate_labelled_rows
from nearkin.objectives.loss import Ridge
from nearkin.plotting import EmbeddingDisplay
from nearkin.spectral import generalized_eigh, unit_within_scatter
from nearkin.testing import check_embedding, check_gradient


class NonparametricDiscriminant(SpectralEmbedding):
    _neighbor_counts = ("n_neighbors",)  # may be "auto"

    def __init__(self, n_components=None, n_neighbors=5):
        self.n_components = n_components
        self.n_neighbors = n_neighbors

    def _solve(self, rows):
        k = self.n_neighbors_ = self._number_of_neighbors("n_neighbors")
        S_b = rows.scatter(rows.union_knn("other", k))
        return unit_within_scatter(generalized_eigh(S_b, rows.within_scatter(), self.n_components))


# %%
# :func:`nearkin.testing.check_embedding` asserts what every linear map must satisfy: the metric
# follows rotations and shifts of the rows, dense and sparse rows give the same map, copies of
# features change no distance, bad input is refused with a message. It says nothing if all is well.
# Scikit-learn's ``check_estimator`` passes, too, with
# ``expected_failed_checks=COPIES_ARE_NEIGHBORS`` of :mod:`nearkin.testing`: a row of weight 2 has
# other neighbours than two copies of it.
check_embedding(NonparametricDiscriminant(2))

# %%
# A method by descent
# -------------------
# The nearest class mean classifier of Mensink et al. (2013) learns a map in which the softmax of
# the squared distances to the class means, :math:`p(c | x_i) \propto \exp(-\|B x_i - B \mu_c\|^2)`,
# gives each row its own class. First the loss, the mean of :math:`-\log p(y_i | x_i)`, and its
# gradient:


def class_mean_loss(B, X, codes):
    members = np.eye(codes.max() + 1)[codes]
    means = (X.T @ (members / members.sum(axis=0))).T
    Z, M = X @ B.T, means @ B.T
    D = cdist(Z, M, "sqeuclidean")
    slope = (members - softmax(-D, axis=1)) / len(codes)  # of the loss, by D; rows sum to 0
    value = float(np.mean(D[members == 1] + logsumexp(-D, axis=1)))
    return value, 2 * (
        (M.T * slope.sum(axis=0)) @ means - (slope @ M).T @ X - (slope.T @ Z).T @ means
    )


# %%
# :func:`nearkin.testing.check_gradient` compares it with differences.
rng = np.random.default_rng(0)
some_rows, some_codes = rng.normal(size=(30, 4)), np.arange(30) % 3
check_gradient(lambda B: class_mean_loss(B, some_rows, some_codes), rng.normal(size=(2, 4)))

# %%
# ``fit`` validates, scales the rows by the typical distance of neighbours, and minimizes the loss
# with a penalty; ``_set_map`` sets ``components_``, ``n_iter_`` and ``loss_curve_``, and warns if
# the descent has not converged.


class ClassMeanMetric(DescentEmbedding):
    def __init__(self, n_components=None, *, alpha=0.1, max_iter=200):
        self.n_components = n_components
        self.alpha = alpha
        self.max_iter = max_iter

    def fit(self, X, y):
        X, _, codes = validate_labelled_rows(self, X, y)
        n, m = X.shape[0], check_n_components(self, X.shape[1])
        rows, ridge = UnitRows.of(X, m), Ridge(self.alpha, n)

        def penalized(B):
            value, gradient = class_mean_loss(B, rows.X, codes)
            penalty, slope = ridge(B)
            return value + penalty, gradient + slope

        start = rows.scaled_init(directions("auto", rows.X, m), self.alpha)
        found = lbfgs(penalized, start, max_iter=self.max_iter, tol=1e-6)
        return self._set_map(found, rows, X.dtype, task=None)


check_embedding(ClassMeanMetric(2))

# %%
# Beside LDA
# ----------
X, y = load_wine(return_X_y=True)
maps = {
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "nonparametric discriminant": NonparametricDiscriminant(2),
    "class means": ClassMeanMetric(2),
}
fig, axes = plt.subplots(1, 3, figsize=(11, 4.4), layout="constrained")
for ax, (name, mapping) in zip(axes, maps.items(), strict=True):
    EmbeddingDisplay.from_estimator(
        make_pipeline(StandardScaler(), mapping), X, y, name=name, ax=ax
    )
    ax.set_title(ax.get_title().replace(": ", ":\n"))
    ax.legend(title="cultivar")
plt.show()

# %%
# All maps separate the three cultivars on held-out wines. One table does not show what a new method
# is worth: ``compare(X, y, methods=[Method("own", NonparametricDiscriminant())])`` of
# :mod:`nearkin.comparison` compares it with the raw features.
#
# .. seealso::
#
#    :doc:`/contribute/a_method` says how a method gets into the package; :doc:`/theory/index` has the
#    scatters and criteria.
