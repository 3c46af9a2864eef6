"""What the checks for embeddings find."""

import numpy as np
import pytest

from nearkin.estimators.base import LinearEmbedding
from nearkin.testing import check_embedding, embedding_checks

pytestmark = [
    pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning"),
    # scikit-learn's labels are noise
    pytest.mark.filterwarnings("ignore:No direction separates:UserWarning"),
    pytest.mark.filterwarnings("ignore:n_components=:UserWarning"),
]


class FirstFeatures(LinearEmbedding):
    """Neither validates its input nor rotates with it."""

    def __init__(self, n_components=1):
        self.n_components = n_components

    def fit(self, X, y=None):
        self.components_ = np.eye(self.n_components, X.shape[1])
        return self


@pytest.mark.parametrize("name", ["rotation", "redundant_features", "bad_input"])
def test_a_broken_promise_is_found(name):
    check = dict(embedding_checks(FirstFeatures()))[name]
    with pytest.raises(AssertionError):
        check(FirstFeatures())
    check_embedding(
        FirstFeatures(), skip=("float32", "rotation", "redundant_features", "bad_input")
    )
