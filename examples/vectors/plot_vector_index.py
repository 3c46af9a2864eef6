"""
A vector index that adapts what goes in
=======================================

How does an adapter get into a vector index? It is a matrix and a bias, so faiss can apply it to
whatever is added and to every query: the program around the index keeps using raw vectors. This
example builds such indexes, checks that they return the neighbours that nearkin returns, and shows
how large they are and how many of the exact neighbours inverted lists find.
"""

# %%
# The vectors
# -----------
# Images of handwritten digits, 64 pixels each. The adapter learns from the labels of the index; the
# queries are other images.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nearkin import EmbeddingAdapter
from nearkin.neighbors.inverted_lists import import_faiss

X, y = load_digits(return_X_y=True)
vectors, queries, labels, query_labels = train_test_split(
    X.astype(np.float32), y, test_size=400, stratify=y, random_state=0
)
adapter = EmbeddingAdapter(16).fit(vectors, labels)

# %%
# The adapter inside the index
# ----------------------------
# Each step is put in front of the earlier ones: a vector is scaled to unit length, mapped, and
# scaled again. Inner products are then cosines. :doc:`/guide/vector_databases` makes such an index
# of a saved adapter. ``import_faiss`` imports faiss without taking threads away from scikit-learn's
# own search.
faiss = import_faiss()


def with_adapter(index):
    """Return an index of raw vectors that adapts them for the given one."""
    linear = faiss.LinearTransform(64, 16, True)
    faiss.copy_array_to_vector(adapter.components_.ravel(), linear.A)
    faiss.copy_array_to_vector(adapter.bias_, linear.b)
    linear.is_trained = True
    index = faiss.IndexPreTransform(index)
    for step in (faiss.NormalizationTransform(16), linear, faiss.NormalizationTransform(64)):
        index.prepend_transform(step)
    return index


cosine = faiss.METRIC_INNER_PRODUCT
indexes = {
    "raw": faiss.IndexPreTransform(faiss.NormalizationTransform(64), faiss.IndexFlatIP(64)),
    "adapted": with_adapter(faiss.IndexFlatIP(16)),
    "adapted, int8": with_adapter(
        faiss.IndexScalarQuantizer(16, faiss.ScalarQuantizer.QT_8bit_uniform, cosine)
    ),
}
found, kilobytes = {}, {}
for name, index in indexes.items():
    index.train(vectors)
    index.add(vectors)
    found[name] = index.search(queries, 10)[1]
    kilobytes[name] = faiss.serialize_index(index).size / 1000

# %%
# NumPy finds the same neighbours from what the adapter returns.
cosines = adapter.transform(queries) @ adapter.transform(vectors).T
by_nearkin = np.argsort(-cosines, axis=1)[:, :10]


def share_found(exact, others):
    """Return the share of ten exact neighbours that are among others."""
    return (exact[:, :, None] == others[:, None, :]).any(axis=2).mean()


for name in ("adapted", "adapted, int8"):
    print(f"{name}: {share_found(by_nearkin, found[name]):.1%} of nearkin's neighbours")

# %%
# Inverted lists
# --------------
# An index of millions of vectors searches only some of its lists. This one has 32.
lists = faiss.index_factory(16, "IVF32,Flat", cosine)
inverted = with_adapter(lists)
inverted.train(vectors)
inverted.add(vectors)
visited, recall = [1, 2, 4, 8, 16, 32], []
for lists.nprobe in visited:
    recall.append(share_found(by_nearkin, inverted.search(queries, 10)[1]))

# %%
# The picture
# -----------
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
bars = left.bar(
    kilobytes.keys(), kilobytes.values(), color=["#888888", "#0072B2", "#56B4E9"], width=0.6
)
precision = [(labels[rows] == query_labels[:, None]).mean() for rows in found.values()]
left.bar_label(bars, [f"precision\n{share:.1%}" for share in precision], padding=2)
left.margins(y=0.15)
left.set_ylabel("kilobytes of the index")
left.set_title(f"{len(vectors):,} vectors: size and precision at 10")

right.plot(visited, recall, "o-", color="#0072B2")
right.set(
    xscale="log",
    xlabel="lists that are looked into, of 32",
    ylabel="share of the exact neighbours found",
)
right.set_xticks(visited, visited)
right.minorticks_off()
right.set_title(f"Four lists find {recall[2]:.1%} of the neighbours")
plt.show()

# %%
# The index of adapted vectors holds a quarter of the numbers, and in int8 each takes a quarter of
# the bytes (both also hold the adapter). It finds more items of the query's digit than the raw
# vectors do. The images of each list are near each other, so few lists hold most neighbours of a
# query.
#
# .. seealso::
#
#    :doc:`/guide/vector_databases` has pgvector, Qdrant, LanceDB and ONNX; :doc:`/measured/scaling` larger indexes.
