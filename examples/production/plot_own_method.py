"""
A method of your own in ten lines
=================================

How much code is a new spectral method? A class with a constructor and ``_solve``, which computes
scatters and solves an eigenproblem; :class:`~nearkin.estimators.base.SpectralEmbedding` does the
rest: validation, neighbour search, sparse rows, more features than rows. The example here is a
nonparametric discriminant analysis (after Fukunaga and Mantock 1983): LDA with neighbours of other
classes in place of class means. LDA finds at most one direction fewer than there are classes; the
new method can find more. The picture shows both on wines.
"""

# %%
# The method
# ----------
# ``rows`` provides graphs and scatters. The between-class scatter is that of the graph of
# neighbours of other classes.
import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin.estimators.base import SpectralEmbedding
from nearkin.plotting import EmbeddingDisplay
from nearkin.spectral import generalized_eigh, unit_within_scatter
from nearkin.testing import check_embedding


class NonparametricDiscriminant(SpectralEmbedding):
    def __init__(self, n_components=None, n_neighbors=5):
        self.n_components = n_components
        self.n_neighbors = n_neighbors

    def _solve(self, rows):
        S_b = rows.scatter(rows.union_knn("other", self.n_neighbors))
        return unit_within_scatter(generalized_eigh(S_b, rows.within_scatter(), self.n_components))


# %%
# Is it right?
# ------------
# :func:`nearkin.testing.check_embedding` asserts what every linear map must satisfy: the metric follows rotations and
# shifts of the rows, dense and sparse rows give the same map, copies of features change no
# distance, bad input is refused with a message. It says nothing if all is well.
check_embedding(NonparametricDiscriminant(2))

# %%
# Beside LDA
# ----------
X, y = load_wine(return_X_y=True)
maps = {
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "nonparametric discriminant": NonparametricDiscriminant(2),
}
fig, axes = plt.subplots(1, 2, figsize=(8, 4.4), layout="constrained")
for ax, (name, mapping) in zip(axes, maps.items(), strict=True):
    EmbeddingDisplay.from_estimator(
        make_pipeline(StandardScaler(), mapping), X, y, name=name, ax=ax
    )
    ax.set_title(ax.get_title().replace(": ", ":\n"))
    ax.legend(title="cultivar")
plt.show()

# %%
# Both maps separate the three cultivars on held-out wines. One table does not show what the new
# method is worth: ``compare(X, y, methods=[Method("own", NonparametricDiscriminant())])`` of
# :mod:`nearkin.comparison` compares it with the raw features.
#
# .. seealso::
#
#    :doc:`/contribute/a_method` says how a method gets into the package; :doc:`/theory/index` has the scatters and
#    criteria.
