"""Data frames of pandas and polars go in and out; labels and groups of every kind are read."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import LDE, LPP, NCA
from nearkin.comparison import Method, compare, confusion, score_by_dimension

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

NAMES = [f"feature {number}" for number in range(8)]
WORDS = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])
INDEX = np.arange(60)[::-1] * 7  # neither 0, 1, ... nor sorted
X, y = make_classification(60, 8, n_informative=5, n_classes=3, random_state=0)
FAMILIES = np.arange(60) // 2 % 6

FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES, index=INDEX),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
}
LABELS = {
    "list of strings": lambda codes: WORDS[codes].tolist(),
    "pandas int": lambda codes: pd.Series(codes, index=INDEX),
    "pandas Int64": lambda codes: pd.Series(codes, index=INDEX, dtype="Int64"),
    "pandas str": lambda codes: pd.Series(WORDS[codes], index=INDEX),
    "pandas object": lambda codes: pd.Series(WORDS[codes], index=INDEX, dtype=object),
    "pandas string": lambda codes: pd.Series(WORDS[codes], index=INDEX, dtype="string"),
    "pandas category": lambda codes: pd.Series(WORDS[codes], index=INDEX, dtype="category"),
    "polars int": lambda codes: pl.Series(codes),
    "polars str": lambda codes: pl.Series(WORDS[codes].tolist()),
    "polars categorical": lambda codes: pl.Series(WORDS[codes].tolist(), dtype=pl.Categorical),
    "polars enum": lambda codes: pl.Series(WORDS[codes].tolist(), dtype=pl.Enum(WORDS.tolist())),
}
HOLES = {
    "list of strings": ["ant", None, "bee", "ant"],
    "float": pd.Series([0.0, np.nan, 1.0, 0.0]),
    "pandas str": pd.Series(["ant", None, "bee", "ant"]),
    "pandas string": pd.Series(["ant", None, "bee", "ant"], dtype="string"),
    "pandas category": pd.Series(["ant", None, "bee", "ant"], dtype="category"),
    "pandas Int64": pd.Series([0, None, 1, 0], dtype="Int64"),
    "pandas boolean": pd.Series([False, None, True, False], dtype="boolean"),
    "pandas datetime": pd.to_datetime(pd.Series(["2020-01-01", None, "2020-01-02", "2020-01-01"])),
    "polars str": pl.Series(["ant", None, "bee", "ant"]),
    "polars int": pl.Series([0, None, 1, 0]),
    "polars categorical": pl.Series(["ant", None, "bee", "ant"], dtype=pl.Categorical),
}
every_frame = pytest.mark.parametrize("library", FRAMES)
every_kind = pytest.mark.parametrize("kind", LABELS)
every_hole = pytest.mark.parametrize("labels", HOLES.values(), ids=HOLES)


def need_names(*libraries):
    for library in libraries:
        if not hasattr(StandardScaler().fit(FRAMES[library](X)), "feature_names_in_"):
            pytest.skip(f"this scikit-learn reads no names from this {library}")


@every_frame
# one fit is shared by all spectral methods
@pytest.mark.parametrize("estimator", [LDE(2), NCA(2)], ids=repr)
class TestRowsInFrames:
    def test_names_are_kept_and_others_refused(self, estimator, library):
        need_names(library)
        frame = FRAMES[library](X)
        model = clone(estimator).fit(frame, y)
        assert model.feature_names_in_.tolist() == NAMES
        for names in [NAMES[::-1], ["another", *NAMES[1:]]]:
            other = frame[NAMES]
            other.columns = names
            with pytest.raises(ValueError, match="feature names should match"):
                model.transform(other)
        with pytest.raises(ValueError, match="feature names should match"):
            model.transform(frame[NAMES[:5]])

    @pytest.mark.parametrize("out", FRAMES)
    def test_frames_come_out_on_request(self, estimator, library, out):
        need_names(library, out)
        frame = FRAMES[library](X)
        plain = clone(estimator).fit(X, y).transform(X)
        pipeline = make_pipeline(StandardScaler(with_std=False), clone(estimator)).set_output(
            transform=out
        )
        Z = pipeline.fit(frame, y).transform(frame)
        assert isinstance(Z, pd.DataFrame if out == "pandas" else pl.DataFrame)
        assert list(Z.columns) == [
            f"{type(estimator).__name__.lower()}{number}" for number in range(2)
        ]
        np.testing.assert_allclose(
            np.abs(Z.to_numpy()), np.abs(plain - plain.mean(axis=0)), atol=1e-6
        )
        if out == library == "pandas":
            assert Z.index.tolist() == INDEX.tolist()


@every_kind
def test_labels_of_every_kind_are_classes(kind):
    np.testing.assert_array_equal(
        LDE().fit(X, LABELS[kind](y)).components_, LDE().fit(X, y).components_
    )


@every_hole
def test_missing_labels_are_counted(labels):
    with pytest.raises(ValueError, match=r"y has no label in 1 row \(first: row 1\): drop them"):
        LDE().fit(np.random.default_rng(0).normal(size=(4, 2)), labels)


def quick_comparison(X, y, groups=None):
    options = {"references": (), "n_splits": 2, "n_repeats": 1, "n_neighbors": 3}
    return compare(X, y, groups=groups, methods=[Method("LPP", LPP())], **options)


@pytest.fixture(scope="module")
def expected():
    comparison = quick_comparison(X, y, FAMILIES)
    return comparison["LPP"].score, score_by_dimension(comparison)["LPP"][2]


@pytest.mark.long
@pytest.mark.parametrize(
    ("library", "kind"),
    [
        pytest.param("pandas", "pandas Int64", marks=pytest.mark.slow),
        ("pandas", "polars enum"),
        ("polars", "pandas category"),
        pytest.param("polars", "polars str", marks=pytest.mark.slow),
    ],
)
def test_compare_takes_frames_labels_and_groups_of_every_kind(library, kind, expected):
    frame, labels = FRAMES[library](X), LABELS[kind](y)
    comparison = quick_comparison(frame, labels, LABELS[kind](FAMILIES))
    np.testing.assert_array_equal(comparison["LPP"].score, expected[0])
    assert set(comparison.winner.predict(X)) <= set(labels)
    np.testing.assert_array_equal(score_by_dimension(comparison)["LPP"][2], expected[1])
    counts = confusion(comparison["LPP"], comparison)
    np.testing.assert_array_equal(counts.sum(axis=1), np.bincount(y))


@every_hole
def test_missing_labels_and_groups_are_named(labels):
    X = np.random.default_rng(0).normal(size=(4, 2))
    with pytest.raises(ValueError, match=r"has a single row with a label|y holds dates"):
        quick_comparison(X, labels)
    with pytest.raises(ValueError, match="groups has missing values"):
        quick_comparison(X, [0, 0, 1, 1], labels)
