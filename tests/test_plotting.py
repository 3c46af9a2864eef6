import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from nearkin import DNE, LPP, TDL, NCAClassifier, NCARegressor, plotting
from nearkin.comparison import SCORES as SCORES_OF
from nearkin.comparison import Method, Vote, compare, default_references, protocol
from nearkin.plotting import (
    COLORS,
    GREY,
    MARKERS,
    MAX_BARS,
    SCORES,
    SEQUENTIAL,
    STATUS_COLORS,
    ColumnsDisplay,
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
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "kept",
        "left out",
        "cumulative sum",
    ]
    np.testing.assert_allclose(
        display.cumulative_ax_.lines[0].get_ydata(), np.cumsum(model.eigenvalues_)
    )
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
        accuracy = KNeighborsClassifier(5).fit(Z[train], y[train]).score(Z[test], y[test])
        assert display.score == accuracy
        assert ax.get_title() == f"DNE in 2-D: 5-NN right in {accuracy:.1%} of 60 held-out rows"
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
        EmbeddingDisplay.from_estimator(
            LPP(2).set_output(transform="pandas"), X, np.repeat(range(10), 3), ax=ax
        )

    def test_labels_are_never_formulas(self, ax):
        X, y = wine()
        EmbeddingDisplay.from_estimator(
            DNE(2), X, np.array(["$a_{$", "_b", "c"])[y], ax=ax, name="$x_{"
        )
        ax.figure.savefig(io.BytesIO())
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["$a_{$", " _b", "c"]

    @pytest.mark.parametrize(
        ("score_name", "score", "text"),
        [
            ("accuracy", 0.912, "right in 91.2% of"),
            ("balanced_accuracy", 0.912, "at balanced accuracy 91.2% on"),
            ("auc", 0.912, "at AUC 0.912 on"),
            ("log_loss", 0.912, "at log loss 0.912 on"),
        ],
    )
    def test_the_title_names_vote_and_score(self, ax, score_name, score, text):
        Z, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
        EmbeddingDisplay(Z, y, score, Vote(25, soft=True), "DNE", score_name=score_name).plot(ax=ax)
        title = ax.get_title().replace("\n", " ")
        assert title == f"DNE in 2-D: soft 25-NN {text} 20 held-out rows"

    @pytest.mark.parametrize(("n_across", "n_lines"), [(1, 1), (2, 2)])
    def test_a_title_that_is_too_wide_for_its_picture_has_two_lines(self, n_across, n_lines):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(14, 4), layout="constrained")
        axes = figure.subplots(1, n_across, squeeze=False)[0]
        Z, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
        for ax in axes:
            EmbeddingDisplay(
                Z, y, 1172392.864, Vote(5), "t-NCA of NCA tables", "regression", "mae",
                full_score=638438.858, full_dimension=2,
            ).plot(ax=ax)  # fmt: skip
        title = ax.get_title()
        assert title.endswith("5-NN at mean absolute error 1,172,393 on 20 held-out rows")
        assert ax.texts[0].get_text() == "in all 2 dimensions: 638,439"
        assert len(title.split("\n")) == n_lines
        figure.canvas.draw()
        box = ax.title.get_window_extent()
        assert figure.bbox.width * (1 - 1 / n_across) < box.x0 < box.x1 < figure.bbox.width

    @pytest.mark.slow
    def test_many_classes_get_no_legend(self, ax):
        X = np.random.default_rng(0).normal(size=(300, 3))
        EmbeddingDisplay.from_estimator(LPP(2), X, np.arange(300) % 30, ax=ax)
        assert ax.get_legend() is None

    def test_of_few_training_rows_all_vote(self, ax):
        X, y = wine()
        split = np.array([0, 1, 70, 71]), np.arange(80, 100)
        EmbeddingDisplay.from_estimator(PCA(2), X, y, split=split, ax=ax)
        assert ax.get_title().startswith("PCA in 2-D: 4-NN right")


def shown(Z, labels, **options):
    """Return a display of coordinates whose score does not matter."""
    return EmbeddingDisplay(Z, labels, 0.5, Vote(5), "map", **options)


def clouds(n_classes, n, spread=10.0):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return spread * rng.normal(size=(n_classes, 2))[y] + rng.normal(size=(n, 2)), y


def legend_texts(ax):
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def dots_of(ax):
    """Return the collections that hold points: in the legend are some without."""
    return [points for points in ax.collections if len(points.get_offsets())]


class TestManyClasses:
    def names(self, ax):
        return [text for text in ax.texts if text.get_text()]

    def test_each_is_named_at_its_median_in_its_colour(self, ax):
        Z, y = clouds(20, 400)
        shown(Z, y).plot(ax=ax)
        names = {int(text.get_text()): text for text in self.names(ax)}
        assert sorted(names) == list(range(20))
        for number, text in names.items():
            np.testing.assert_allclose(text.xy, np.median(Z[y == number], axis=0))
        assert names[0].get_color() == pytest.approx(matplotlib.colors.to_rgb(COLORS[0]))
        assert all(text.get_path_effects() for text in names.values())

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("n_classes", [13, 60, 77])
    def test_names_do_not_overlap_and_stay_inside(self, n_classes):
        from matplotlib.figure import Figure

        ax = Figure(figsize=(9, 7), layout="constrained").subplots()
        Z, y = clouds(n_classes, 10 * n_classes, spread=2.0)
        display = shown(Z, np.array([f"$class_{{ {number}" for number in y])).plot(ax=ax)
        display.figure_.canvas.draw()
        names = self.names(display.ax_)
        boxes = [matplotlib.text.Text.get_window_extent(text) for text in names]
        assert len(boxes) == n_classes
        for number, box in enumerate(boxes):
            assert not any(box.shrunk(0.98, 0.98).overlaps(other) for other in boxes[:number])
            ground = display.ax_.bbox.padded(2)
            assert ground.contains(box.x0, box.y0)
            assert ground.contains(box.x1, box.y1)

    @pytest.mark.long
    def test_of_very_many_the_largest_are_named(self, ax):
        Z, y = clouds(150, 600)
        shown(np.vstack([Z, Z[:7]]), np.append(y, np.full(7, 149)), task="classification").plot(
            ax=ax
        )
        names = [text.get_text() for text in self.names(ax)]
        assert len(names) == plotting.MAX_NAMED
        assert "149" in names

    @pytest.mark.long
    def test_where_markers_are_small_classes_that_share_a_colour_are_named(self, ax):
        for n, n_names in ((500, 0), (3000, 10)):
            ax.clear()
            shown(*clouds(10, n)).plot(ax=ax)
            assert len(self.names(ax)) == n_names
            assert len(legend_texts(ax)) == 10 - n_names

    def test_names_of_strips(self, ax):
        Z, y = clouds(20, 400)
        shown(Z[:, :1], y).plot(ax=ax)
        for text in self.names(ax):
            assert text.xy[1] == pytest.approx(int(text.get_text()), abs=0.3)


def test_boxes_are_separated_if_there_is_room():
    rng = np.random.default_rng(0)
    at, sizes = np.full((12, 2), 50.0), rng.uniform(5, 15, size=(12, 2))
    within = np.array([[0, 0], [100, 100]])
    found = plotting.separated(at, sizes, within)
    apart = np.abs(found[:, None] - found) >= (sizes[:, None] + sizes) / 2
    assert (apart.any(axis=2) | np.eye(12, dtype=bool)).all()
    assert ((found - sizes / 2 >= 0) & (found + sizes / 2 <= 100)).all()
    np.testing.assert_array_equal(found[0], at[0])
    far = np.array([[10.0, 10], [90, 90]])
    np.testing.assert_array_equal(plotting.separated(far, sizes[:2], within), far)
    crowded = plotting.separated(far * 0 + 50, np.full((2, 2), 90.0), within)
    np.testing.assert_array_equal(crowded, 50)


class TestManyRows:
    @pytest.mark.long
    def test_dots_shrink_and_an_svg_file_stays_small(self, ax):
        dots = {}
        for n in (300, 50_000):
            ax.clear()
            shown(*clouds(7, n)).plot(ax=ax)
            dots[n] = dots_of(ax)[0]
            assert all(points.get_rasterized() == (n > 300) for points in dots_of(ax))
        assert dots[50_000].get_sizes()[0] < 3 < dots[300].get_sizes()[0]
        assert dots[50_000].get_alpha() < dots[300].get_alpha()
        file = io.BytesIO()
        ax.figure.savefig(file, format="svg")
        assert len(file.getvalue()) < 1_500_000

    def test_no_class_lies_over_all_others(self, ax):
        shown(*clouds(3, 1200, spread=0.0)).plot(ax=ax)
        colors = [tuple(points.get_facecolor()[0][:3]) for points in dots_of(ax)]
        assert len(set(colors)) == 3
        last_of_first = max(at for at, color in enumerate(colors) if color == colors[0])
        assert last_of_first > len(colors) - 4  # in the last layer

    @pytest.mark.slow
    def test_all_rows_are_drawn_once(self, ax):
        Z, y = clouds(9, 5000)
        shown(Z, y).plot(ax=ax)
        drawn = np.concatenate([points.get_offsets() for points in ax.collections])
        np.testing.assert_array_equal(np.sort(drawn[:, 0]), np.sort(Z[:, 0]))


class TestUnlabelledAndWrong:
    @pytest.mark.slow
    def test_rows_without_a_label_are_grey_beneath_the_others(self, ax):
        X, y = wine()
        order = np.random.default_rng(0).permutation(len(X))
        train, test, beside = order[:60], order[60:120], order[120:]
        estimator = make_pipeline(StandardScaler(), TDL(2))
        display = EmbeddingDisplay.from_estimator(
            estimator, X, y, split=(train, test), unlabelled=beside, ax=ax
        )
        np.testing.assert_allclose(display.unlabelled, display.estimator_.transform(X[beside]))
        lowest = min(dots_of(ax), key=lambda points: points.get_zorder())
        assert len(lowest.get_offsets()) == len(beside)
        np.testing.assert_allclose(
            lowest.get_facecolor()[0, :3], matplotlib.colors.to_rgb(GREY), atol=1e-6
        )
        assert legend_texts(ax) == ["0", "1", "2", "no label"]
        assert "60 held-out rows" in ax.get_title()

    @pytest.mark.parametrize("n_components", [1, 2])
    def test_rows_whose_vote_is_wrong_are_ringed(self, ax, n_components):
        X, y = wine()
        display = EmbeddingDisplay.from_estimator(PCA(n_components), X, y, mark_errors=True, ax=ax)
        train, test = next(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
        Z = PCA(n_components).fit(X[train]).transform(X)
        votes = KNeighborsClassifier(5).fit(Z[train], y[train]).predict(Z[test])
        np.testing.assert_array_equal(display.wrong, votes != y[test])
        rings = dots_of(ax)[-1]
        assert len(rings.get_facecolor()) == 0
        np.testing.assert_allclose(rings.get_offsets()[:, 0], Z[test][votes != y[test], 0])
        dots = np.concatenate([points.get_offsets() for points in dots_of(ax)[:-1]])
        assert set(map(tuple, rings.get_offsets())) <= set(map(tuple, dots))
        assert legend_texts(ax)[-1] == "the vote is wrong"

    def test_with_many_classes_only_these_are_listed(self, ax):
        Z, y = clouds(20, 100)
        shown(Z, y, wrong=y == 3, unlabelled=Z[:9] + 1).plot(ax=ax)
        assert legend_texts(ax) == ["no label", "the vote is wrong"]

    def test_numbers_are_not_wrong(self):
        with pytest.raises(ValueError, match="mark_errors=True rings rows whose class"):
            EmbeddingDisplay.from_estimator(PCA(2), *wine(), task="regression", mark_errors=True)


class Shadow(TransformerMixin, BaseEstimator):
    """The first columns of a space that it knows."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def space(self, X):
        return X[:, :6]

    def transform(self, X):
        return self.space(X)[:, :2]


class TestAllDimensions:
    def expected(self, transform, X, y, voter):
        train, test = next(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
        H = transform(X[train], X)
        return voter.fit(H[train], y[train]).score(H[test], y[test])

    def test_of_more_components_the_second_line_has_the_score_in_all(self, ax):
        X, y = load_iris(return_X_y=True)
        display = EmbeddingDisplay.from_estimator(PCA(4), X, y, ax=ax)
        expected = self.expected(
            lambda train, X: PCA(4).fit(train).transform(X), X, y, KNeighborsClassifier(5)
        )
        assert (display.full_score, display.full_dimension) == (expected, 4)
        assert [text.get_text() for text in ax.texts] == [f"in all 4 dimensions: {expected:.1%}"]
        title, below = ax.title.get_window_extent(), ax.texts[0].get_window_extent()
        assert below.y1 <= title.y0 + 2

    @pytest.mark.parametrize(
        "last", [Shadow(), make_pipeline(Shadow()), make_pipeline(PCA(9), Shadow())]
    )
    def test_of_an_estimator_with_a_space_of_its_own(self, ax, last):
        X, y = wine()
        display = EmbeddingDisplay.from_estimator(
            make_pipeline(StandardScaler(), PCA(9), last), X, y, ax=ax
        )
        expected = self.expected(
            lambda train, X: make_pipeline(StandardScaler(), PCA(9)).fit(train).transform(X)[:, :6],
            X,
            y,
            KNeighborsClassifier(5),
        )
        assert (display.full_score, display.full_dimension) == (pytest.approx(expected), 6)

    def test_a_plane_loses_nothing_of_itself(self, ax):
        display = EmbeddingDisplay.from_estimator(PCA(2), *wine(), ax=ax)
        assert display.full_score is None
        assert len(ax.texts) == 0

    def test_without_a_number_of_dimensions_and_of_numbers(self, ax):
        Z, y = clouds(3, 60)
        shown(Z, y * 1.0, task="regression", full_score=0.75).plot(ax=ax)
        assert [text.get_text() for text in ax.texts] == ["in all dimensions: 0.750"]


class TestGround:
    @pytest.mark.slow_after(3)
    @pytest.mark.parametrize("ground", ["black", "#14181e", "white", "#e5e5e5", COLORS[0]])
    @pytest.mark.parametrize("n_classes", [7, 20])
    def test_all_that_is_drawn_stands_out(self, ax, ground, n_classes):
        Z, y = clouds(n_classes, 200)
        ax.set_facecolor(ground)
        shown(Z, y, unlabelled=Z[:9], wrong=y == 1).plot(ax=ax)
        below = np.array(matplotlib.colors.to_rgb(ground))
        for points in dots_of(ax):
            rings = len(points.get_facecolor()) == 0
            colors = points.get_edgecolor() if rings else points.get_facecolor()
            assert all(plotting.contrast(color, below) >= 1.5 for color in colors[:, :3])
        assert all(plotting.contrast(text.get_color(), below) >= 4.5 for text in ax.texts)

    def test_on_a_dark_page_black_is_white(self):
        import matplotlib.pyplot as plt

        Z, y = clouds(7, 70)
        with plt.style.context("dark_background"):
            display = shown(Z, y, unlabelled=Z[:3]).plot()
        colors = {tuple(points.get_facecolor()[0, :3]) for points in dots_of(display.ax_)}
        assert (1, 1, 1) in colors
        assert (0, 0, 0) not in colors
        plt.close(display.figure_)

    def test_what_is_transparent_lies_on_the_page(self, ax):
        ax.set_facecolor("none")
        ax.figure.set_facecolor("black")
        np.testing.assert_array_equal(plotting.Ground.of(ax).ink, 1)
        ax.figure.set_facecolor("none")
        np.testing.assert_array_equal(plotting.Ground.of(ax).ink, 0)
        with matplotlib.rc_context({"text.color": "white"}):
            np.testing.assert_array_equal(plotting.Ground.of(ax).ink, 1)

    def test_a_legend_on_another_ground_than_the_page_has_that_of_the_axes(self, ax):
        Z, y = clouds(7, 70)
        for ground, framed in (("white", False), ("black", True)):
            ax.clear()
            ax.set_facecolor(ground)
            shown(Z, y).plot(ax=ax)
            legend = ax.get_legend()
            assert legend.get_frame_on() == framed
            texts = [text.get_color() for text in legend.get_texts()]
            assert all(plotting.contrast(_rgb(text), _rgb(ground)) > 20 for text in texts)

    def test_contrast_of_black_and_white(self):
        assert plotting.contrast(np.zeros(3), np.ones(3)) == pytest.approx(21)
        assert plotting.contrast(np.ones(3), np.ones(3)) == 1


class TestNewRows:
    def stars(self, ax):
        return [points for points in dots_of(ax) if points.get_zorder() == 3]

    def test_new_rows_are_placed_by_the_estimator(self, ax):
        pd = pytest.importorskip("pandas")
        X, y = wine()
        frame = pd.DataFrame(X).rename(columns=str)
        estimator = make_pipeline(StandardScaler().set_output(transform="pandas"), PCA(5))
        display = EmbeddingDisplay.from_estimator(estimator, frame, y, ax=ax)
        assert display.add(frame[:4]) is display
        train, _ = next(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
        expected = estimator.fit(frame.iloc[train]).transform(frame[:4])[:, :2]
        (stars,) = self.stars(ax)
        np.testing.assert_allclose(stars.get_offsets(), expected)
        assert legend_texts(ax) == ["0", "1", "2", "new"]
        neutral, outline = stars.get_facecolor()[:, :3], stars.get_edgecolor()[:, :3]
        np.testing.assert_array_equal(neutral, np.ones((4, 3)))
        np.testing.assert_array_equal(outline, 0)

    def test_a_star_has_the_colour_of_its_class_and_a_new_class_its_own(self, ax):
        X, y = load_iris(return_X_y=True)
        names = np.array(["a", "b", "c"])[y]
        display = EmbeddingDisplay.from_estimator(PCA(2), X, names, ax=ax)
        display.add(X[:5], np.array(["c", None, "x", "y", "x"], dtype=object)).add(X[:1], ["y"])
        first, second = (star.get_facecolor()[:, :3] for star in self.stars(ax))
        np.testing.assert_allclose(first[0], _rgb(COLORS[2]))
        np.testing.assert_allclose(first[1], 1)
        np.testing.assert_array_equal(first[2], first[4])
        np.testing.assert_array_equal(first[3], second[0])
        assert len({tuple(color) for color in first}) == 4
        assert legend_texts(ax) == ["a", "b", "c", "new", "new: x", "new: y"]

    def test_of_one_dimension_and_drawn_anew(self, ax):
        X, y = wine()
        display = EmbeddingDisplay.from_estimator(PCA(1), X, y, ax=ax)
        display.add(X[:3]).add(X[:2], [2, 7])
        heights = [star.get_offsets()[:, 1] for star in self.stars(ax)]
        np.testing.assert_allclose(heights[0], -1, atol=0.3)
        np.testing.assert_allclose(heights[1], [2, 3], atol=0.3)
        ax.clear()
        assert legend_texts(display.plot(ax=ax).ax_) == ["0", "1", "2"]
        assert legend_texts(display.add(X[:1]).ax_)[-1] == "new"

    @pytest.mark.parametrize("n_components", [1, 2])
    def test_numbers(self, ax, n_components):
        X, _ = wine()
        display = EmbeddingDisplay.from_estimator(
            PCA(n_components), X[:, :12], X[:, 12], task="regression", ax=ax
        )
        scale = ax.collections[0]
        display.add(X[:3, :12], [400, 900, np.nan])
        (star,) = self.stars(ax)
        np.testing.assert_allclose(star.get_facecolor()[:2], scale.to_rgba([400, 900]))
        np.testing.assert_allclose(star.get_facecolor()[2], 1)
        if n_components == 1:
            np.testing.assert_allclose(star.get_offsets()[:2, 1], [400, 900])
            assert star.get_offsets()[2, 1] < X[:, 12].min()
        assert legend_texts(ax) == ["new"]

    def test_refusals_name_the_remedy(self, ax):
        Z, y = clouds(3, 30)
        with pytest.raises(ValueError, match=r"make it with EmbeddingDisplay\.from_estimator"):
            shown(Z, y).plot(ax=ax).add(Z)
        display = EmbeddingDisplay.from_estimator(PCA(2), *wine(), ax=ax)
        with pytest.raises(ValueError, match="y_new has 1 label for 2 rows of X_new"):
            display.add(wine()[0][:2], [1])


def _rgb(color):
    return np.array(matplotlib.colors.to_rgb(color))


class TestNumbers:
    def display(self, ax, n_components=2):
        X, _ = wine()
        estimator = make_pipeline(StandardScaler(), PCA(n_components))
        return EmbeddingDisplay.from_estimator(
            estimator, X[:, :12], X[:, 12], ax=ax, task="regression", name="$x_{"
        )

    def test_the_title_is_the_held_out_r2_of_what_is_drawn(self, ax):
        display, (X, _) = self.display(ax), wine()
        train, test = next(KFold(3, shuffle=True, random_state=0).split(X))
        Z = make_pipeline(StandardScaler(), PCA(2)).fit(X[train, :12]).transform(X[:, :12])
        expected = KNeighborsRegressor(5).fit(Z[train], X[train, 12]).score(Z[test], X[test, 12])
        assert display.score == pytest.approx(expected)
        assert ax.get_title() == f"$x_{{ in 2-D: 5-NN at R² {expected:.3f} on 60 held-out rows"
        ax.figure.savefig(io.BytesIO())

    def test_an_unknown_task(self, ax):
        with pytest.raises(
            ValueError, match="task must be one of 'classification', 'regression', got 'ranking'"
        ):
            EmbeddingDisplay.from_estimator(PCA(2), *wine(), ax=ax, task="ranking")

    def test_colours_are_a_scale_with_a_bar_and_no_legend(self, ax):
        display = self.display(ax)
        (points,) = ax.collections
        np.testing.assert_array_equal(points.get_array(), display.labels)
        assert points.get_cmap().name == SEQUENTIAL
        assert [other.get_ylabel() for other in ax.figure.axes] == ["dimension 2", "target"]
        assert ax.get_legend() is None

    @pytest.mark.parametrize("dimension", [1, 2])
    def test_the_scale_has_the_name_of_the_numbers(self, ax, dimension):
        Z = np.random.default_rng(0).normal(size=(30, dimension))
        options = {"task": "regression", "target": "$mass{\n (g)"}
        EmbeddingDisplay(Z, Z[:, 0], 0.5, Vote(5), "map", **options).plot(ax=ax)
        assert ax.figure.axes[-1].get_ylabel() == "$mass{ (g)"
        assert (ax.get_ylabel() == "$mass{ (g)") == (dimension == 1)
        ax.figure.savefig(io.BytesIO())

    def test_every_colour_of_the_scale_is_brighter_than_the_one_before(self):
        red, green, blue = matplotlib.colormaps[SEQUENTIAL](np.linspace(0, 1, 50))[:, :3].T
        assert (np.diff(0.2126 * red + 0.7152 * green + 0.0722 * blue) > 0).all()

    def test_one_dimension_is_drawn_against_the_numbers(self, ax):
        display = self.display(ax, 1)
        np.testing.assert_allclose(ax.collections[0].get_offsets()[:, 1], display.labels)
        assert ax.get_ylabel() == "target"
        assert len(ax.get_yticks()) > 0


def test_no_two_of_many_classes_look_alike():
    assert len({(COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)]) for i in range(88)}) == 88


def test_names_that_begin_alike_are_shortened_to_different_labels(ax):
    names = [f"Department of agriculture, region {i}: vegetables and fruit" for i in range(12)]
    assert len(set(plotting.labels_apart(names))) == 12
    assert plotting.labels_apart(["red", "reddish"]) == ["red", "reddish"]  # short enough
    y = np.arange(24) % 12
    EmbeddingDisplay(np.eye(24)[:, :2], np.array(names)[y], 0.5, Vote(1), "map").plot(ax=ax)
    assert len({text.get_text() for text in ax.get_legend().get_texts()}) == 12


@pytest.mark.long
def test_names_without_room_become_numbers_with_a_key(ax):
    """Every class is named once, at its rows or in the legend."""
    y = np.repeat(np.arange(60), 5)
    Z = np.random.default_rng(0).normal(size=(60, 2))[y]
    names = np.array([f"a class of number {i:02}" for i in range(60)])
    EmbeddingDisplay(Z, names[y], 0.5, Vote(1), "map").plot(ax=ax)
    written = [text.get_text() for text in ax.texts if text.get_text()]
    key = dict(text.get_text().split(" ", 1) for text in ax.get_legend().get_texts())
    assert key
    assert set(key) <= set(written)
    at_their_rows = [text for text in written if text not in key]
    assert sorted([*at_their_rows, *key.values()]) == sorted(plotting.labels_apart(list(names), 18))
    assert ax.get_legend().handlelength == 0
    ax.clear()
    EmbeddingDisplay(Z, names[y], 0.5, Vote(1), "map", unlabelled=Z[:9]).plot(ax=ax)
    assert ax.get_legend().handlelength > 0  # the mark of rows without a label has room


DNE_METHOD = Method("D$NE_{", DNE(5), nested=False)


class TestRanking:
    def display(self, ax, X=None, y=None, **options):
        X, y = wine() if X is None else (X, y)
        options = {
            "methods": [DNE_METHOD],
            "references": (),
            "n_splits": 3,
            "n_repeats": 1,
            "refit": False,
        } | options
        return RankingDisplay.from_comparison(compare(X[::2], y[::2], **options), ax=ax)

    @pytest.mark.long
    def test_a_line_a_method_with_the_best_above(self, ax):
        comparison = self.display(ax).comparison
        labels = [label.get_text() for label in ax.get_yticklabels()]
        results = [*comparison.results, comparison.constant]
        assert labels == [f"{result.name}, {result.status}" for result in results]
        bottom, top = ax.get_ylim()
        assert bottom > top
        assert ax.get_title("right") == "Accuracy on held-out rows (dashed: raw features)"
        assert ax.get_xlim()[1] < 102  # percent
        ax.figure.savefig(io.BytesIO())

    def points(self, ax):
        """The mean of every drawn row: its mark and where it lies."""
        return [
            (line.get_marker(), line.get_xdata()[0])
            for line in ax.lines
            if line.get_marker() in "Do"
        ]

    def test_the_automatic_choice_has_a_mark_of_its_own(self, ax):
        comparison = self.display(ax).comparison
        marks, means = zip(*self.points(ax), strict=True)
        assert list(marks) == [
            "D" if result.kind == "choice" else "o" for result in comparison.results
        ]
        np.testing.assert_allclose(
            means, [100 * result.score.mean() for result in comparison.results]
        )

    @pytest.mark.long
    def test_the_vote_is_named_where_it_was_given(self, ax):
        bars = "bars: 95% interval of the difference from the raw features"
        self.display(ax)
        assert ax.get_xlabel() == f"accuracy on held-out rows (%)\n{bars}"
        ax.clear()
        self.display(ax, n_neighbors=3)
        assert ax.get_xlabel() == f"accuracy on held-out rows (%), 3-NN\n{bars}"

    def test_references_are_grey_below_a_line_and_far_ones_at_the_edge(self, ax):
        comparison = self.display(ax, references=default_references()[:2], n_neighbors=3).comparison
        far, linear = comparison["majority"], comparison["logistic regression"]
        line = next(
            line
            for line in ax.lines
            if len(line.get_ydata()) == 2 and len(set(line.get_ydata())) == 1
        )
        assert line.get_ydata()[0] == len(comparison.results) - 0.5
        (text,) = ax.texts
        assert text.get_text() == f" ← {100 * far.score.mean():.1f}"
        assert text.get_position() == (ax.get_xlim()[0], len(comparison.results) + 1)
        assert self.points(ax)[-1] == ("o", pytest.approx(100 * linear.score.mean()))

    def test_an_arrow_shows_where_the_edge_cuts_the_bar_of_a_reference(self, ax):
        comparison = self.display(ax, references=default_references()[:2]).comparison
        assert not [line for line in ax.lines if line.get_marker() in "<>"]
        wide = replace(comparison["logistic regression"], interval=(-0.9, 0.1))
        ax.clear()
        RankingDisplay(replace(comparison, references=[wide])).plot(ax=ax)
        (arrow,) = [line for line in ax.lines if line.get_marker() in "<>"]
        assert arrow.get_marker() == "<"
        assert arrow.get_xdata() == [ax.get_xlim()[0]]

    def test_the_mean_at_the_edge_is_written_as_elsewhere(self, ax):
        X, _ = wine()
        pca = Method("PCA", PCA(2), nested=False)
        options = {"task": "regression", "methods": [pca]}
        constant = self.display(ax, X[:, :12], X[:, 12], **options).comparison.constant
        (text,) = ax.texts
        assert text.get_text() == f" ← {constant.score.mean():z.3f}".replace("-", "\u2212")

    @pytest.mark.parametrize("split", [{}, {"n_splits": None, "n_repeats": None}])
    def test_bars_are_the_intervals_of_the_verdicts(self, ax, monkeypatch, split):
        """A bar that lies clear of the dashed line is of a method whose interval does; none passes 100 %."""
        monkeypatch.setattr(protocol, "SPLIT_ROWS", 50)
        comparison = self.display(ax, **split).comparison
        raw = next(result for result in comparison.results if result.kind == "baseline")
        for result, bar in zip(comparison.results, ax.collections, strict=True):
            (((low, _), (high, _)),) = bar.get_segments()
            ends = 100 * (raw.score.mean() + np.array(result.interval))
            assert (low, high) == pytest.approx(np.minimum(ends, 100))

    def test_numbers_and_scores_of_which_less_is_better(self, ax):
        X, _ = wine()
        pca = Method("PCA", PCA(2), nested=False)
        comparison = self.display(
            ax, X[:, :12], X[:, 12], task="regression", score="mae", methods=[pca]
        ).comparison
        assert ax.get_xlabel().startswith("mean absolute error on held-out rows (less is better)")
        best = comparison.results[0]
        assert (
            self.points(ax)[0][1]
            == best.score.mean()
            == min(result.score.mean() for result in comparison.results)
        )

    def test_on_a_dark_background_nothing_is_black(self, ax):
        ax.figure.set_facecolor("black")
        ax.set_facecolor("black")
        self.display(ax)
        colors = [line.get_color() for line in ax.lines] + [
            bar.get_color()[0, :3] for bar in ax.collections
        ]
        assert all(np.any(matplotlib.colors.to_rgb(color)) for color in colors)

    def test_every_score_and_status_can_be_drawn(self):
        assert list(SCORES) == [name for scores in SCORES_OF.values() for name in scores]
        assert set(STATUS_COLORS) == {"better", "worse", "unclear", "baseline", "reference"}


class TestFeatures:
    @pytest.mark.parametrize("method", [DNE(3), LPP(3), PCA(3)])
    def test_stretch_is_how_far_a_unit_step_moves_a_row(self, method):
        X, y = wine()
        fitted = method.fit(scale(X), y)
        steps = fitted.transform(np.eye(13)) - fitted.transform(np.zeros((1, 13)))
        moved = np.linalg.norm(steps, axis=1)
        np.testing.assert_allclose(
            feature_stretch(fitted.components_), moved / np.sqrt(np.mean(moved**2)), rtol=1e-10
        )

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
        FeatureDisplay(np.linspace(0, 2, 100), [str(number) for number in range(100)], "map").plot(
            ax=ax
        )
        assert len(ax.patches) == MAX_BARS
        assert "the extremes of 100" in ax.get_title()


def test_by_default_on_a_new_figure():
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    display = SpectrumDisplay.from_estimator(DNE().fit(*wine()))
    assert display.figure_ is display.ax_.figure
    plt.close(display.figure_)


@pytest.mark.long
def test_columns_display():
    """Bars are the effects; the foremost curves are drawn, along the directions in which their
    points differ most.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    X[::7, 2] = np.nan
    shown = ColumnsDisplay.from_estimator(
        NCARegressor(2).fit(X, np.abs(X[:, 1]) + (X[:, 0] > 0)), n_curves=3
    )
    _, bars, *curves = shown.figure_.axes
    assert [bar.get_width() for bar in bars.patches] == sorted(shown.effects)
    names = [f"x{column}" for column in np.argsort(-shown.effects)]
    # last, what the lines are
    assert [ax.get_title() for ax in curves] == [
        *names[: len(shown.curves)],
        "",
    ]
    assert {ax.get_title() for ax in curves[:2]} == {"x0", "x1"}
    first, second = (line.get_ydata() for line in curves[0].lines[:2])
    values = shown.curves[curves[0].get_title()].values
    spread = np.linalg.svd(values - values.mean(axis=1, keepdims=True), compute_uv=False)
    np.testing.assert_allclose(
        [np.linalg.norm(first), np.linalg.norm(second)], spread[:2], rtol=1e-6
    )


def test_columns_come_before_parts_of_one_column():
    """And columns that were left out have no bar."""
    day = {
        "since (days since 1970)": np.array([0, 2.0]),
        "since (month)": np.array([0, 3.0]),
        "since (day of the week)": np.array([0, 0.5]),
    }
    places = [(0, name, curve) for name, curve in day.items()]
    places += [(2, "age", np.array([0, 1.0])), (3, "registered_at (a part)", np.array([0, 1.0]))]
    curves = {
        name: plotting.Curve(column, np.arange(2.0), curve[None], None)
        for column, name, curve in places
    }
    effects, names = np.array([3, 0, 2, 1.0]), ["since", "left out", "age", "registered_at"]

    def titles(n_curves):
        shown = ColumnsDisplay.of(effects, names, curves, "map", n_curves=n_curves).plot()
        return shown.figure_.axes[1], [ax.get_title() for ax in shown.figure_.axes[2:-1]]

    bars, drawn = titles(3)
    assert drawn == ["since (month)", "age", "registered_at (a part)"]
    assert [label.get_text() for label in bars.get_yticklabels()] == [
        "registered_at",
        "age",
        "since",
    ]
    assert bars.get_title() == "map: columns"
    assert titles(4)[1] == ["since (month)", "since", "age", "registered_at (a part)"]


def test_long_titles_of_panels_keep_what_is_shown():
    name = "registered (day of the week)"
    curve = plotting.Curve(0, np.arange(2.0), np.array([[0, 1.0]]), None)
    shown = ColumnsDisplay.of(np.ones(1), ["registered"], {name: curve}, "map").plot()
    assert shown.figure_.axes[2].get_title() == "registered\n(day of the week)"


def test_columns_that_move_no_rows_look_like_that():
    curve = plotting.Curve(0, np.arange(2.0), np.array([[0, 1e-8]]), None)
    shown = ColumnsDisplay.of(np.array([1e-9]), ["x"], {"x": curve}, "map").plot()
    _, bars, panel, _ = shown.figure_.axes
    shown.figure_.canvas.draw()
    assert bars.get_xlim()[1] == plotting.LEAST_EFFECT
    assert np.ptp(panel.get_ylim()) == pytest.approx(plotting.LEAST_EFFECT)
    for axis in (bars.xaxis, panel.yaxis):
        assert axis.get_offset_text().get_text() == ""


def test_columns_whose_names_begin_alike_and_one_without_a_value():
    X = np.random.default_rng(0).normal(size=(200, 12))
    X[:, 0] = np.nan
    model = NCAClassifier(2, alpha=0.5, n_members=2).fit(X, X[:, 1] + 0.7 * X[:, 5] > 0)
    shown = ColumnsDisplay.from_estimator(model, n_curves=2)
    assert set(shown.curves) == {"x1", "x5"}
    assert len(repr(shown)) < 100


@pytest.mark.parametrize(
    ("edges", "written"),
    [
        ([2001, 2008, 2017, 2024], ["2001", "2008", "2017", "2024"]),
        ([-3, 0.1, 2.123456, 50000], ["-3", "0.1", "2.1", "50000"]),
        ([18300.25, 18364, 18420], ["18300", "18364", "18420"]),
        ([0.0], ["0"]),
        ([1e9, 1.23456e9], ["1e+09", "1.235e+09"]),
    ],
)
def test_ticks_tell_edges_apart(edges, written):
    assert plotting.ticks(np.array(edges, dtype=float)) == written


def touching(axes):
    """Return the texts below the panels that touch or overlap their neighbour, as they are drawn."""
    found = []
    for ax in axes:
        drawn = [
            (label.get_window_extent(), label.get_text())
            for label in ax.get_xticklabels()
            if label.get_text()
        ]
        straight = [
            (box, text) for box, text in drawn if ax.get_xticklabels()[0].get_rotation() == 0
        ]
        for (left, first), (right, second) in pairwise(straight):
            if right.x0 - left.x1 < 5:
                found.append(f"{first}{second}")
    return found


@pytest.mark.long
def test_ticks_do_not_touch():
    """Whatever the numbers, dates and values are, and however many bins a column has."""
    rng = np.random.default_rng(0)
    days = plotting.DATES
    edges = {
        "log triglycerides": [3.26, 3.99, 4.28, 4.43, 4.62, 4.81, 5.01, 5.38, 6.11],
        "four bins": [-1000.5, 3.26, 4.28, 5000.25],
        "small": np.sort(rng.exponential(1e-3, 9)),
        "large": np.sort(rng.exponential(1e6, 6)),
        f"years{days}": [0, 900, 5000, 9000],
        f"weeks{days}": [18000, 18007, 18014, 18021, 18028],
    }
    curves = {
        name: plotting.Curve(j, np.array(some, dtype=float), rng.normal(size=(2, len(some))), None)
        for j, (name, some) in enumerate(edges.items())
    }
    for n in (2, 5, 8):
        level_names = [f"n{level}" for level in range(n)]
        curves[f"{n} levels"] = plotting.Levels(
            len(curves), level_names, rng.normal(size=(2, n)), ordered=False
        )
    shown = ColumnsDisplay.of(np.ones(len(curves)), list(curves), curves, "map", n_curves=9).plot()
    shown.figure_.canvas.draw()
    panels = shown.figure_.axes[2:-1]
    assert len(panels) == len(curves)
    assert touching(panels) == []
    assert all(len(ax.get_xticks()) >= 2 for ax in panels)


def test_a_display_of_columns_says_what_it_takes():
    with pytest.raises(
        TypeError, match=r"got Pipeline: of a pipeline pass the last step, pipeline\[-1\]"
    ):
        ColumnsDisplay.from_estimator(make_pipeline(NCAClassifier()))
    model = NCAClassifier(2, alpha=0.5, n_members=2).fit(*load_iris(return_X_y=True))
    with pytest.raises(ValueError, match="n_curves must be at least 0"):
        ColumnsDisplay.from_estimator(model, n_curves=-1)


def test_levels_of_a_category_are_points():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"plan": ["free", "paid", "team", None] * 15, "age": np.arange(60.0)})
    shown = ColumnsDisplay.from_estimator(NCAClassifier(2).fit(frame, frame.plan == "paid"))
    points = shown.figure_.axes[2]
    assert points.get_title() == "plan"
    names = [label.get_text() for label in points.get_xticklabels()]
    assert sorted(names) == ["(missing)", "free", "paid", "team"]
    assert "paid" in (names[0], names[-1])


def test_dates_are_drawn_as_dates_and_months():
    pd = pytest.importorskip("pandas")
    days = np.arange(0, 1200, 10)
    dates = pd.Timestamp("2021-01-01") + pd.to_timedelta(days, unit="D")
    frame = pd.DataFrame({"since": dates.strftime("%Y-%m-%d")})
    y = np.sin(2 * np.pi * days / 365.25) + days / 1000
    shown = ColumnsDisplay.from_estimator(NCARegressor(2, alpha=0.5, n_members=2).fit(frame, y))
    panels = {
        ax.get_title(): [label.get_text() for label in ax.get_xticklabels()]
        for ax in shown.figure_.axes[2:-1]
    }
    assert panels["since"][0] == "2021-01"
    assert panels["since (month)"] == ["Jan", "Apr", "Jul", "Oct"]


def test_numbers_that_are_no_dates_whatever_their_name():
    curve = plotting.Curve(0, np.array([0.0, 1e300]), np.array([[0.0, 1.0]]), None)
    names = ["x (days since 1970)"]
    (*_, panel, _) = (
        ColumnsDisplay.of(np.ones(1), ["x"], {names[0]: curve}, "map").plot().figure_.axes
    )
    assert panel.get_xticklabels()[-1].get_text() == "1e+300"
