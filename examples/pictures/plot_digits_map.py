"""
Handwritten digits in two dimensions
====================================

Which map of digits shows their ten classes best? Here four methods make pictures of two dimensions:
PCA without labels, linear discriminant analysis, :class:`~nearkin.NCA`, and NCA after the
coordinates of a kernel, which is no longer linear.

Every picture shows held-out images, each as its digit. The title has the accuracy of 3-NN in the
picture: the share of these images whose nearest training images vote for the right digit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from nearkin import NCA

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, train_size=800, stratify=y, random_state=0
)

maps = {
    "PCA": PCA(2),
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "NCA": NCA(2),
    "Nystroem + NCA": make_pipeline(Nystroem(gamma=0.1, n_components=100, random_state=0), NCA(2)),
}

# %%
# The picture
# -----------

fig, axes = plt.subplots(2, 2, figsize=(9, 9.2), layout="constrained")
for ax, (name, model) in zip(axes.flat, maps.items(), strict=True):
    Z_train, Z_test = model.fit(X_train, y_train).transform(X_train), model.transform(X_test)
    accuracy = KNeighborsClassifier(3).fit(Z_train, y_train).score(Z_test, y_test)
    for digit in range(10):
        Z = Z_test[y_test == digit]
        ax.scatter(*Z.T, s=34, marker=f"${digit}$", color=plt.cm.tab10(digit), linewidths=0.3)
        place = np.median(Z, axis=0)
        ax.text(
            *place,
            digit,
            fontsize=19,
            weight="bold",
            ha="center",
            va="center",
            bbox={"fc": "white", "pad": 1.5},
        )
    ax.set_title(f"{name}: {accuracy:.0%} of held-out rows right", fontsize=13)
    ax.set(xticks=[], yticks=[], xlabel="dimension 1", ylabel="dimension 2")
plt.show()

# %% In PCA's picture the digits overlap, in the others they overlap less. No picture is as good as
# the space that it is made of: 3-NN on the 64 pixels has the accuracy below. Two dimensions are for
# looking at, and more for predicting.

pixels = KNeighborsClassifier(3).fit(X_train, y_train).score(X_test, y_test)
print(f"3-NN on the pixels: {pixels:.0%} of held-out rows right")

# %%
# .. seealso::
#    :doc:`/guide/pictures` for pictures of your own table, :doc:`/guide/kernels` for kernels,
#    :doc:`/gallery/pictures/plot_honest_picture` for why the rows are held out.
