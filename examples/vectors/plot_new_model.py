"""
A new model for an old index
============================

A better embedding model comes out, and the index holds millions of vectors of the old one. Queries
of the new model mean nothing there: its dimensions are different. :class:`~nearkin.Migration`,
with an infinite penalty, rotates them into the space of the old model, and learns the rotation from a sample that both models
have embedded. How large must this sample be? The picture shows which neighbours of the old model
the rotated queries find.
"""

# %%
# Two models
# ----------
# scikit-learn ships no embedding models. Two kernel approximations of handwritten digits stand in
# for them here: with different kernel widths and landmark images, 64 dimensions for the old model
# and 96 for the new one.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from nearkin import Migration

X, y = load_digits(return_X_y=True)
X_index, X_queries, y_index, y_queries = train_test_split(
    X / 16, y, test_size=400, stratify=y, random_state=0
)
old_model = Nystroem(gamma=0.05, n_components=64, random_state=0).fit(X_index)
new_model = Nystroem(gamma=0.08, n_components=96, random_state=1).fit(X_index)
index, new_index = old_model.transform(X_index), new_model.transform(X_index)
old_queries, new_queries = old_model.transform(X_queries), new_model.transform(X_queries)


def ten_nearest(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the ten items of largest cosine for every query."""
    return np.argsort(-normalize(queries) @ normalize(vectors).T, axis=1)[:, :10]


def recall(found):
    """Return the share of the ten neighbours by the old model that are among those found."""
    return (found[:, :, None] == ten_nearest(old_queries, index)[:, None, :]).any(axis=1).mean()


# %%
# Queries in the old space
# ------------------------
# The sample consists of the first rows of the index. Without a map, the first 64 dimensions of the
# new model are used as if they were those of the old one.
sizes = (10, 20, 30, 50, 100, 200, 500, 1000)
rotated = [
    ten_nearest(
        Migration(reverse=0, alpha=np.inf).fit(new_index[:n], index[:n]).transform(new_queries),
        index,
    )
    for n in sizes
]
unmapped = ten_nearest(new_queries[:, :64], index)
again = ten_nearest(new_queries, new_index)

# %%
# The picture
# -----------
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 4.4), layout="constrained")
scores = {
    left: recall,
    right: lambda found: (y_index[found] == y_queries[:, None]).mean(),
}
for ax, score in scores.items():
    ax.plot(
        sizes,
        [score(found) for found in rotated],
        "o-",
        color="#0072B2",
        label="rotated",
    )
    ax.axhline(score(again), color="#009E73", linestyle="--", label="whole index made again")
    ax.axhline(score(unmapped), color="#D55E00", linestyle=":", label="as they are")
    ax.set(xscale="log", xlabel="rows that both models have embedded", ylim=(-0.02, 1.02))
left.set(ylabel="share of the old model's neighbours found")
left.set_title(
    f"Neighbours kept: {scores[left](unmapped):.0%} as they "
    f"are,\n{scores[left](rotated[4]):.0%} after 100 rows"
)
right.set(ylabel="precision at 10 of held-out queries")
right.set_title(
    f"Same digit: {scores[right](rotated[4]):.1%} after 100 "
    f"rows,\n{scores[right](again):.1%} with a new index"
)
right.legend(loc="center right")
plt.show()

# %%
# A rotation has few free numbers, so about a hundred rows are enough here. The two models do not
# agree on every neighbour, so even a new index does not return all the old ones; the rotated
# queries return more of them. Measure whether what the new model does better survives the rotation:
# the old space cannot express what only the new model distinguishes.
#
# .. seealso::
#
#    :doc:`/guide/embeddings`, :doc:`/guide/vector_databases`
