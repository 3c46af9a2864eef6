"""
Rows on a cluster
=================

What changes if the rows are too many for one machine? :class:`~nearkin.dask.DaskDNE` and the other
Dask classes take Dask arrays, whose blocks of rows stay on the workers of a cluster, and learn the
same map as the local class. The picture shows the first directions of both.
"""

# %%
# A cluster and blocks
# --------------------
# The "cluster" here is a thread of this process; ``Client("scheduler:8786")`` connects to a real
# one. A Dask array is cut into blocks of rows, which would be read from files there.
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import DNE
from nearkin.dask import DaskDNE, DaskStandardScaler

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
rows, labels = da.from_array(X_train, chunks=(300, -1)), da.from_array(y_train, chunks=300)
print(f"{rows.numblocks[0]} blocks of {rows.chunks[0]} rows")

with (
    LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster,
    Client(cluster) as client,
):
    scaler = DaskStandardScaler().fit(rows, client=client)
    dne = DaskDNE(10).fit(scaler.transform(rows), labels, client=client)
model = make_pipeline(scaler.to_local(), dne.to_local())

# %%
# The same in memory
# ------------------
# ``to_local`` returned ordinary estimators, which need no Dask: a ``StandardScaler`` and a
# :class:`~nearkin.DNE`.
in_memory = make_pipeline(StandardScaler(), DNE(10)).fit(X_train, y_train)
difference = np.abs(model[-1].components_ - in_memory[-1].components_).max()
vote = KNeighborsClassifier(3).fit(model.transform(X_train), y_train)
accuracy = vote.score(model.transform(X_test), y_test)
print(f"{model[-1]}: 3-NN right in {accuracy:.1%} of held-out rows")

# %%
# The picture
# -----------
# A direction is drawn as an image: how much each of the 8 x 8 pixels counts in it.
fig, axes = plt.subplots(2, 5, figsize=(8, 4.1), layout="constrained")
largest = np.abs(in_memory[-1].components_[:5]).max()
for line, where, fitted in zip(axes, ("cluster", "memory"), (model, in_memory), strict=True):
    for number, ax in enumerate(line):
        image = ax.imshow(
            fitted[-1].components_[number].reshape(8, 8), cmap="RdBu_r", vmin=-largest, vmax=largest
        )
        ax.set(xticks=[], yticks=[])
        if line is axes[0]:
            ax.set_title(f"direction {number + 1}", fontsize=10)
    line[0].set_ylabel(where, fontsize=12)
fig.colorbar(image, ax=axes, label="weight of the pixel")
fig.suptitle(
    f"DNE on a cluster and in memory: the largest difference of a weight is {difference:.0e}\n"
    f"(3-NN right in {accuracy:.1%} of held-out rows)"
)
plt.show()

# %%
# The two rows of images are equal up to rounding. Maps may differ where distances are tied, as they
# often are between rows of whole numbers such as raw pixels: the search may then pick either of two
# equally near rows.
#
# .. seealso::
#
#    :doc:`/guide/dask` has all classes, approximate search, and folders of Parquet files; :doc:`/guide/many_rows`
#    says when a sample of the rows is enough.
