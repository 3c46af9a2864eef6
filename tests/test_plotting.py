import io

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from nearkin import DNE, LPP
from nearkin.evaluation import Method, compare
from nearkin.plotting import (
    COLORS,
    MARKERS,
    MAX_BARS,
    SEQUENTIAL,
    EmbeddingDisplay,
    FeatureDisplay,
    RankingDisplay,
    SpectrumDisplay,
    feature_stretch,
)

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure().subplots()


def wine():
    return load_wine(return_X_y=True)


def test_spectrum_shows_every_eigenvalue_and_their_sum(ax):
    X, y = wine()
    model = DNE().fit(scale(X), y)
    display = SpectrumDisplay.from_estimator(model, ax=ax)
    tips = [line[-1] for lines in ax.collections for line in lines.get_segments()]
    np.testing.assert_allclose(tips, np.column_stack([np.arange(1, 14), model.eigenvalues_]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["kept", "left out", "cumulative sum"]
    np.testing.assert_allclose(display.cumulative_ax_.lines[0].get_ydata(), np.cumsum(model.eigenvalues_))
    assert ax.get_title() == f"DNE: {model.n_components_} of 13 directions kept"


def test_spectrum_without_rest(ax):
    SpectrumDisplay.from_estimator(LPP().fit(scale(wine()[0])), ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["kept", "cumulative sum"]


class TestEmbedding:
    def test_the_title_is_the_held_out_accuracy_of_what_is_drawn(self, ax):
        X, y = wine()
        estimator = make_pipeline(StandardScaler(), DNE(5))
        train, test = next(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
        display = EmbeddingDisplay.from_estimator(estimator, X, y, ax=ax)
        Z = estimator.fit(X[train], y[train]).transform(X)[:, :2]
        accuracy = KNeighborsClassifier(3).fit(Z[train], y[train]).score(Z[test], y[test])
        assert display.score == accuracy
        assert ax.get_title() == f"DNE in 2-D: 3-NN right in {accuracy:.1%} of 60 held-out rows"
        drawn = np.concatenate([points.get_offsets() for points in ax.collections])
        np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(Z[test][:, 0]))

    def test_random_labels_get_no_good_map(self, ax):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 20)), np.arange(200) % 2
        assert EmbeddingDisplay.from_estimator(DNE(2), X, y, ax=ax).score < 0.65

    def test_the_estimator_is_left_alone(self, ax):
        estimator = DNE(2)
        EmbeddingDisplay.from_estimator(estimator, *wine(), ax=ax)
        assert not hasattr(estimator, "components_")

    def test_one_dimension_is_a_strip_for_each_class(self, ax):
        EmbeddingDisplay.from_estimator(DNE(1), *wine(), ax=ax)
        assert ax.get_ylabel() == "class"

    def test_a_split_of_ones_own(self, ax):
        X, y = wine()
        split = np.arange(0, 178, 2), np.arange(1, 178, 2)
        assert len(EmbeddingDisplay.from_estimator(DNE(2), X, y, split=split, ax=ax).labels) == 89

    def test_data_frames_and_classes_of_three_rows(self, ax):
        pd = pytest.importorskip("pandas")
        X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 4)))
        EmbeddingDisplay.from_estimator(LPP(2).set_output(transform="pandas"), X, np.repeat(range(10), 3), ax=ax)

    def test_labels_are_never_formulas(self, ax):
        X, y = wine()
        EmbeddingDisplay.from_estimator(DNE(2), X, np.array(["$a_{$", "_b", "c"])[y], ax=ax, name="$x_{")
        ax.figure.savefig(io.BytesIO())
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["$a_{$", " _b", "c"]

    def test_many_classes_get_no_legend(self, ax):
        X = np.random.default_rng(0).normal(size=(300, 3))
        EmbeddingDisplay.from_estimator(LPP(2), X, np.arange(300) % 30, ax=ax)
        assert ax.get_legend() is None


class TestNumbers:
    def display(self, ax, n_components=2):
        X, _ = wine()
        estimator = make_pipeline(StandardScaler(), PCA(n_components))
        return EmbeddingDisplay.from_estimator(estimator, X[:, :12], X[:, 12], ax=ax, task="regression", name="$x_{")

    def test_the_title_is_the_held_out_r2_of_what_is_drawn(self, ax):
        display, (X, _) = self.display(ax), wine()
        train, test = next(KFold(3, shuffle=True, random_state=0).split(X))
        Z = make_pipeline(StandardScaler(), PCA(2)).fit(X[train, :12]).transform(X[:, :12])
        expected = KNeighborsRegressor(3).fit(Z[train], X[train, 12]).score(Z[test], X[test, 12])
        assert display.score == pytest.approx(expected)
        assert ax.get_title() == f"$x_{{ in 2-D: 3-NN at R² {expected:.3f} on 60 held-out rows"
        ax.figure.savefig(io.BytesIO())

    def test_an_unknown_task(self, ax):
        with pytest.raises(ValueError, match="task must be one of 'classification', 'regression', got 'ranking'"):
            EmbeddingDisplay.from_estimator(PCA(2), *wine(), ax=ax, task="ranking")

    def test_colours_are_a_scale_with_a_bar_and_no_legend(self, ax):
        display = self.display(ax)
        (points,) = ax.collections
        np.testing.assert_array_equal(points.get_array(), display.labels)
        assert points.get_cmap().name == SEQUENTIAL
        assert [other.get_ylabel() for other in ax.figure.axes] == ["dimension 2", "target"]
        assert ax.get_legend() is None

    def test_every_colour_of_the_scale_is_brighter_than_the_one_before(self):
        red, green, blue = matplotlib.colormaps[SEQUENTIAL](np.linspace(0, 1, 50))[:, :3].T
        assert (np.diff(0.2126 * red + 0.7152 * green + 0.0722 * blue) > 0).all()

    def test_one_dimension_is_drawn_against_the_numbers(self, ax):
        display = self.display(ax, 1)
        np.testing.assert_allclose(ax.collections[0].get_offsets()[:, 1], display.labels)
        assert ax.get_ylabel() == "target"
        assert len(ax.get_yticks()) > 0

    def test_ranking(self, ax):
        X, _ = wine()
        pca = Method("PCA", PCA(2), nested=False)
        comparison = compare(X[:, :12], X[:, 12], task="regression", methods=[pca], n_repeats=1)
        RankingDisplay.from_comparison(comparison, ax=ax)
        assert ax.get_xlabel() == "R² on held-out rows, 3-NN: mean ± std, 5 folds"
        assert ax.get_title() == "R² on held-out rows (dashed: the raw features)"
        assert max(np.abs(points.get_offsets()[:, 0]).max() for points in ax.collections[:1]) < 1


def test_no_two_of_many_classes_look_alike():
    assert len({(COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]) for i in range(56)}) == 56


def test_ranking(ax):
    comparison = compare(*wine(), methods=[Method("DNE", DNE(), nested=False)], n_splits=3, n_repeats=1)
    RankingDisplay.from_comparison(comparison, ax=ax)
    assert {label.get_text().partition(",")[0] for label in ax.get_yticklabels()} == {"DNE", "raw k-NN"}


class TestFeatures:
    @pytest.mark.parametrize("method", [DNE(3), LPP(3), PCA(3)])
    def test_stretch_is_how_far_a_unit_step_moves_a_row(self, method):
        X, y = wine()
        fitted = method.fit(scale(X), y)
        steps = fitted.transform(np.eye(13)) - fitted.transform(np.zeros((1, 13)))
        moved = np.linalg.norm(steps, axis=1)
        np.testing.assert_allclose(feature_stretch(fitted.components_), moved / np.sqrt(np.mean(moved**2)), rtol=1e-10)

    def test_a_rotation_stretches_nothing(self):
        X, y = wine()
        np.testing.assert_allclose(feature_stretch(DNE(13).fit(scale(X), y).components_), 1)

    def test_largest_first_with_names_that_are_no_formulas(self, ax):
        X, y = wine()
        names = [f"$a_{{{number}$" for number in range(13)]
        display = FeatureDisplay.from_estimator(DNE(3).fit(scale(X), y), names=names, ax=ax)
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels[0] == names[display.stretch.argmax()]
        assert labels[-1] == names[display.stretch.argmin()]
        ax.figure.savefig(io.BytesIO())

    def test_of_many_features_the_extremes(self, ax):
        FeatureDisplay(np.linspace(0, 2, 100), [str(number) for number in range(100)], "map").plot(ax=ax)
        assert len(ax.patches) == MAX_BARS
        assert "the extremes of 100" in ax.get_title()


def test_by_default_on_a_new_figure():
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    display = SpectrumDisplay.from_estimator(DNE().fit(*wine()))
    assert display.figure_ is display.ax_.figure
    plt.close(display.figure_)
