"""Spectral methods beside their floor and beside scikit-learn: time, memory, residuals.

    python -m benchmarks.speed.spectral
    NEARKIN_DATA=folder python -m benchmarks.speed.spectral eigenmaps

The first compares DNE and NMMP with their floor, scikit-learn's exact search over the same pairs plus
one X'X. Each ratio is taken within one run of both, in turn, and the median of the runs is printed;
peak memory is that of a fresh process above its imports (Linux only).

The second compares Laplacian Eigenmaps with scikit-learn's SpectralEmbedding on the same graph: the
union 20-NN graph of the first 12,000 MNIST rows, weights 1; 10 vectors. The residual is the largest
||Lv - lambda v|| of scikit-learn's normalized Laplacian, whose norm is between 1 and 2.
SpectralEmbedding does not return eigenvalues; they are the Rayleigh quotients of its vectors.
"""

import numpy as np
from sklearn.manifold import SpectralEmbedding
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from benchmarks.data import archive
from benchmarks.measure import apart, command, memory, timed
from benchmarks.report import head, row
from nearkin import DNE, LPP, NMMP, LaplacianEigenmaps
from nearkin.graphs import binary, normalized_laplacian, union
from nearkin.neighbors import nearest

METHODS = {
    "DNE()": (DNE(), 1, 1),
    "NMMP(n_neighbors_within=10)": (NMMP(n_neighbors_within=10), 10, 10),
}


def make_table(n, p=50, n_classes=10):
    """Return overlapping Gaussian classes of unequal size."""
    rng = np.random.default_rng(0)
    y = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum())
    return rng.normal(size=(n_classes, p))[y] + 2 * rng.normal(size=(n, p)), y


def floor(X, y, k_same, k_other):
    """Search each class in itself and in its complement, and form X'X: what no such method can do
    without.
    """
    for c in np.unique(y):
        same, others = X[y == c], X[y != c]
        NearestNeighbors(n_neighbors=k_same, algorithm="brute").fit(same).kneighbors()
        NearestNeighbors(n_neighbors=k_other, algorithm="brute").fit(others).kneighbors(same)
    return X.T @ X


def time_methods(n, runs):
    X, y = make_table(n)
    held_out, answers = X[: n // 10], y[: n // 10]
    rest, labels = X[n // 10 :], y[n // 10 :]
    vote = KNeighborsClassifier(3)
    about = f"method, n = {n:,}, p = 50"
    head(about, "seconds", "floor, seconds", "ratio", "held-out 3-NN (raw)")
    raw = vote.fit(rest, labels).score(held_out, answers)
    for name, (model, *k) in METHODS.items():
        floor(X, y, *k)  # warm-up
        works = (model.fit, X, y), (floor, X, y, *k)
        pairs = np.array([[timed(*work).seconds for work in works] for _ in range(runs)])
        mine, bound = np.median(pairs, axis=0)
        ratio = np.median(pairs[:, 0] / pairs[:, 1])
        model.fit(rest, labels)
        vote.fit(model.transform(rest), labels)
        score = f"{vote.score(model.transform(held_out), answers):.3f} ({raw:.3f})"
        row(f"`{name}`", f"{mine:.2f}", f"{bound:.2f}", f"{ratio:.2f}", score)


def time_extremes():
    """Many features and few rows; very many tiny classes."""
    rng = np.random.default_rng(0)
    people = np.arange(200) // 5
    wide = rng.normal(size=(40, 10_304))[people] + rng.normal(size=(200, 10_304))
    y = np.arange(100_000) // 10
    tiny = 3 * rng.normal(size=(10_000, 20))[y] + rng.normal(size=(100_000, 20))
    head("method", "rows x features, classes", "seconds")
    for method in (DNE(), NMMP(60), LPP(60)):
        seconds = timed(method.fit, wide, people).seconds
        row(f"`{method}`", "200 x 10,304, 40", f"{seconds:.2f}")
    for method in (DNE(), NMMP()):
        seconds = timed(method.fit, tiny, y).seconds
        row(f"`{method}`", "100,000 x 20, 10,000", f"{seconds:.1f}")
    search = NearestNeighbors(n_neighbors=10, algorithm="brute")
    seconds = timed(lambda: search.fit(tiny).kneighbors()).seconds
    row("scikit-learn, one search of all rows", "100,000 x 20", f"{seconds:.1f}")


def peak_memory(name, n):
    """Return the bytes that a process takes at its peak beyond what it holds now."""
    before = memory("VmRSS")
    METHODS[name][0].fit(*make_table(n))
    return memory() - before


def spectral(rows=20_000, rows_memory=50_000, runs=5):
    time_methods(rows, runs)
    time_extremes()
    about = f"method, n = {rows_memory:,}, p = 50"
    head(about, "peak memory above the imports, data included")
    for name in METHODS:
        row(f"`{name}`", f"{apart(peak_memory, name, rows_memory) / 1e6:.0f} MB")


def eigenmaps(n=12_000, vectors=10):
    X = archive("mnist")["X"][:n] / 255
    W = union(binary(nearest(X, 20)))
    roots, L = np.sqrt(W.sum(axis=1)), normalized_laplacian(W)

    def evaluate(Z):
        """Return the eigenvalues and the largest residual of an embedding, whose columns are v /
        sqrt(d).
        """
        V = Z * roots[:, None]
        V /= np.linalg.norm(V, axis=0)
        values = np.einsum("ij,ij->j", V, L @ V)
        return values, np.linalg.norm(L @ V - V * values, axis=0).max()

    ours = timed(lambda: LaplacianEigenmaps(vectors).fit(X, affinity=W))
    values, residual = evaluate(ours.result.embedding_)
    print(f"{n} rows, {vectors} vectors")
    head("", "seconds", "times ours", "residual", "largest difference of eigenvalues")
    row("nearkin `LaplacianEigenmaps`", f"{ours.seconds:.1f}", 1, f"{residual:.0e}", "-")
    for solver in ("arpack", "lobpcg"):
        how = {"affinity": "precomputed", "eigen_solver": solver, "random_state": 0}
        run = timed(SpectralEmbedding(vectors, **how).fit, W)
        found, residual = evaluate(run.result.embedding_)
        difference = np.abs(np.sort(found) - values).max()
        times = f"{run.seconds:.1f}", f"{run.seconds / ours.seconds:.0f}"
        name = f"scikit-learn's `SpectralEmbedding`, {solver}"
        row(name, *times, f"{residual:.0e}", f"{difference:.0e}")


if __name__ == "__main__":
    command(spectral, eigenmaps)
