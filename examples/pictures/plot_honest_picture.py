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

from nearkin import TDistributedNCA
from nearkin.plotting import EmbeddingDisplay

X, y = load_digits(return_X_y=True)
shown = np.isin(y, [3, 8, 9])
X, y = X[shown], y[shown]
labels = {"True labels": y, "Random labels": np.random.default_rng(0).permutation(y)}
train, test = train_test_split(np.arange(len(y)), train_size=150, random_state=0)

# %%
# Two maps, four pictures
# -----------------------
# :class:`~nearkin.TDistributedNCA` is fitted to 150 images of 64 pixels. It places a row at the
# mean of its nearest training rows, and each training row is its own nearest.
# :class:`~nearkin.plotting.EmbeddingDisplay` fits the map to training rows and draws held-out rows.
# The accuracy on training rows is that of 5-NN that leaves out the row itself; it is too high all
# the same, as the map was fitted to the label of that row.

model = TDistributedNCA()
colors, markers = ["#0072B2", "#D55E00", "#009E73"], ["o", "s", "^"]
accuracies = {}
fig, axes = plt.subplots(2, 2, figsize=(9, 9.4), layout="constrained")
for (above, below), (name, given) in zip(axes.T, labels.items(), strict=True):
    Z = model.fit(X[train], given[train]).transform(X[train])
    accuracy = KNeighborsClassifier(5).fit(Z, given[train]).score(None, given[train])
    for digit, color, marker in zip([3, 8, 9], colors, markers, strict=True):
        above.scatter(
            *Z[given[train] == digit].T, s=26, color=color, marker=marker, label=f"label {digit}"
        )
    above.set_title(f"{name}: training rows,\n{accuracy:.0%} right", fontsize=13)
    above.set(xlabel="dimension 1", ylabel="dimension 2", xticks=[], yticks=[])

    display = EmbeddingDisplay.from_estimator(model, X, given, split=(train, test), ax=below)
    below.set_title(f"{name}: held-out rows,\n{display.score:.0%} right", fontsize=13, pad=22)
    below.get_legend().remove()
    accuracies[name] = accuracy, display.score
fig.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()

# %%
# With true labels, the classes stand apart in both pictures. With random labels, the training rows
# form groups all the same, and most of them agree with their neighbours. The held-out rows lie
# mixed in the same groups: no place in the picture belongs to a label, and the accuracy is at
# chance, one third. So colours of training rows prove nothing; judge a map by its held-out rows.
#
# The attribute ``embedding_`` places each training row at a mean without its own position, but the
# space was learned with their labels. It does not replace rows that were held out.
#
# .. seealso::
#    :doc:`/guide/pictures` for pictures of held-out rows,
#    :doc:`/gallery/pictures/plot_digits_map` for maps by other methods.
