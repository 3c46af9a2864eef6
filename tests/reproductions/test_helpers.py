"""What the experiments are made of, on small made data."""

import re

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import FunctionTransformer

from nearkin.estimators import NMMP, TDL
from nearkin.evaluation import corrected_resampled_t_test
from nearkin.neighbors import nearest
from reproductions import discriminative_projections as dp
from reproductions import dne, dp_table, nca, nca_video, nmmp, tdl, tdl_losses, tdl_mnist
from reproductions.experiment import mean_std
from reproductions.pictures import blank, panels, scatter
from reproductions.splits import Split, codes_of, of_each_class, some_labels


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_of_each_class(rng):
    y = np.repeat(["a", "b", "c"], [10, 20, 31])
    assert np.unique(y[of_each_class(y, 4, rng)], return_counts=True)[1].tolist() == [4, 4, 4]
    assert np.unique(y[of_each_class(y, 0.7, rng)], return_counts=True)[1].tolist() == [7, 14, 22]


def test_some_labels_leaves_no_class_without_one(rng):
    y = codes_of(np.repeat(["a", "b", "c"], [50, 48, 2]))
    for _ in range(5):
        few = some_labels(y, 0.1, rng)
        known = few >= 0
        assert known.sum() == 10
        assert set(few[known]) == {0, 1, 2}
        np.testing.assert_array_equal(few[known], y[known])


def test_split_parts_all_rows(rng):
    X = np.arange(10.0)[:, None]
    split = Split.of(X, np.arange(10), rng.permutation(10)[:4])
    assert sorted([*split.train[:, 0], *split.test[:, 0]]) == list(range(10))
    np.testing.assert_array_equal(split.train[:, 0], split.y_train)
    np.testing.assert_array_equal(split.mapped(lambda X: 2 * X).test[:, 0], 2 * split.y_test)


def test_leave_one_out_does_not_ask_the_row_itself():
    split = Split(
        np.array([[0.0], [1], [10], [12]]), np.array([0, 1, 2, 2]), np.array([[0.1]]), np.array([0])
    )
    assert split.leave_one_out(1) == 50
    assert split.accuracy(1) == 100


class TestNMMP:
    def test_bisection_finds_the_optimum_within_its_bracket(self, rng):
        X, y = rng.normal(size=(60, 5)), np.repeat([0, 1, 2], 20)
        A, B = nmmp.scatters(Split(X, y, X, y))
        optimum = NMMP(2, shrinkage=None).fit(X, y).objective_
        low, high = nmmp.bracket(A, B, 2)
        assert low < optimum < high
        found, n_decompositions = nmmp.bisection(A, B, 2, 1e-6)
        assert abs(found - optimum) <= 0.5e-6
        assert n_decompositions == 2 + np.ceil(np.log2((high - low) / 1e-6))


class TestDNE:
    def test_many_rows_make_all_eigenvalues_negative_but_not_of_five_classes_in_one_place(self):
        counts = [
            dne.n_negative(X, y, 1) for seed in (0, 1) for X, y in dne.cases(seed, 1000).values()
        ]
        assert counts == [4, 2, 0, 4, 2, 0]


class TestNCA:
    def test_prices_are_cut_by_the_training_rows(self, rng):
        price = np.exp(rng.normal(size=300))
        split = nca.by_price(price[:, None], price, rng)
        assert np.bincount(split.y_train).tolist() == [70, 70, 70]
        cuts = np.quantile(split.train, [1 / 3, 2 / 3])
        np.testing.assert_array_equal(split.y_test, np.digitize(split.test[:, 0], cuts))

    def test_small_digits_are_means_of_four_pixels(self, rng):
        y = np.repeat([3, 8], 750)
        X = np.broadcast_to(y[:, None] + np.kron(np.eye(8), np.ones((2, 2))).ravel(), (1500, 256))
        split = nca.small_digits(X, y, rng)
        assert split.train.shape == (400, 64)
        assert split.test.shape == (1000, 64)
        np.testing.assert_allclose(
            split.test - split.y_test[:, None], np.broadcast_to(np.eye(8).ravel(), (1000, 64))
        )

    def test_rings_are_seen_from_one_side_only(self, rng):
        split = nca.rings(rng)
        assert len(split.train) == 350
        assert len(split.test) == 150
        maps = nca.plane(5)
        assert nca.accuracies(split, maps["PCA"])["1-NN"] < 60
        assert nca.accuracies(split, maps["NCA"])["1-NN"] > 95

    def test_accuracies_of_every_vote(self, rng):
        split = nca.seventy_thirty(rng.normal(size=(90, 2)), np.repeat([0, 1, 2], 30), rng)
        votes = nca.accuracies(split, FunctionTransformer(), stochastic=True)
        assert votes["1-NN"] == split.accuracy(1)
        assert votes["training"] == split.leave_one_out(1)
        assert set(votes) == {"training", "1-NN", "3-NN", "stochastic"}

    def test_lda_has_one_dimension_for_two_classes(self, rng):
        split = nca.seventy_thirty(rng.normal(size=(60, 3)), np.repeat([0, 1], 30), rng)
        lda = nca.plane(2)["LDA"].fit(split.train, split.y_train)
        assert lda.transform(split.test).shape == (18, 1)

    def test_frames_are_paired_with_the_next_of_the_same_person(self):
        frames = nca_video.Frames.of(np.zeros((6, 1)), np.array([0, 0, 0, 1, 1, 1]))
        assert frames.pairs().tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]]
        assert frames.place.tolist() == [0, 50, 100, 0, 50, 100]
        assert frames.some(np.array([1, 2, 5])).pairs().tolist() == [[0, 1]]

    def test_claim_corrects_for_shared_rows_and_for_the_number_of_sets(self, rng):
        noise = rng.normal(size=20)

        def result(gain, n_test):
            rows = {"training": 100, "test": n_test}
            return [
                {"rows": rows, "A": {"1-NN": 80 + a}, "B": {"1-NN": 80}, "C": {"1-NN": 0}}
                for a in gain + noise
            ]

        few = {name: result(gain, 30) for name, gain in (("won", 9), ("lost", -9), ("open", 1))}
        text = nca._claim(few, "A", ("B", "C"))
        verdicts = re.findall("(ahead|not told apart|behind): ([a-z]+) ", text)
        assert verdicts == [("ahead", "won"), ("not told apart", "open"), ("behind", "lost")]
        d = noise - 9
        p = 3 * corrected_resampled_t_test(d, 100, 30, 100 / 30)  # the smallest of three
        assert f"lost ({mean_std(d)} to B, p {p:.2g})" in text
        assert ttest_1samp(2.5 + noise, 0).pvalue < 1e-6
        assert "not told apart: near" in nca._claim({"near": result(2.5, 500)}, "A", ("B", "C"))


class TestDiscriminativeProjections:
    def test_some_of_each(self):
        y = np.repeat([1, 2], [40, 60])
        few = dp.some_of_each(y, 0.5)
        assert np.unique(few, return_counts=True)[1].tolist() == [50, 20, 30]
        np.testing.assert_array_equal(few[few > 0], y[few > 0])

    def test_closest_labels(self):
        G = np.array([[0.0, 0], [1, 0], [0, 10], [10, 10]])
        assert dp.closest_labels(G, 1).startswith("0-1 0.1")

    def test_table_1_counts_what_guessing_beats(self):
        scores = {name: [50.0, 60.0] for name in dp_table.TABLE_1} | {
            "largest class": [66.0, 66.0],
            "original": [99.0, 99.0],
        }
        text = dp_table._beyond_reach("mushroom", scores, 1)
        assert "the largest class alone has 66.0 %, more than 4 of the paper's 6 figures" in text
        assert "99.0 %, where the paper has 54.67" in text
        assert "ours are between 55.0 and 99.0" in text

    def test_ranked_by_grades(self):
        # nothing to order in query 2
        y, query = (
            np.array([2, 1, 0, 0, 1, 1]),
            np.array([0, 0, 0, 1, 1, 2]),
        )
        # all right in query 0, all wrong in query 1
        assert dp_table.ranked(-np.arange(6.0), y, query)[1] == 50
        assert dp_table.ranked(y, y, query) == (100, 100)
        assert dp_table.ranked(np.zeros(6), y, query)[1] == 50

    def test_kept_neighbours_of_the_same_rows(self, rng):
        X = rng.normal(size=(40, 3))
        shares = dp._kept(X, X, np.arange(40) < 10)
        assert shares.n_used == 10
        assert shares.used.min() == shares.unused.min() == 1


class TestTDL:
    def test_accuracy_is_that_of_rows_without_label(self):
        Z = np.array([[0.0], [10], [1], [9], [2]])
        assert tdl.accuracy(
            Z, np.array([0, 1, 0, 1, 1]), np.array([0, 1, -1, -1, -1]), 1
        ) == pytest.approx(200 / 3)

    def test_moons_have_ten_labels_each(self, rng):
        X, y, few = tdl.moons(rng)
        assert X.shape == (200, 2)
        assert np.unique(few, return_counts=True)[1].tolist() == [180, 10, 10]
        np.testing.assert_array_equal(few[few >= 0], y[few >= 0])

    def test_nearest_kernel_mean_by_its_definition(self, rng, monkeypatch):
        """||phi(x) - m_c||^2 = k(x, x) - 2 mean_j k(x, x_j) + mean_ij k(x_i, x_j)."""
        monkeypatch.setattr(tdl, "GAMMAS", [0.7])
        X = np.vstack([rng.normal(size=(40, 2)), rng.normal(0.8, 2, size=(40, 2))])
        y = np.repeat([0, 1], 40)
        few = some_labels(y, 0.3, rng)
        K = rbf_kernel(X, gamma=0.7)
        rows = [few == label for label in (0, 1)]
        squares = np.array(
            [1 - 2 * K[:, own].mean(axis=1) + K[np.ix_(own, own)].mean() for own in rows]
        )
        right = np.argmin(squares, axis=0) == y
        assert tdl.nearest_kernel_mean(X, y, few) == pytest.approx(100 * right[few < 0].mean())

    def test_support_vectors_part_what_can_be_parted(self, rng):
        y = np.repeat([0, 1], 40)
        X = rng.normal(size=(80, 2)) + 8 * y[:, None]
        assert tdl.support_vectors(X, y, some_labels(y, 0.3, rng)) == 100

    def test_majorized_losses(self, rng):
        """The clipped one is the library's; a linear one the paper's."""
        X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
        few = some_labels(y, 0.5, rng)
        for loss, slope in (("clipped", tdl_losses.SLOPES["clipped"]), ("squared", np.ones_like)):
            ours = TDL(3, reg=1.0, loss=loss).fit(X, few)
            theirs = tdl_losses.majorized(X, few, 3, slope)
            np.testing.assert_allclose(theirs.eigenvalues_, ours.eigenvalues_)

    def test_wrong_labels_are_those_of_other_classes(self, rng):
        few = some_labels(np.arange(200) % 3, 0.5, rng)
        given = tdl_losses.with_wrong_labels(few, 0.2, rng)
        np.testing.assert_array_equal(given >= 0, few >= 0)
        assert np.sum(given != few) == 20
        assert given.max() == 2

    def test_graphs_are_symmetric_and_say_who_lists_whom(self, rng):
        G = nearest(rng.normal(size=(30, 2)), 4)
        listed = G.toarray() > 0
        graphs = {name: graph(G).toarray() for name, graph in tdl_mnist.GRAPHS.items()}
        for W in graphs.values():
            np.testing.assert_array_equal(W, W.T)
            np.testing.assert_array_equal(W > 0, listed | listed.T)
        np.testing.assert_array_equal(graphs["mean"], (listed.astype(float) + listed.T) / 2)
        assert set(np.unique(graphs["union"])) == {0, 1}

    def test_moved_images(self):
        image = np.zeros((1, 28, 28))
        image[0, 13, 20] = 1
        assert tdl_mnist.moved(image.reshape(1, -1)).argmax() == 14 * 28 + 21

    def test_first_neighbours(self, rng):
        X = rng.normal(size=(30, 2))
        np.testing.assert_allclose(
            tdl_mnist._first(nearest(X, 10), 3).toarray(), nearest(X, 3).toarray()
        )

    def test_table_1_has_all_that_the_paper_prints(self):
        assert {problem.name for problem in tdl.TABLE_1} == {
            "breast cancer",
            "ionosphere",
            "sonar",
            "wine",
        }
        for problem in tdl.TABLE_1:
            assert tuple(problem.printed) == tdl.PRINTED_ROWS
        assert {tdl.WHAT[row] for row in tdl.ROWS} == set(tdl.PRINTED_ROWS)


class TestPictures:
    def test_panels_name_their_planes_and_classes(self, rng):
        pytest.importorskip("matplotlib")
        y = np.repeat(["a", "b"], 20)
        planes = {f"plane {number}": rng.normal(size=(40, 2)) for number in range(5)}
        figure = panels(planes, y, labelled=np.arange(40) < 3)
        drawn = [ax for ax in figure.axes if ax.axison]
        assert [ax.get_title() for ax in drawn] == list(planes)
        assert len(figure.axes) == 6  # two rows of three, the last place empty
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "labelled"]

    def test_many_rows_are_drawn_as_small_dots_that_do_not_vanish(self, rng):
        pytest.importorskip("matplotlib")
        for n, size in ((30, 16), (20_000, 3)):
            ax = blank(2, 2).subplots()
            scatter(ax, rng.normal(size=(n, 2)), np.arange(n) % 10)
            assert len(ax.collections) == 10
            assert all(dots.get_sizes() == [size] for dots in ax.collections)
            assert len({dots.get_facecolor().tobytes() for dots in ax.collections}) == 10
