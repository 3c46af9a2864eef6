"""
How sure is a prediction?
=========================

A label alone does not say whether to rely on it. :class:`~nearkin.NCAClassifier` also gives the
*set* of labels that a row may have, and :class:`~nearkin.NCARegressor` an *interval* for its
number. Both hold the truth for as many new rows as you ask for. And ``familiarity`` says whether a
row is at all like those from which the model was learned. Here all three are put to the test on
held-out rows.
"""

# %%
# Which digits are unsure?
# ------------------------
# The model learns from 500 images of digits, and is tested on the other 1,297.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from nearkin import NCAClassifier, NCARegressor
from nearkin.plotting import COLORS, GREY

digits = load_digits()
X, X_new, y, y_new = train_test_split(
    digits.data, digits.target, train_size=500, random_state=0, stratify=digits.target
)
model = NCAClassifier().fit(X, y)
print(f"right: {model.score(X_new, y_new):.1%} of {len(y_new)} new images")
covered = {}
for coverage in (0.9, 0.98, 0.99):
    sets = model.predict_set(X_new, coverage)
    covered[coverage] = sets[np.arange(len(y_new)), y_new].mean()
    unsure = sets.sum(axis=1) > 1
    print(
        f"coverage {coverage:.0%}: the true digit is in {covered[coverage]:.1%} of the sets, "
        f"{unsure.sum()} images have several digits"
    )

# %%
# The most probable digit is in every set, so where more rows than requested are classified
# correctly, as with 90 % here, no set needs a second label. For 99 % some do. These are the images
# of the largest sets:
largest = np.argsort(-sets.sum(axis=1), kind="stable")[:12]
fig, axes = plt.subplots(2, 6, figsize=(9, 3.9), layout="constrained")
for ax, row in zip(axes.flat, largest, strict=True):
    ax.imshow(X_new[row].reshape(8, 8), cmap="Greys")
    ax.set(xticks=[], yticks=[])
    ax.set_title(", ".join(str(label) for label in model.classes_[sets[row]]), fontsize=11)
    is_covered = sets[row, y_new[row]]
    ax.set_xlabel(f"is {y_new[row]}", color="black" if is_covered else COLORS[1])
fig.suptitle("What may it be? The images with the largest sets (coverage 99%)")
plt.show()

# %%
# Intervals for numbers
# ---------------------
# The progression of diabetes can be predicted only roughly. The intervals say how roughly; like the
# errors of held-out rows nearby, they may be asymmetric, and their widths differ.
people, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
known, new, y_known, y_true = train_test_split(people, progression, test_size=0.4, random_state=0)
regressor = NCARegressor().fit(known, y_known)
within = {}
for coverage in (0.5, 0.8, 0.9):
    low, high = regressor.predict_interval(new, coverage).T
    within[coverage] = np.mean((low <= y_true) & (y_true <= high))
    print(
        f"coverage {coverage:.0%}: {within[coverage]:.1%} of {len(new)} new people are within, "
        f"mean width {np.mean(high - low):.0f}"
    )

predicted = regressor.predict(new)
low, high = regressor.predict_interval(new, 0.8).T
order = np.argsort(predicted)
place = np.arange(len(new))
inside = ((low <= y_true) & (y_true <= high)).to_numpy()[order]
numbers = y_true.to_numpy()[order]

fig, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
ax.vlines(place, low[order], high[order], color=COLORS[0], alpha=0.25, linewidth=2.5)
ax.plot(place, predicted[order], color=COLORS[0])
ax.plot(place[inside], numbers[inside], "o", color="black", markersize=3.5)
ax.plot(place[~inside], numbers[~inside], "D", color=COLORS[1], markersize=5)
ax.margins(x=0.01)
ax.set(xlabel="new people, in the order of their predictions", ylabel="progression of diabetes")
ax.set_title(
    f"80% intervals hold {inside.mean():.0%} of the numbers; diamonds: the {np.sum(~inside)} outside"
)
plt.show()

# %%
# Is this row like the others?
# ----------------------------
# Sets and intervals hold for rows that are like the training rows. Images that are shifted to the
# right by one pixel, or turned by 90 degrees, are not. The model is nearly as sure of turned images
# as of the others, and wrong; ``familiarity`` gives them away.
images = X_new.reshape(-1, 8, 8)
moved = {
    "as in training": X_new,
    "one pixel to the right": np.roll(images, 1, axis=2).reshape(len(X_new), -1),
    "turned by 90 degrees": np.rot90(images, axes=(1, 2)).reshape(len(X_new), -1),
}
familiarity = {name: model.familiarity(rows) for name, rows in moved.items()}
unfamiliar = {name: np.mean(values <= 0.05) for name, values in familiarity.items()}
for name, rows in moved.items():
    surest = np.median(model.predict_proba(rows).max(axis=1))
    print(
        f"{name}: {model.score(rows, y_new):.0%} right, largest probability {surest:.2f} (median), "
        f"{unfamiliar[name]:.1%} unfamiliar at the level 5%, drift: {model.drift(rows).has_drifted}"
    )

# %%
# A familiarity is a p-value: of rows like the training rows, a share of about a has a familiarity
# of at most a. So the line of the images that are as in training follows the diagonal.
fig, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
for (name, values), color in zip(familiarity.items(), COLORS, strict=False):
    ax.ecdf(values, color=color, linewidth=2, label=name)
ax.axline((0, 0), slope=1, color=GREY, linestyle=":", zorder=0)
ax.set(xlim=(-0.03, 1), ylim=(0, 1.03), xlabel="familiarity", ylabel="share of images up to it")
ax.legend(loc="lower right")
ax.set_title(
    f"{unfamiliar['turned by 90 degrees']:.0%} of the turned images are unfamiliar (at most 0.05)"
)
plt.show()

# %%
# .. seealso::
#
#    :doc:`/guide/tables` says what is promised, and what is not.
