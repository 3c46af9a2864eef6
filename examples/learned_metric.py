"""Cluster all rows by a metric learned from the labels of some: k-means, and spectral clustering of its k-NN graph.

    python examples/learned_metric.py

NCA is fitted to a random 30 % of the rows, with their labels. The clustering uses no labels: k-means clusters all rows
in the learned space, and spectral clustering takes the k-NN graph in that space as its affinity. The adjusted Rand
index with the digits (0 is chance, 1 is perfect) is computed on the rows whose labels were not used: on the others it
would measure the fit of NCA.
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
