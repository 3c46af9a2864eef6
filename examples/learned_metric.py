"""A metric learned from the labels of some rows, put to use on all: clustering, and a graph for another method.

    python examples/learned_metric.py

NCA learns from three rows in ten what makes images of one digit near. Then nobody is told a label any more: k-means
clusters all rows, and spectral clustering takes the k-NN graph in the learned space as its affinity. How well the
clusters agree with the digits (adjusted Rand index: 0 is chance, 1 is perfect) is judged on the rows whose labels were
not used; on the others it would tell how well NCA obeys.
"""

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from nearkin import NCA
from nearkin.evaluation import held_out_accuracy
from nearkin.graphs import binary, union
from nearkin.neighbors import nearest


def clusters(Z: np.ndarray, n_clusters: int) -> dict[str, np.ndarray]:
    """Return the cluster of every row, by k-means and from the graph of nearest neighbours."""
    affinity = union(binary(nearest(Z, 10)))
    spectral = SpectralClustering(n_clusters, affinity="precomputed", assign_labels="cluster_qr", random_state=0)
    return {
        "k-means": KMeans(n_clusters, n_init=10, random_state=0).fit_predict(Z),
        "spectral": spectral.fit_predict(affinity),
    }


def main() -> dict[str, dict[str, float]]:
    """Print a line for each space, and return the figures."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    labelled = np.random.default_rng(0).random(len(y)) < 0.3
    figures = {}
    for name, Z in (("raw", X), ("learned", NCA(9).fit(X[labelled], y[labelled]).transform(X))):
        agreement = {m: adjusted_rand_score(y[~labelled], c[~labelled]) for m, c in clusters(Z, 10).items()}
        figures[name] = agreement | {"3-NN": held_out_accuracy(Z, y, labelled, [3])[3]}
        print(f"{name:8s}", "  ".join(f"{m} {figure:.3f}" for m, figure in figures[name].items()))
    return figures


if __name__ == "__main__":
    main()
