"""What EmbeddingAdapter refuses: the message names the argument, what was found, and where there is
one, the remedy.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array
from sklearn.exceptions import NotFittedError

from nearkin import EmbeddingAdapter
from nearkin.vectors import Labels, compare_vectors

X = np.random.default_rng(0).normal(size=(12, 4))
Y = np.arange(12) % 3
ONE_DIRECTION = np.outer(np.arange(1, 13) / 7, [0.1, 0.7, 0.3, 1.1])


def spoiled(value):
    rows = X.copy()
    rows[3, 2] = value
    return rows


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be at least 1, got 0"),
        ({"n_components": 2.5}, r"n_components must be an integer, got 2.5 \(float\)"),
        ({"loss": "triplet"}, "loss must be one of auto, nca, contrastive, got 'triplet'"),
        ({"side": "document"}, "side must be one of both, query, got 'document'"),
        ({"quantize": "int4"}, "quantize must be one of int8, binary, got 'int4'"),
        ({"quantize": ["int8"]}, r"quantize must be one of int8, binary, got \['int8'\]"),
        ({"temperature": 0}, "temperature must be larger than 0, got 0"),
        ({"temperature": -0.1}, "temperature must be larger than 0, got -0.1"),
        ({"temperature": "auto"}, r"temperature must be a number, got 'auto' \(str\)"),
        ({"alpha": -1}, "alpha must be a finite number of at least 0, got -1"),
        ({"alpha": np.inf}, "alpha must be a finite number of at least 0, got inf"),
        ({"alpha": np.nan}, "alpha must be a finite number of at least 0, got nan"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ({"max_iter": 1.5}, r"max_iter must be an integer, got 1.5 \(float\)"),
        ({"nested": 2}, r"nested must be a sequence of integers, got 2 \(int\)"),
        ({"nested": [2, 5]}, "a size of nested must be between 1 and 4, got 5"),
        ({"nested": [0]}, "a size of nested must be between 1 and 4, got 0"),
        ({"nested": [2.0]}, r"a size of nested must be an integer, got 2.0 \(float\)"),
        ({"nested": "12"}, r"a size of nested must be an integer, got '1' \(str\)"),
        ({"nested": [2], "side": "query"}, 'nested sizes need side="both"'),
        (
            {"quantize": "binary", "side": "query"},
            'quantize="binary" needs side="both": documents that stay',
        ),
    ],
)
def test_parameters(parameters, message):
    """They are refused by every way to fit, before anything is learned."""
    model = EmbeddingAdapter(**parameters)
    fits = (
        lambda: model.fit(X, Y),
        lambda: model.fit_pairs(X, [[0, 3]]),
        lambda: model.fit_triplets(X, [[0, 3, 1]]),
        lambda: model.fit_relevance(X, X, [[0, 3]]),
    )
    for fit in fits:
        with pytest.raises((ValueError, TypeError), match=message):
            fit()
    assert not hasattr(model, "components_")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (spoiled(np.nan), "Input X contains NaN"),
        (spoiled(np.inf), "Input X contains infinity"),
        (np.ones((12, 4)), "X does not vary: all its rows are equal"),
        (
            ONE_DIRECTION,
            r"X does not vary in direction \(n_features = 4\): its rows are multiples of one",
        ),
        (ONE_DIRECTION.astype(np.float32), "X does not vary in direction"),
        (X[:1], r"1 sample\(s\) .* minimum of 2"),
        (X[0], "Expected 2D array, got 1D"),
    ],
)
@pytest.mark.parametrize("side", ["both", "query"])
def test_rows(rows, side, message):
    model = EmbeddingAdapter(side=side)
    for fit in (
        lambda: model.fit(rows, Y[: len(rows)]),
        lambda: model.fit_pairs(rows, [[0, 3]]),
        lambda: model.fit_triplets(rows, [[0, 3, 1]]),
        lambda: model.fit_relevance(X, rows, [[0, 3]]),
    ):
        with pytest.raises(ValueError, match=message):
            fit()


@pytest.mark.parametrize("side", ["both", "query"])
def test_too_many_features(side, monkeypatch):
    monkeypatch.setattr("nearkin._memory.available_memory", lambda: 1000)
    message = r"An adapter of 4 features needs about 1.02 kB .* shorten the rows first"
    with pytest.raises(MemoryError, match=message):
        EmbeddingAdapter(side=side).fit(X, Y)
    with pytest.raises(MemoryError, match=r"adapters? of 4 features needs? about"):
        compare_vectors(Labels(X.repeat(4, 0), Y.repeat(4), np.arange(48)))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed.*give labels"),
        (np.zeros(12, int), r"y holds one class \(0\): at least two classes are needed"),
        (np.full(12, -1), "y holds no label"),
        (np.append(Y[:11], np.nan) * 0, "y holds one class"),
        (np.arange(12).astype(str), "y gives no two rows the same label.*merge some classes"),
        (np.eye(12), "y gives no two rows the same label"),
        (np.zeros((12, 3)), "y gives no two rows the same label"),
        (Y[:9], r"inconsistent numbers of samples: \[12, 9\]"),
        (np.eye(3)[Y][:9], r"inconsistent numbers of samples: \[12, 9\]"),
        (
            2 * np.eye(3)[Y],
            "y of several columns holds 2; it must hold 0 and 1.*MultiLabelBinarizer",
        ),
        (csr_array(-np.eye(3)[Y]), "y of several columns holds -1; it must hold 0 and 1"),
        (np.full((12, 2), np.nan), "Input y contains NaN"),
        (
            [["a"], ["a", "b"], ["b"]] * 4,
            "y must be a label for every row, or 0 and 1 .*MultiLabelBinarizer",
        ),
        ([["a", "b"], ["a", "c"]] * 6, "y of several columns holds text; it must hold 0 and 1"),
        (np.array(["a", 1] * 6, dtype=object), "y mixes strings with other labels"),
        (X[:, 0], "Unknown label type: continuous"),
    ],
)
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_labels(y, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingAdapter().fit(X, y)


def test_two_rows_have_no_two_labels_but_may_be_a_pair():
    for y in ([0, 0], [0, 1]):
        with pytest.raises(
            ValueError, match=r"y holds one class|y gives no two rows the same label"
        ):
            EmbeddingAdapter().fit(X[:2], y)
    assert np.isfinite(EmbeddingAdapter().fit_pairs(X[:2], [[0, 1]]).transform(X)).all()


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (
            None,
            r"pairs must be numbers of rows of X, integers of shape \(n_pairs, 2\), got "
            r"object of \(\)",
        ),
        ([0, 1], r"pairs must be numbers of rows of X.*got int64 of \(2,\)"),
        ([[0, 1, 2]], r"pairs must be numbers of rows.*got int64 of \(1, 3\)"),
        ([[0.0, 1.0]], "pairs must be numbers of rows.*got float64"),
        (np.empty((0, 2), int), r"pairs must be numbers of rows.*of \(0, 2\)"),
        (X[:6].reshape(3, 2, 4), r"of stacked rows X is pairs.reshape\(-1, p\)"),
        ([[0, 12]], "pairs must hold numbers of rows, 0 to 11, got 0 to 12"),
        ([[-1, 2]], "pairs must hold numbers of rows, 0 to 11, got -1 to 2"),
        (
            [[0, 1], [2, 2]],
            r"pairs must be of different rows, number 1 \(counted from 0\) has row 2 twice",
        ),
    ],
)
def test_pairs(pairs, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingAdapter().fit_pairs(X, pairs)


@pytest.mark.parametrize(
    ("grades", "message"),
    [
        ([1, 1, 1], r"y must be a number for each of 2 pairs, got the shape \(3,\)"),
        ([[1], [1]], r"y must be a number for each of 2 pairs, got the shape \(2, 1\)"),
        ([0, -1], r"y marks no pair as similar \(larger than 0\)"),
        ([1, np.nan], "Input y contains NaN"),
        ([1, np.inf], "Input y contains infinity"),
        (["same", "other"], r"y must be numbers, got words \(such as 'same'\)"),
    ],
)
def test_grades(grades, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingAdapter().fit_pairs(X, [[0, 1], [2, 3]], grades)


@pytest.mark.parametrize(
    ("triplets", "message"),
    [
        (
            [0, 1, 2],
            r"triplets must be numbers of rows of X, integers of shape \(n_triplets, 3\), "
            r"got int64 of \(3,\)",
        ),
        ([[0, 1]], r"triplets must be numbers of rows.*of \(1, 2\)"),
        ([[0.0, 1.0, 2.0]], "triplets must be numbers of rows.*float64"),
        (np.empty((0, 3), int), r"triplets must be numbers of rows.*of \(0, 3\)"),
        (X.reshape(4, 3, 4), r"of stacked rows X is triplets.reshape\(-1, p\)"),
        ([[0, 1, 12]], "triplets must hold numbers of rows, 0 to 11, got 0 to 12"),
        (
            [[0, 1, 2], [5, 3, 5]],
            r"triplets must be of different rows, number 1 \(counted from 0\) has row 5 twice",
        ),
        ([[0, 1, 1]], "triplets must be of different rows, number 0 .* has row 1 twice"),
    ],
)
def test_triplets(triplets, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingAdapter().fit_triplets(X, triplets)


@pytest.mark.parametrize(
    ("relevance", "message"),
    [
        ([0, 1], r"relevance must have 2 or 3 columns, query, document and grade; got \(2,\)"),
        ([[0, 1, 1, 2]], r"relevance must have 2 or 3 columns.*got \(1, 4\)"),
        (
            [[0, 1], [5, 2]],
            "relevance must hold numbers of a query and a document, 0 to 4 and 11; row 1 "
            "holds 5, 2",
        ),
        ([[0, 12]], "0 to 4 and 11; row 0 holds 0, 12"),
        ([[-1, 1]], "row 0 holds -1, 1"),
        ([[0, 1.5]], "row 0 holds 0, 1.5"),
        ([[0, 1, 0], [1, 2, -1]], r"relevance marks no document as relevant \(larger than 0\)"),
        (csr_array((5, 12)), "relevance marks no document as relevant"),
        (
            eye_array(12),
            r"relevance must be of shape \(5, 12\), queries and documents; got \(12, 12\)",
        ),
        ([[0, 1, np.nan]], "Input relevance contains NaN"),
        (csr_array(np.full((5, 12), np.nan)), "Input relevance contains NaN"),
        (np.empty((0, 2)), r"0 sample\(s\)"),
    ],
)
def test_relevance(relevance, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingAdapter().fit_relevance(X[:5], X, relevance)


def test_queries():
    with pytest.raises(
        ValueError, match="queries have 3 features, documents 4: embed both by one model"
    ):
        EmbeddingAdapter().fit_relevance(X[:5, :3], X, [[0, 1]])
    with pytest.raises(ValueError, match="contains NaN"):
        EmbeddingAdapter().fit_relevance(spoiled(np.nan), X, [[0, 1]])


def test_new_rows():
    with pytest.raises(NotFittedError, match="EmbeddingAdapter instance is not fitted yet"):
        EmbeddingAdapter().transform(X)
    model = EmbeddingAdapter().fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features, but EmbeddingAdapter is expecting 4"):
        model.embed(X[:, :3])
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.transform(spoiled(np.nan))


def test_documents_that_stay_are_not_shortened():
    with pytest.raises(ValueError, match=r'n_components=3 needs side="both": .* of 4 dimensions'):
        EmbeddingAdapter(3, side="query").fit(X, Y)
    for size in (None, 4, 64):
        assert EmbeddingAdapter(size, side="query", max_iter=1).fit(X, Y).n_components_ == 4


def test_codes_that_are_fitted_later():
    model = EmbeddingAdapter(side="query").fit(X, Y)
    with pytest.raises(ValueError, match="quantize must be one of int8, binary, got 'int4'"):
        model.quantized("int4", X)
    with pytest.raises(ValueError, match="quantize must be one of int8, binary, got 'None'"):
        model.quantized(None, X)
    with pytest.raises(ValueError, match='quantize="binary" needs side="both"'):
        model.quantized("binary", X)
    assert model.quantized("int8", X).transform(X).dtype == np.int8
