"""Tables as people hold them: data frames of pandas and polars in and out, labels and groups of every kind."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearkin
from nearkin.evaluation import Method, compare, confusion, score_by_dimension

from .test_contract import SUPERVISED, VARIANTS, data

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

NAMES = [f"feature {number}" for number in range(8)]
WORDS = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])
INDEX = np.arange(60)[::-1] * 7  # neither 0, 1, ... nor sorted

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
every_variant = pytest.mark.parametrize("estimator", VARIANTS, ids=repr)
every_frame = pytest.mark.parametrize("library", FRAMES)
every_kind = pytest.mark.parametrize("kind", LABELS)
every_hole = pytest.mark.parametrize("labels", HOLES.values(), ids=HOLES)


def need_names(*libraries):
    for library in libraries:
        if not hasattr(StandardScaler().fit(FRAMES[library](data()[0])), "feature_names_in_"):
            pytest.skip(f"this scikit-learn reads no names from this {library}")


@every_variant
@every_frame
class TestRowsInFrames:
    def test_equal_rows_in_an_array(self, estimator, library):
        X, y = data()
        in_frame, in_array = clone(estimator).fit(FRAMES[library](X), y), clone(estimator).fit(X, y)
        np.testing.assert_allclose(in_frame.components_, in_array.components_, atol=1e-12)
        np.testing.assert_allclose(in_frame.transform(FRAMES[library](X)), in_array.transform(X), atol=1e-12)

    def test_names_are_kept_and_others_refused(self, estimator, library):
        need_names(library)
        X, y = data()
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
        X, y = data()
        frame = FRAMES[library](X)
        plain = clone(estimator).fit(frame, y).transform(frame)
        names = [f"{type(estimator).__name__.lower()}{number}" for number in range(plain.shape[1])]
        alone = clone(estimator).set_output(transform=out).fit(frame, y)
        piped = make_pipeline(clone(estimator), StandardScaler(with_std=False)).set_output(transform=out).fit(frame, y)
        for Z, expected in [(alone.transform(frame), plain), (piped.transform(frame), plain - plain.mean(axis=0))]:
            assert isinstance(Z, pd.DataFrame if out == "pandas" else pl.DataFrame)
            assert list(Z.columns) == names
            np.testing.assert_allclose(Z.to_numpy(), expected, atol=1e-12 * np.abs(plain).max())
            if out == library == "pandas":
                assert Z.index.tolist() == INDEX.tolist()


@pytest.mark.parametrize("estimator", SUPERVISED, ids=repr)
class TestLabels:
    @every_kind
    def test_of_every_kind_are_classes(self, estimator, kind):
        X, y = data()
        expected = clone(estimator).fit(X, y).components_
        np.testing.assert_array_equal(clone(estimator).fit(X, LABELS[kind](y)).components_, expected)

    @every_hole
    def test_that_are_missing_are_counted(self, estimator, labels):
        X = np.random.default_rng(0).normal(size=(4, 2))
        with pytest.raises(ValueError, match=r"y has no label in 1 rows \(first: row 1\): drop them"):
            clone(estimator).fit(X, labels)


class TestCompare:
    """Quick comparisons: two methods, two folds."""

    METHODS = (Method("DNE", nearkin.DNE()),)

    def compare(self, X, y, groups=None):
        return compare(X, y, groups=groups, methods=self.METHODS, n_splits=2, n_repeats=1)

    @every_frame
    @every_kind
    def test_frames_labels_and_groups_of_every_kind(self, library, kind):
        X, y = data()
        families = np.arange(60) // 2 % 6
        expected = self.compare(X, y, families)["DNE"].accuracy
        comparison = self.compare(FRAMES[library](X), LABELS[kind](y), LABELS[kind](families))
        np.testing.assert_array_equal(comparison["DNE"].accuracy, expected)
        assert set(comparison.winner.predict(X)) <= set(LABELS[kind](y))

    @every_frame
    @every_kind
    def test_closer_looks_take_the_same(self, library, kind):
        X, y = data()
        comparison = self.compare(FRAMES[library](X), LABELS[kind](y))
        curves = score_by_dimension(comparison, FRAMES[library](X), LABELS[kind](y))
        expected = score_by_dimension(self.compare(X, y), X, y)
        np.testing.assert_array_equal(curves["DNE"][2], expected["DNE"][2])
        counts = confusion(comparison["DNE"], comparison, LABELS[kind](y))
        np.testing.assert_array_equal(counts.sum(axis=1), np.bincount(y))

    @every_hole
    def test_missing_labels_and_groups_are_named(self, labels):
        X = np.random.default_rng(0).normal(size=(4, 2))
        with pytest.raises(ValueError, match="has a single labelled row"):
            self.compare(X, labels)
        with pytest.raises(ValueError, match="groups has missing values"):
            self.compare(X, [0, 0, 1, 1], labels)
