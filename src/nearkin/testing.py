"""Checks of learned maps, for this package's tests and for your own methods, without pytest."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_raises_regex
from scipy.linalg import subspace_angles
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.utils import get_tags

#: Checks of scikit-learn that a method with neighbours cannot pass, with the reason.
COPIES_ARE_NEIGHBORS = dict.fromkeys(
    (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")),
    "copies of a row are among its k nearest neighbours, and take the places of others: a row of "
    "weight 2 has k distinct ones",
)

_TOL = 1e-6  # relative: for rounding errors, also after some steps of a descent
_X, _y = make_classification(60, 8, n_informative=5, n_classes=3, random_state=0)
_Q = np.linalg.qr(np.random.default_rng(0).normal(size=(100, 8)))[0]  # orthonormal columns


def check_gradient(
    function: Callable[[Any], tuple[float, Any]], start: Any, *, tol: float = 1e-6
) -> None:
    """Assert that a gradient agrees with central differences of its function.

    Parameters
    ----------
    function : callable
        Takes an array in the shape of start; returns the value and the gradient, which has the same
        shape.
    start : array of floats
        Where to check. It should not be a minimum, where rounding dominates the gradient.
    tol : float, default=1e-6
        Maximum error of an entry, relative to the largest entry of the gradient.

    Raises
    ------
    AssertionError
        If the error is larger.

    Examples
    --------
    >>> import numpy as np
    >>> from nearkin.testing import check_gradient
    >>> check_gradient(lambda A: (np.sum(A**4), 4 * A**3), np.array([[1.0, -2.0], [0.5, 3.0]]))
    """
    start = np.asarray(start, dtype=np.float64)
    step = np.finfo(np.float64).eps ** (1 / 3) * max(1.0, np.abs(start).max())
    differences = np.empty_like(start)
    for index in np.ndindex(start.shape):
        move = np.zeros_like(start)
        move[index] = step
        differences[index] = (function(start + move)[0] - function(start - move)[0]) / (2 * step)
    assert_allclose(function(start)[1], differences, rtol=0, atol=tol * np.abs(differences).max())


def assert_same_subspace(A: Any, B: Any, tol: float = 1e-6) -> None:
    """Assert that the rows of two matrices span the same subspace.

    Parameters
    ----------
    A, B : arrays of shape (m, p)
        E.g. `components_`, each of rank m.
    tol : float, default=1e-6
        Maximum principal angle, in radians.

    Raises
    ------
    AssertionError
        If the dimensions differ, or an angle is larger.

    Examples
    --------
    >>> from nearkin.testing import assert_same_subspace
    >>> assert_same_subspace([[1, 0, 0], [0, 1, 0]], [[1, 1, 0], [1, -1, 0]])
    """
    A, B = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    assert A.shape == B.shape, f"matrices of shapes {A.shape} and {B.shape}"
    assert_allclose(subspace_angles(A.T, B.T), 0, atol=tol)


def check_embedding(estimator: Any, *, skip: tuple[str, ...] = ()) -> None:
    """Assert that a linear embedding satisfies the contract of this package.

    `embedding_checks` lists the checks.

    Run scikit-learn's checks, too: `sklearn.utils.estimator_checks.check_estimator(estimator)`, for
    a method with neighbours with `expected_failed_checks=COPIES_ARE_NEIGHBORS`.

    Parameters
    ----------
    estimator : LinearEmbedding
        A few iterations of a descent are enough; it need not converge.
    skip : tuple of str, default=()
        Names of checks that the method cannot pass.

    Raises
    ------
    AssertionError
        If a check fails.

    Examples
    --------
    >>> from nearkin import LDE
    >>> from nearkin.testing import check_embedding
    >>> check_embedding(LDE(2))
    """
    for name, check in embedding_checks(estimator):
        if name not in skip:
            check(estimator)


def embedding_checks(estimator: Any) -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yield the name and function of every applicable check, e.g. for `pytest.mark.parametrize`.

    Whether the embedding takes sparse X, and requires labels, is read from its scikit-learn tags. A
    check takes the estimator, fits clones of it, and raises an AssertionError that shows the
    difference.

    Parameters
    ----------
    estimator : LinearEmbedding

    Yields
    ------
    name : str
    check : callable

    Examples
    --------
    >>> from nearkin import LPP
    >>> from nearkin.testing import embedding_checks
    >>> [name for name, check in embedding_checks(LPP(2))][:4]
    ['distances', 'inverse_transform', 'float32', 'row_order']
    """
    tags = get_tags(estimator)
    checks = [*_CHECKS]
    if tags.input_tags.sparse:
        checks.append(_sparse)
    if tags.target_tags.required:
        checks += _CHECKS_OF_LABELS
    for check in checks:
        yield check.__name__.removeprefix("_"), check


def _fit(estimator: Any, X: Any = _X, y: Any = _y) -> Any:
    return clone(estimator).fit(X, y)


def _assert_close(found: Any, expected: Any, tol: float = _TOL) -> None:
    assert_allclose(found, expected, rtol=0, atol=tol * np.abs(expected).max())


def _distances(estimator: Any) -> None:
    """Transform, metric, matrix and pairs agree on distances."""
    model = _fit(estimator)
    expected = np.linalg.norm(model.transform(_X[:20]) - model.transform(_X[20:40]), axis=1)
    pairs, difference = np.stack([_X[:20], _X[20:40]], axis=1), _X[0] - _X[20]
    assert_allclose(model.pair_distance(pairs), expected)
    assert_allclose(model.pair_score(pairs), -expected)
    assert_allclose(difference @ model.get_mahalanobis_matrix() @ difference, expected[0] ** 2)
    metric = pickle.loads(pickle.dumps(model.get_metric()))
    assert_allclose(metric(_X[0], _X[20]), expected[0])
    assert_allclose(metric(_X[0], _X[20], squared=True), expected[0] ** 2)
    assert_allclose(
        metric(np.ones(8, np.uint8), np.full(8, 3, np.uint8)), metric(np.ones(8), np.full(8, 3.0))
    )
    assert_raises_regex(ValueError, "shape", model.pair_distance, _X)


def _float32(estimator: Any) -> None:
    """Single precision is preserved, and agrees with double precision."""
    X = _X.astype(np.float32)
    single, double = _fit(estimator, X), _fit(estimator, X.astype(np.float64))
    assert getattr(single, "components_", X).dtype == single.transform(X).dtype == np.float32
    _assert_close(single.transform(X), double.transform(X), tol=1e-4)


def _inverse_transform(estimator: Any) -> None:
    """Among all rows with given coordinates, the shortest are returned."""
    model = _fit(estimator)
    Z = model.transform(_X)
    X = model.inverse_transform(Z)
    _assert_close(model.transform(X), Z)
    in_null_space = _X - X  # both are mapped to Z
    assert_allclose(in_null_space @ X.T, 0, atol=_TOL * np.abs(_X @ _X.T).max())
    assert model.inverse_transform(Z.astype(np.float32)).dtype == np.float32
    assert_raises_regex(ValueError, "Z must be of shape", model.inverse_transform, _X @ _Q.T)


def _row_order(estimator: Any) -> None:
    order = np.random.default_rng(0).permutation(len(_X))
    shuffled = _fit(estimator, _X[order], _y[order])
    _assert_close(shuffled.get_mahalanobis_matrix(), _fit(estimator).get_mahalanobis_matrix())


def _rotation(estimator: Any) -> None:
    """Rotations and shifts of the rows transform the metric accordingly."""
    Q = np.linalg.qr(_Q[:8])[0]
    moved = _fit(estimator, _X @ Q + 1000.0).get_mahalanobis_matrix()
    _assert_close(Q @ moved @ Q.T, _fit(estimator).get_mahalanobis_matrix())


def _redundant_features(estimator: Any) -> None:
    """Distances do not change with a constant feature, copies of all features, or p > n."""
    expected = pdist(_fit(estimator).transform(_X))
    for X in (np.hstack([_X, np.full((60, 1), 7.0)]), np.hstack([_X, _X]) / np.sqrt(2), _X @ _Q.T):
        _assert_close(pdist(_fit(estimator, X).transform(X)), expected)


def _sparse(estimator: Any) -> None:
    """Sparse rows give the result of dense rows, also for p > n and with duplicate entries."""
    rng = np.random.default_rng(0)
    for p in (8, 100):
        X = rng.normal(size=(60, p)) * (rng.random((60, p)) < 0.5)
        half = csr_array(X / 2)
        twice = csr_array((half.data.repeat(2), half.indices.repeat(2), 2 * half.indptr), X.shape)
        dense, sparse = _fit(estimator, X), _fit(estimator, twice)
        assert_allclose(sparse.components_, dense.components_, atol=_TOL)
        assert_allclose(sparse.transform(csr_array(X)), dense.transform(X), atol=_TOL)


def _class_names(estimator: Any) -> None:
    """Only equality of labels matters, not their names."""
    expected = _fit(estimator).transform(_X)
    for y in (np.array(["zebra", "mole", "ant"])[_y], _y.astype(object)):
        assert_allclose(_fit(estimator, _X, y).transform(_X), expected, atol=_TOL)


def _singleton_class(estimator: Any) -> None:
    y = _y.copy()
    y[0] = 3
    assert np.isfinite(_fit(estimator, _X, y).transform(_X)).all()


def _bad_input(estimator: Any) -> None:
    """Rows from which nothing can be learned, and impossible dimensions, raise an error."""
    assert_raises_regex(ValueError, "does not vary", _fit, estimator, np.full((60, 3), 0.1))
    for unit in (1e150, 1e-150):
        assert_raises_regex(ValueError, "scale", _fit, estimator, _X * unit)
    for n_components, error in (
        (0, ValueError),
        (9, ValueError),
        ("2", TypeError),
        (True, TypeError),
    ):
        assert_raises_regex(
            error, "n_components", _fit, clone(estimator).set_params(n_components=n_components)
        )


def _missing_labels(estimator: Any) -> None:
    """None and NaN raise an error, and -1 is a class."""
    for missing in (None, np.nan):
        assert_raises_regex(
            ValueError, "no label", _fit, estimator, _X, np.where(_y == 0, missing, _y)
        )
    assert_allclose(
        _fit(estimator, _X, _y - 1).transform(_X), _fit(estimator).transform(_X), atol=_TOL
    )


def _bad_labels(estimator: Any) -> None:
    for y, message in (
        (np.ones(60), "one class"),
        (np.linspace(0, 1, 60), "continuous"),
        (_y[:3], "inconsistent"),
    ):
        assert_raises_regex(ValueError, message, _fit, estimator, _X, y)


_CHECKS = (
    _distances,
    _inverse_transform,
    _float32,
    _row_order,
    _rotation,
    _redundant_features,
    _bad_input,
)
_CHECKS_OF_LABELS = (_class_names, _singleton_class, _missing_labels, _bad_labels)
