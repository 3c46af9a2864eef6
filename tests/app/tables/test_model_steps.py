"""Each step of a saved model does what the fitted step does, and survives its arrays."""

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import StandardScaler

from nearkin import NCA, TDL
from nearkin.app.tables.model import STEPS, saved_step
from nearkin.tables.gaps import Imputer

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 4)) * [1, 2, 3, 4] + 5, np.arange(40) % 3
GAPS = np.where(RNG.random(X.shape) < 0.3, np.nan, X)
SPARSE = csr_array(np.where(X > 4, X, 0))

FITTED = {
    "scaler": (StandardScaler(), X),
    "scaler of gaps": (StandardScaler(), GAPS),
    "scaler of sparse rows": (StandardScaler(with_mean=False), SPARSE),
    "imputer": (Imputer(), GAPS),
    "PCA": (PCA(2), X),
    "LDA": (LinearDiscriminantAnalysis(), X),
    "NCA": (NCA(2), X),
    "TDL": (TDL(2, n_neighbors=5), X),
    "TDL of sparse rows": (TDL(2, n_neighbors=5), SPARSE),
}


@pytest.mark.parametrize("name", FITTED)
def test_a_step_does_what_the_fitted_one_does(name):
    fitted, rows = FITTED[name]
    fitted.fit(rows, Y)
    arrays, states = saved_step(fitted).to_arrays()
    (kind,) = [kind for shown, kind in STEPS.items() if shown in arrays]
    again = kind.from_arrays(arrays | {"voters": X}, states)
    found, expected = again.transform(rows), fitted.transform(rows)
    assert issparse(found) == issparse(expected)
    found, expected = (Z.toarray() if issparse(Z) else Z for Z in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_column_without_known_values_is_filled():
    """It has neither a mean nor a deviation; new values of it change nothing."""
    rows = np.column_stack([X, np.full(len(X), np.nan)])
    with np.errstate(invalid="ignore"):
        step = saved_step(StandardScaler().fit(rows))
    np.testing.assert_array_equal(step.transform(np.nan_to_num(rows))[:, -1], 0)
