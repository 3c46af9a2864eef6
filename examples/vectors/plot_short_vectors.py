"""
Vectors twelve times shorter
============================

How much of a search survives if its vectors are made shorter? A query should find items of its own
class among the ten most similar. The picture shows the share of such items (precision at 10) for
held-out queries against the bytes of a vector: truncated, by PCA and by
:class:`~nearkin.EmbeddingAdapter`, which learns from labels; in float32, in int8 and in bits.

scikit-learn ships no sentence embeddings. The vectors here are images of digits, 64 pixels or 256
bytes each, compared by cosine as embeddings are. :doc:`/measured/adapt` has the same measurement on
sentence embeddings of 77 intents.
"""

# %%
# The index and the queries
# -------------------------
# 1,397 images with their labels are the index, from which the maps are learned; 400 others are the
# queries.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from nearkin import EmbeddingAdapter

X, y = load_digits(return_X_y=True)
X_index, X_queries, y_index, y_queries = train_test_split(
    X.astype(np.float32), y, test_size=400, stratify=y, random_state=0
)


def precision_at_10(index, queries):
    """Return the share of items of the query's class among its ten most similar ones."""
    cosines = normalize(queries) @ normalize(index).T
    nearest = np.argsort(-cosines, axis=1)[:, :10]
    return (y_index[nearest] == y_queries[:, None]).mean()


# %%
# Shorter vectors
# ---------------
# A vector of m numbers takes 4 m bytes in float32, m in int8, and m / 8 in bits. ``quantized``
# returns a copy of a fitted adapter that produces codes. PCA's numbers are rounded to int8 in the
# same way.
sizes = (2, 4, 8, 16, 21, 32)
found = {}
for m in sizes:
    found["truncated", "float32", 4 * m] = precision_at_10(X_index[:, :m], X_queries[:, :m])

    pca = PCA(m).fit(X_index)
    Z_index, Z_queries = pca.transform(X_index), pca.transform(X_queries)
    unit = np.quantile(np.abs(Z_index), 0.999) / 127
    found["PCA", "float32", 4 * m] = precision_at_10(Z_index, Z_queries)
    found["PCA", "int8", m] = precision_at_10(
        *(np.clip(np.rint(Z / unit), -127, 127) for Z in (Z_index, Z_queries))
    )

    adapter = EmbeddingAdapter(m).fit(X_index, y_index)
    found["adapter", "float32", 4 * m] = precision_at_10(
        adapter.transform(X_index), adapter.transform(X_queries)
    )
    codes = adapter.quantized("int8", X_index)
    found["adapter", "int8", m] = precision_at_10(
        *(codes.transform(Z).astype(float) for Z in (X_index, X_queries))
    )
    if m % 8 == 0:
        bits = adapter.quantized("binary", X_index)
        signs = (2.0 * np.unpackbits(bits.transform(Z), axis=1) - 1 for Z in (X_index, X_queries))
        found["adapter", "bits", m // 8] = precision_at_10(*signs)

raw = precision_at_10(X_index, X_queries)
pca_21, adapter_21 = found["PCA", "int8", 21], found["adapter", "int8", 21]
print(
    f"precision at 10: raw {raw:.3f} (256 bytes), PCA {pca_21:.3f}, adapter "
    f"{adapter_21:.3f} (21 bytes each)"
)

# %%
# The picture
# -----------
colors = {"truncated": "#888888", "PCA": "#D55E00", "adapter": "#0072B2"}
styles = {"float32": ("o", "-"), "int8": ("s", "--"), "bits": ("^", ":")}
fig, ax = plt.subplots(figsize=(8, 5.2), layout="constrained")
for kind, code in dict.fromkeys((kind, code) for kind, code, _ in found):
    curve = {n: precision for (*one, n), precision in found.items() if one == [kind, code]}
    marker, line = styles[code]
    ax.plot(
        list(curve),
        list(curve.values()),
        marker + line,
        color=colors[kind],
        label=f"{kind}, {code}",
    )
ax.plot(256, raw, "k*", markersize=13, label="raw, float32")
ax.axhline(raw, color="black", linewidth=0.8, linestyle="--", zorder=0)
ax.axvline(256 / 12, color="black", linewidth=0.8, linestyle=":", zorder=0)
ax.text(256 / 12 * 1.05, 0.13, "12 times\nshorter")
ax.set(
    xscale="log",
    xlabel="bytes of a vector",
    ylabel="precision at 10 of held-out queries",
    ylim=(0.1, 1),
)
ax.set_xticks([2**power for power in range(9)], [2**power for power in range(9)])
ax.minorticks_off()
fig.legend(loc="outside lower center", ncols=4)
ax.set_title(
    f"21 bytes in place of 256: adapter {adapter_21:.1%}, PCA {pca_21:.1%} (raw {raw:.1%})"
)
plt.show()

# %%
# The adapter knows the labels of the index; PCA and truncation do not. With the adapter, short
# vectors find more items of the query's class than the raw ones. int8 costs next to nothing, so
# numbers should be rounded before dimensions are dropped. This holds for classes that the adapter
# has seen; for others, see :doc:`/gallery/vectors/plot_unseen_classes`.
#
# .. seealso::
#
#    :doc:`/guide/embeddings`, and :doc:`/guide/vector_databases` for the way into a database.
