"""Laplacian Eigenmaps beside scikit-learn's SpectralEmbedding, on the same graph, in one run.

    NEARKIN_DATA=folder python benchmarks/eigenmaps.py

The union 20-NN graph of the first 12,000 MNIST rows, weights 1; 10 vectors. The residual is the
largest ||Lv - lambda v|| of scikit-learn's normalized Laplacian, whose norm is between 1 and 2.
SpectralEmbedding does not return eigenvalues; they are the Rayleigh quotients of its vectors.
Skipped where NEARKIN_DATA does not hold mnist.npz.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from sklearn.manifold import SpectralEmbedding

from nearkin import LaplacianEigenmaps
from nearkin.graphs import binary, normalized_laplacian, union
from nearkin.neighbors import nearest


def main(n: int, m: int) -> None:
    path = os.path.join(os.environ.get("NEARKIN_DATA", ""), "mnist.npz")
    if not os.path.exists(path):
        print("skipped: NEARKIN_DATA does not hold mnist.npz")
        return
    X = np.load(path)["X"][:n] / 255
    W = union(binary(nearest(X, 20)))
    roots, L = np.sqrt(W.sum(axis=1)), normalized_laplacian(W)

    def evaluate(Z: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the eigenvalues and the largest residual of an embedding, whose columns are v /
        sqrt(d).
        """
        V = Z * roots[:, None]
        V /= np.linalg.norm(V, axis=0)
        values = np.einsum("ij,ij->j", V, L @ V)
        return values, np.linalg.norm(L @ V - V * values, axis=0).max()

    start = time.perf_counter()
    Z = LaplacianEigenmaps(m).fit(X, affinity=W).embedding_
    ours = time.perf_counter() - start
    values, residual = evaluate(Z)
    print(
        f"{n} rows, {m} vectors\n\n| | seconds | times ours | residual | largest difference of "
        "eigenvalues |"
    )
    print("| --- | --- | --- | --- | --- |")
    print(f"| nearkin `LaplacianEigenmaps` | {ours:.1f} | 1 | {residual:.0e} | - |", flush=True)
    for solver in ("arpack", "lobpcg"):
        name = f"scikit-learn's `SpectralEmbedding`, {solver}"
        start = time.perf_counter()
        theirs = SpectralEmbedding(
            m, affinity="precomputed", eigen_solver=solver, random_state=0
        ).fit(W)
        seconds = time.perf_counter() - start
        found, their_residual = evaluate(theirs.embedding_)
        difference = np.abs(np.sort(found) - values).max()
        print(
            f"| {name} | {seconds:.1f} | {seconds / ours:.0f} | {their_residual:.0e} | "
            f"{difference:.0e} |",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=12_000, help="default 12000")
    parser.add_argument("--vectors", type=int, default=10, help="default 10")
    options = parser.parse_args()
    main(options.rows, options.vectors)
