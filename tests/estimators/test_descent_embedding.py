"""The inits of descents."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from nearkin import NCA
from nearkin.estimators.descent_embedding import DescentEmbedding, UnitRows
from nearkin.estimators.validation import validate_labelled_rows
from nearkin.objectives.nca import nca_objective
from nearkin.objectives.stochastic import SameClass


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


class TestInits:
    @pytest.mark.parametrize("init", ["auto", "identity", "pca", "lda", "random"])
    def test_every_start_is_improved(self, init):
        X, y = wine()
        nca = NCA(2, init=init, random_state=0).fit(X, y)
        assert nca.loss_curve_[-1] < nca.loss_curve_[0]
        assert nca.objective_ > 0.9

    def test_auto_takes_the_lower_of_pca_and_lda(self):
        X, y = wine()
        first = {
            init: NCA(2, init=init).fit(X, y).loss_curve_[0] for init in ("auto", "pca", "lda")
        }
        assert first["auto"] == min(first["pca"], first["lda"])

    @pytest.mark.parametrize(
        ("spread", "tolerance"), [(0.0, 1e-6), (1e-9, 0.02)], ids=["constant", "nearly constant"]
    )
    def test_lda_is_not_led_by_a_feature_that_hardly_varies(self, spread, tolerance):
        X, y = wine()
        noise = 1 + spread * np.random.default_rng(0).normal(size=(len(X), 1))
        expected, nca = (
            NCA(2, init="lda").fit(X, y),
            NCA(2, init="lda").fit(np.hstack([X, noise]), y),
        )
        np.testing.assert_allclose(
            nca.loss_curve_[[0, -1]], expected.loss_curve_[[0, -1]], atol=tolerance
        )
        assert nca.loss_curve_[0] < -0.5  # far from the 0 of a flat map

    @pytest.mark.parametrize("spread", [0.0, 1e-9, 1.0])
    def test_lda_of_few_rows_of_many_classes(self, spread):
        """Rows of a class may be equal, or alone; and the unit of the features does not matter."""
        rng = np.random.default_rng(0)
        y = np.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 4])
        X = rng.normal(size=(5, 6))[y] + spread * rng.normal(size=(10, 6))
        A, B = (NCA(3, init="lda").fit(scale * X, y).components_ * scale for scale in (1, 1e6))
        assert np.linalg.matrix_rank(A) == 3
        np.testing.assert_allclose(np.abs(A), np.abs(B), rtol=1e-3, atol=1e-3 * np.abs(A).max())

    def test_lda_needs_no_p_by_p_matrix_nor_all_classes(self):
        rng = np.random.default_rng(0)
        y = np.arange(30) % 3
        X = rng.normal(size=(3, 20_000))[y] + rng.normal(size=(30, 20_000))
        A = NCA(2, init="lda", solver="sgd", random_state=0).partial_fit(X, y).components_
        rows = UnitRows.of(X)
        B = rows.directions("lda", 4, 2 * y, rng)
        assert (A.shape, B.shape) == ((2, 20_000), (2, 20_000))

    def test_an_array_is_taken_as_it_is(self):
        X, y = wine()
        A = np.random.default_rng(0).normal(size=(3, 13)) / 3
        with pytest.warns(ConvergenceWarning):
            nca = NCA(3, init=A, alpha=0.0, max_iter=1).fit(X, y)
        assert -nca.loss_curve_[0] == pytest.approx(
            nca_objective("expected_accuracy", A, X, SameClass(y))[0] / len(y), rel=1e-10
        )

    def test_an_array_for_more_features_than_rows(self):
        rng = np.random.default_rng(0)
        X, A = rng.normal(size=(20, 50)), rng.normal(size=(2, 50)) / 5
        y = np.arange(20) % 2
        with pytest.warns(ConvergenceWarning):
            nca = NCA(2, init=A, alpha=0.0, max_iter=1).fit(X, y)
        expected = nca_objective("expected_accuracy", A, X - X.mean(axis=0), SameClass(y))[0] / 20
        assert -nca.loss_curve_[0] == pytest.approx(expected, rel=1e-10)


class Standing(DescentEmbedding):
    """A method that states nothing of itself."""

    def fit(self, X, y):
        validate_labelled_rows(self, X, y)


def test_labels_are_required_unless_a_method_says_otherwise():
    with pytest.raises(ValueError, match="Standing estimator requires y to be passed"):
        Standing().fit(np.eye(3), None)
