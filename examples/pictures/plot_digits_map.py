"""
Handwritten digits in two dimensions
====================================

Which map of digits shows their ten classes best? Here four methods make two-dimensional pictures:
PCA without labels, linear discriminant analysis and :class:`~nearkin.NCA`, which are linear maps
learned from labels, and :class:`~nearkin.TDistributedNCA`, which learns a space of more dimensions
first and then places each image among its neighbours there.

Every picture shows held-out images, each as its digit. The title gives the accuracy of 5-NN in the
picture: the share of these images whose nearest training images vote for the right digit.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from nearkin import NCA, TDistributedNCA

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, train_size=800, stratify=y, random_state=0
)

maps = {
    "PCA": PCA(2),
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "NCA": NCA(2),
    "t-distributed NCA": TDistributedNCA(),
}

# %%
# The picture
# -----------

fig, axes = plt.subplots(2, 2, figsize=(9, 9.2), layout="constrained")
accuracies = {}
for ax, (name, model) in zip(axes.flat, maps.items(), strict=True):
    Z_train, Z_test = model.fit(X_train, y_train).transform(X_train), model.transform(X_test)
    accuracies[name] = KNeighborsClassifier(5).fit(Z_train, y_train).score(Z_test, y_test)
    for digit in range(10):
        Z = Z_test[y_test == digit]
        ax.scatter(*Z.T, s=34, marker=f"${digit}$", color=plt.cm.tab10(digit), linewidths=0.3)
        ax.annotate(
            digit,
            np.median(Z, axis=0),
            (9, 9),
            textcoords="offset points",
            fontsize=17,
            weight="bold",
            ha="center",
            va="center",
            bbox={"fc": ax.get_facecolor(), "pad": 1.5},
        )
    ax.set_title(f"{name}: {accuracies[name]:.1%} of held-out rows right", fontsize=11)
    ax.set(xticks=[], yticks=[], xlabel="dimension 1", ylabel="dimension 2")
    ax.margins(0.08)
plt.show()

# %%
# In PCA's picture the digits overlap; in those of LDA and NCA they overlap less. A linear map to
# two dimensions can do no more with ten classes. t-distributed NCA draws islands of one digit each,
# and the few images between islands are those whose neighbours disagree. How good can a picture be?
# As good as the space that it is made from. 5-NN there, and on the 64 pixels:

space = maps["t-distributed NCA"].space
learned = KNeighborsClassifier(5).fit(space(X_train), y_train).score(space(X_test), y_test)
pixels = KNeighborsClassifier(5).fit(X_train, y_train).score(X_test, y_test)
print(f"5-NN in the learned space: {learned:.1%} of held-out rows right")
print(f"5-NN on the pixels: {pixels:.1%} of held-out rows right")

# %%
# An island says which digit the neighbours of an image are. How far it is from other islands, and
# from which, says little. The axes of a linear map, on the other hand, are sums of pixels, and a
# distance along them means the same everywhere.
#
# .. seealso::
#    :doc:`/guide/pictures` for pictures of your own table and for what islands mean,
#    :doc:`/theory/t_nca` for the method,
#    :doc:`/gallery/pictures/plot_honest_picture` for why the rows are held out.
