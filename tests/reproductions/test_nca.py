"""What the experiments are made of, on small made data."""

import re

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from sklearn.preprocessing import FunctionTransformer

from nearkin.statistics import corrected_resampled_t_test
from reproductions.experiment import mean_std
from reproductions.nca import experiments as nca
from reproductions.nca import video as nca_video


@pytest.fixture
def rng():
    return np.random.default_rng(0)


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
