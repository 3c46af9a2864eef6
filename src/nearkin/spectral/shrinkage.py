"""How far a scatter that few rows determine is shrunk toward a multiple of the identity."""

from __future__ import annotations

import numpy as np

MOST = 0.5  # what was measured counts for at least as much as the identity


def shrunk(S: np.ndarray, T: np.ndarray, amount: float) -> np.ndarray:
    """Return (1 - s) S + s (tr S / r) TT' for the amount s and orthonormal columns T (d, r) that span the range of S.

    The trace stays, and so do the eigenvectors in the range; with s = 1 all directions in it count alike.
    """
    return (1 - amount) * S + amount * np.trace(S) / T.shape[1] * (T @ T.T)


def shrinkage_by_discrepancy(S: np.ndarray, dimension: int, degrees_of_freedom: float) -> float:
    """Return the largest s for which the shrunk scatter differs from S no more than S does, by chance, from the truth.

    **Degrees of freedom.** Let S = X'LX for a graph Laplacian L and rows x_i ~ N(m, Sigma), with one m for each
    connected component. With L = sum_k mu_k u_k u_k', S = sum_k mu_k (X'u_k)(X'u_k)' is a sum of independent Wishart
    matrices of one degree of freedom with weights mu_k: E S = tr(L) Sigma, and the entries of S have tr(L^2) times the
    covariances of a single one. A Wishart matrix of nu degrees of freedom over nu, times tr L, has both moments if

        nu = tr(L)^2 / tr(L^2)

    (Satterthwaite's approximation). It is n - c if all rows of c classes are adjacent, and less for uneven weights.

    **Standard error.** With C = S / tr(L), a = tr Sigma^2 and b = (tr Sigma)^2, the Wishart moments are

        E tr C^2 = (1 + 1/nu) a + b / nu,    E (tr C)^2 = b + 2 a / nu,    E ||C - Sigma||^2 = (a + b) / nu,

    (Frobenius norm), of which 2 a / (nu r) is an error of the trace alone, which shrinking does not change. The first
    two, solved for a and b, estimate the third without bias.

    **The amount.** Shrinking moves C by s ||C - (tr C / r) I||. Ledoit and Wolf's estimate of the covariance of least
    expected Frobenius error, in the form for normal rows (Chen et al. 2010), is

        s_LW = E ||C - Sigma||^2 / ||C - (tr C / r) I||^2    (without the error of the trace).

    A metric needs the inverse, in which a direction whose scatter is underestimated counts for too much while one whose
    scatter is overestimated merely counts for less. So of all S that are within one standard error of the one that was
    measured, the most regular is taken (Morozov's discrepancy principle): s ||C - (tr C / r) I|| is set to the root of
    the expected squared error, up to a half:

        s = min(1/2, s_LW^(1/2)).

    Beyond, the identity would count for more than what was measured. The Frobenius norm hardly sees a direction in
    which classes scatter far less than in all others, and which therefore separates them: among many features of noise
    s_LW comes near 1, and would hide it.

    Neither the unit nor a rotation of the features changes s.

    Parameters
    ----------
    S : array of shape (d, d)
        Positive semi-definite, of any scale.
    dimension : int
        r, of the space in which S lies.
    degrees_of_freedom : float
        nu.

    Returns
    -------
    float
        s in [0, 1/2]; 1/2 where S is a multiple of the identity, or has no more than 1 degree of freedom.

    References
    ----------
    O. Ledoit, M. Wolf: A well-conditioned estimator for large-dimensional covariance matrices. Journal of Multivariate
    Analysis 88 (2004) 365-411. Y. Chen, A. Wiesel, Y. C. Eldar, A. O. Hero: Shrinkage Algorithms for MMSE Covariance
    Estimation. IEEE Transactions on Signal Processing 58 (2010) 5016-5029. V. A. Morozov: On the solution of functional
    equations by the method of regularization. Soviet Mathematics Doklady 7 (1966) 414-417.
    """
    nu, r, trace = degrees_of_freedom, dimension, np.trace(S)
    square = float(np.square(S / trace).sum()) if trace > 0 else 0.0  # tr C^2, in the unit in which tr C = 1
    distance = square - 1 / r
    if nu <= 1 or distance <= 1e-12:
        return MOST
    a = (nu**2 * square - nu) / ((nu - 1) * (nu + 2))
    b = 1 - 2 * a / nu
    error = (a + b) / nu - 2 * a / (nu * r)
    return min(MOST, float(np.sqrt(max(error / distance, 0.0))))
