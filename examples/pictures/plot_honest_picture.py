"""
What a picture of training rows hides
=====================================

Can a two-dimensional picture of labelled data be trusted? A map that was fitted to the labels may
separate the rows it was fitted to even where there is nothing to find. Held-out rows show it.

On the left are handwritten digits with their true labels. On the right the same images have labels
that were dealt at random, so that no map can predict them. The upper pictures show the rows to
which a map was fitted, the lower ones show held-out rows in the same map.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from nearkin import LFDA
from nearkin.plotting import EmbeddingDisplay

X, y = load_digits(return_X_y=True)
shown = np.isin(y, [3, 8, 9])
X, y = X[shown], y[shown]
labels = {"True labels": y, "Random labels": np.random.default_rng(0).permutation(y)}
train, test = train_test_split(np.arange(len(y)), train_size=75, random_state=0)

# %%
# Two maps, four pictures
# -----------------------
# :class:`~nearkin.LFDA` is fitted to 75 images of 64 pixels, as published, without shrinkage. With so many features for
# so few rows a map is free to fit chance. :class:`~nearkin.plotting.EmbeddingDisplay` fits the map
# to training rows and draws held-out rows. The accuracy on training rows is that of 3-NN which
# leaves out the row itself; it is too high all the same, as the map was fitted to the label of that
# row.

lfda = LFDA(2, shrinkage=None)
colors, markers = ["#0072B2", "#D55E00", "#009E73"], ["o", "s", "^"]
fig, axes = plt.subplots(2, 2, figsize=(9, 9), layout="constrained")
for (above, below), (name, given) in zip(axes.T, labels.items(), strict=True):
    Z = lfda.fit(X[train], given[train]).transform(X[train])
    accuracy = KNeighborsClassifier(3).fit(Z, given[train]).score(None, given[train])
    for digit, color, marker in zip([3, 8, 9], colors, markers, strict=True):
        above.scatter(
            *Z[given[train] == digit].T, s=26, color=color, marker=marker, label=f"label {digit}"
        )
    above.set_title(f"{name}: training rows,\n{accuracy:.0%} right", fontsize=13)
    above.set(xlabel="dimension 1", ylabel="dimension 2", xticks=[], yticks=[])

    display = EmbeddingDisplay.from_estimator(lfda, X, given, split=(train, test), ax=below)
    below.set_title(f"{name}: held-out rows,\n{display.score:.0%} right", fontsize=13)
    below.get_legend().remove()
fig.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %% In both upper pictures the classes stand apart, with true labels and, almost as well, with
# random ones. The lower pictures differ. With true labels most held-out rows lie where their class
# does, though less clearly than above. With random labels the accuracy is at chance, one third. So
# judge a map by its held-out rows. LFDA shrinks its within-class scatter by default, which was
# turned off here.
#
# .. seealso::
#    :doc:`/guide/pictures` for pictures of held-out rows,
#    :doc:`/gallery/pictures/plot_digits_map` for maps by other methods.
