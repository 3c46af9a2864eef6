"""
Label the rest: digits with a few known labels
==============================================

How many labels are needed before the others can be filled in? Of 500 handwritten digits, one to
four labels of each digit are known here. Four ways to label the other images are compared: 1-NN on
the labelled images, scikit-learn's ``LabelSpreading``, :class:`~nearkin.LapRLSClassifier` and
:class:`~nearkin.TDLClassifier`. The last three learn from all images.

The accuracy is measured on the images whose labels were hidden. It depends on which images have a
label, so the picture shows several random draws.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from nearkin import LapRLSClassifier, TDLClassifier

X, y = load_digits(return_X_y=True)
X, y = X[:500] / 16, y[:500]

methods = {
    "1-NN": KNeighborsClassifier(1),
    "LapRLSClassifier": LapRLSClassifier(),
    "LabelSpreading": LabelSpreading(kernel="knn", max_iter=1000),
    "TDLClassifier": TDLClassifier(),
}

# %%
# Hide labels, and fill them in
# -----------------------------
# All methods see the same draws. -1 marks a hidden label; ``transduction_`` holds the labels that a
# method fills in. 1-NN knows no such marker: it is fitted to the labelled rows and predicts the
# others.

counts, n_draws = [1, 2, 3, 4], 5
accuracy = {name: np.empty((len(counts), n_draws)) for name in methods}
for i, n_known in enumerate(counts):
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        known = np.concatenate(
            [rng.choice(np.flatnonzero(y == c), n_known, replace=False) for c in range(10)]
        )
        partial = np.full(len(y), -1)
        partial[known] = y[known]
        hidden = partial == -1
        for name, method in methods.items():
            if name == "1-NN":
                filled_in = method.fit(X[known], y[known]).predict(X[hidden])
            else:
                filled_in = method.fit(X, partial).transduction_[hidden]
            accuracy[name][i, draw] = np.mean(filled_in == y[hidden])

print("mean accuracy with", ", ".join(map(str, counts)), "labels of each digit")
for name, a in accuracy.items():
    print(f"{name:16s}", a.mean(axis=1).round(3))
gain = accuracy["TDLClassifier"] - accuracy["LabelSpreading"]
print(
    "draws in which TDLClassifier is ahead of LabelSpreading:",
    (gain > 0).sum(axis=1),
    f"of {n_draws}",
)

# %%
# The picture
# -----------

styles = {
    "TDLClassifier": ("#0072B2", "o"),
    "LabelSpreading": ("#E69F00", "s"),
    "LapRLSClassifier": ("#009E73", "^"),
    "1-NN": ("#555555", "D"),
}
fig, ax = plt.subplots(figsize=(9, 6), layout="constrained")
for shift, (name, (color, marker)) in zip([-0.15, -0.05, 0.05, 0.15], styles.items(), strict=True):
    a, position = accuracy[name], np.array(counts) + shift
    ax.scatter(
        np.repeat(position, n_draws),
        a.ravel(),
        s=16,
        color=color,
        marker=marker,
        alpha=0.35,
        linewidths=0,
    )
    ax.plot(
        position, a.mean(axis=1), color=color, marker=marker, markersize=9, linewidth=2, label=name
    )
ax.set(
    xticks=counts,
    xlabel="known labels of each digit",
    ylabel="accuracy on the rows without a label",
)
ax.set_title(
    "One label of each digit: TDLClassifier labels "
    f"{accuracy['TDLClassifier'][0].mean():.0%} of the rest right, "
    f"1-NN {accuracy['1-NN'][0].mean():.0%}\n(means of {n_draws} draws; small markers: "
    "single draws)",
    fontsize=13,
)
ax.legend(loc="lower right")
plt.show()

# %%
# With one label of each digit, the draws differ widely, and the methods that use the other images
# gain most. With more labels, the methods come closer to each other. This is one data set with a
# few draws, which overlap: the studies of many data sets say what holds in general, and there the
# lead of TDLClassifier over LabelSpreading is smaller. From three labels of each class on,
# TDLClassifier also chooses between the graph and the features alone.
#
# .. seealso::
#    :doc:`/guide/few_labels` for the way to do this with a table, :doc:`/measured/few_labels` for the study.
