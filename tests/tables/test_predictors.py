"""Nearest neighbours for tables."""

import json
import pickle
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_array
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from nearkin import NCAClassifier, NCARegressor
from nearkin.estimators.descent_embedding import directions
from nearkin.objectives.kernel_regression import log_loss, squared_error
from nearkin.tables import TableEncoder, cells, features_of, members, predictors, votes
from nearkin.tables.members import LabelledRows, member_path, merged, mixed
from nearkin.tables.votes import (
    Expert,
    HeldOut,
    LocalLines,
    Mixture,
    SoftVote,
    experts,
    mixture_shares,
)

from .test_votes import predicted_by


def mixed_table(n=200):
    """The class depends on the size where the colour is red, on nothing else."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=n), rng.choice(["red", "blue"], n)
    frame = pd.DataFrame({"noise": rng.normal(size=n), "colour": colour, "size": size})
    frame.loc[::17, "noise"] = np.nan
    return frame, np.where((colour == "red") & (np.abs(size) > 0.6), "far", "near")


def test_votes_for_many_classes_are_those_for_few(monkeypatch):
    rng = np.random.default_rng(0)
    Q, Z, Y = rng.normal(size=(5, 2)), rng.normal(size=(40, 2)), np.eye(7)[np.arange(40) % 7]
    expected = predicted_by(SoftVote(0.4), Q, Z, Y)
    monkeypatch.setattr(votes, "MANY_CLASSES", 6)
    np.testing.assert_allclose(predicted_by(SoftVote(0.4), Q, Z, Y), expected)


@pytest.mark.parametrize(
    ("n_columns", "is_wide"), [(3, False), pytest.param(200, True, marks=pytest.mark.long)]
)
def test_the_penalties_of_the_other_encodings(n_columns, is_wide, monkeypatch):
    """Bins of many columns need the largest one; straight lines through these need less."""
    rng = np.random.default_rng(1)
    y = rng.integers(4, size=500)
    X = rng.normal(size=(500, n_columns))
    X[:, :8] += 1.3 * rng.normal(size=(4, min(8, n_columns)))[y]
    tried = []

    def path(rows, folds, m, alphas, *rest):
        tried.append(list(alphas))
        return member_path(rows, folds, m, alphas, *rest)

    monkeypatch.setattr(predictors, "member_path", path)
    model = NCAClassifier(random_state=0).fit(X, y % 2)
    first = max(model.alpha_scores_, key=model.alpha_scores_.get)
    assert (first == max(members.ALPHAS)) == is_wide
    expected = [a for a in members.ALPHAS if is_wide or first <= a <= predictors.BEFORE * first]
    assert tried == [list(members.ALPHAS), *[expected] * (len(tried) - 1)]


class TestTransform:
    frame, y = mixed_table()

    @pytest.mark.long
    def test_neighbours_are_those_in_the_learned_space(self):
        model = NCAClassifier().fit(self.frame, self.y)
        Z = model.transform(self.frame)
        assert model.get_feature_names_out()[0] == "ncaclassifier0"
        distances, rows = model.kneighbors(self.frame[:5], 3)
        np.testing.assert_allclose(
            distances[:, 2], np.linalg.norm(Z[:5] - Z[rows[:, 2]], axis=1), atol=1e-6
        )
        np.testing.assert_array_equal(
            model.kneighbors(self.frame[:5], 3, return_distance=False), rows
        )

    def test_coordinates_are_principal_axes(self):
        """In the space of each encoding."""
        model = NCAClassifier().fit(self.frame, self.y)
        Z = model.transform(self.frame)
        for start, end in {expert.axes for expert in model.vote_.experts}:
            covariance = np.cov(Z[:, start:end], rowvar=False)
            np.testing.assert_allclose(
                covariance, np.diag(np.diag(covariance)), atol=1e-4 * covariance.max()
            )
            assert (np.diff(np.diag(covariance)) <= 0).all()

    def test_one_coordinate_stays_where_no_column_matters(self):
        model = NCAClassifier(alpha=1e6, n_bins=8).fit(self.frame, self.y)
        assert model.transform(self.frame).shape == (len(self.frame), 1)
        frequent = np.unique(self.y, return_counts=True)[1] / len(self.y)
        np.testing.assert_allclose(
            model.predict_proba(self.frame), np.tile(frequent, (len(self.y), 1)), atol=0.01
        )

    @pytest.mark.long
    def test_encoded_rows(self):
        """Rows that an encoder has encoded, and what their features are, are learned from as the
        frame.
        """
        encoder = TableEncoder(missing="keep")
        X = encoder.fit_transform(self.frame)
        model, expected = NCAClassifier(), NCAClassifier().fit(self.frame, self.y)
        model.fit_encoded(X, self.y, features_of(encoder))
        np.testing.assert_allclose(
            model.predict_proba(X), expected.predict_proba(self.frame), atol=1e-6
        )
        np.testing.assert_allclose(model.feature_effects_, expected.feature_effects_, atol=1e-6)
        with pytest.raises(
            ValueError, match=rf"must describe the {X.shape[1]} columns of X, got 3"
        ):
            model.fit_encoded(X, self.y, features_of(encoder)[:3])

    @pytest.mark.slow
    def test_more_columns_than_rows(self):
        X = np.random.default_rng(0).normal(size=(40, 150))
        found, expected = (
            directions("pca", X, 3),
            PCA(3, svd_solver="covariance_eigh").fit(X).components_,
        )
        np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)
        assert (
            NCAClassifier(4, alpha=0.055, n_members=2).fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0)
            > 0.7
        )

    def test_what_is_missing_may_be_all_that_varies(self):
        X = np.where(np.arange(40) % 2, 1.0, np.nan)[:, None]
        assert NCAClassifier().fit(X, np.arange(40) % 2).score(X, np.arange(40) % 2) == 1
        with pytest.raises(ValueError, match="does not vary"):
            NCAClassifier().fit(np.ones((40, 1)), np.arange(40) % 2)


class TestVote:
    @pytest.mark.parametrize("distance", ["squared", "plain"])
    def test_definition(self, distance):
        rng = np.random.default_rng(0)
        Q, Z, Y = (
            rng.normal(size=(5, 3)) + 100,
            rng.normal(size=(20, 3)) + 100,
            rng.normal(size=(20, 2)),
        )
        squares = np.sum((Q[:, None] - Z) ** 2, axis=2)
        weights = (
            np.exp(-2 * np.sqrt(squares / 0.3)) if distance == "plain" else np.exp(-squares / 0.3)
        )
        expected = weights @ Y / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(
            predicted_by(SoftVote(0.3, distance), Q, Z, Y), expected, rtol=1e-6
        )

    @pytest.mark.parametrize("distance", ["squared", "plain"])
    def test_by_tiles(self, distance, monkeypatch):
        """The nearest rows come last, after others that are too far to have a weight."""
        rng = np.random.default_rng(0)
        Z = np.sort(rng.normal(size=(60, 1)), axis=0)[::-1] * 50
        Q, Y, weights = Z[-7:] + 0.1, rng.normal(size=(60, 2)), rng.random(60) + 1e-9
        whole = predicted_by(SoftVote(0.3, distance), Q, Z, Y, weights)
        monkeypatch.setattr(votes, "TILE_COLUMNS", 7)
        monkeypatch.setattr(votes, "TILE_ROWS", 2)
        np.testing.assert_allclose(
            predicted_by(SoftVote(0.3, distance), Q, Z, Y, weights), whole, rtol=1e-6
        )
        p = weights * np.exp(
            -2 * np.abs(Q - Z.T) / 0.3**0.5 if distance == "plain" else -((Q - Z.T) ** 2) / 0.3
        )
        np.testing.assert_allclose(whole, p @ Y / p.sum(axis=1, keepdims=True), rtol=1e-6)


class TestLocalLines:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(100, 3)) + 50
    Q = rng.normal(size=(7, 3)) / 2 + 50

    def test_a_line_is_found(self):
        Y = self.Z @ [[1.0], [-2.0], [0.5]]
        found = predicted_by(LocalLines(1.0, 1e-9), self.Q, self.Z, Y)
        np.testing.assert_allclose(found, self.Q @ [[1.0], [-2.0], [0.5]], rtol=1e-6)

    def test_with_a_large_ridge_it_is_the_vote(self):
        Y = self.Z[:, :1] ** 2
        expected = predicted_by(SoftVote(0.7), self.Q, self.Z, Y)
        np.testing.assert_allclose(
            predicted_by(LocalLines(0.7, 1e9), self.Q, self.Z, Y), expected, rtol=1e-6
        )

    def test_weights_of_rows_are_those_of_copies(self):
        Y, twice = self.Z[:, :1] ** 2, np.repeat(np.arange(100), np.arange(100) % 2 + 1)
        vote = LocalLines(5.0, 1e9)  # as wide as the 150 nearest, and flat
        found = predicted_by(vote, self.Q, self.Z, Y, np.arange(100) % 2 + 1.0)
        np.testing.assert_allclose(
            found, predicted_by(vote, self.Q, self.Z[twice], Y[twice]), rtol=1e-6
        )

    def test_units_of_the_distance(self):
        Y = self.Z[:, :1] ** 2
        lines = LocalLines(0.5, 0.1)
        np.testing.assert_allclose(
            predicted_by(lines.rescaled(0.3), self.Q / 0.3**0.5, self.Z / 0.3**0.5, Y),
            predicted_by(lines, self.Q, self.Z, Y),
        )

    @pytest.mark.parametrize("straight", [False, True])
    def test_they_are_mixed_in_where_they_help(self, straight):
        Z = self.Z if straight else 10.0 * self.rng.integers(3, size=(100, 1))  # else three places
        y = Z[:, :1] if straight else (Z == 10.0) * 1.0
        held_out = HeldOut([(Z[:50], Z[50:], y[50:], None)], y[:50], squared_error)
        found = experts(held_out, "auto", 1.0)
        one = SimpleNamespace(experts=found, held_out=held_out, temperature=1.0)
        (shares,) = mixed([one]).shares
        of_lines = sum(
            share
            for one, share in zip(found, shares, strict=True)
            if isinstance(one.predictor, LocalLines)
        )
        assert bool(of_lines > 0.5) is straight


class TestMixture:
    rng = np.random.default_rng(0)
    Z, Q, Y = rng.normal(size=(40, 5)), rng.normal(size=(6, 5)), rng.normal(size=(40, 2))
    votes = SoftVote(0.5), SoftVote(2.0, "plain")

    def test_definition(self):
        """Each expert looks at its own axes; the mixture is their mean by share."""
        mixture = Mixture((Expert(self.votes[0], (0, 2), 0.3), Expert(self.votes[1], (2, 5), 0.7)))
        expected = 0.3 * predicted_by(self.votes[0], self.Q[:, :2], self.Z[:, :2], self.Y)
        expected += 0.7 * predicted_by(self.votes[1], self.Q[:, 2:], self.Z[:, 2:], self.Y)
        np.testing.assert_allclose(mixture.predict(self.Q, self.Z, self.Y), expected)
        assert mixture.largest == self.votes[1]
        state = json.loads(json.dumps(asdict(mixture)))
        assert Mixture.from_dict(state) == mixture

    @pytest.mark.parametrize("loss", [log_loss, squared_error])
    def test_shares_have_a_lower_loss_than_any_expert(self, loss):
        Y = np.eye(2)[self.rng.integers(2, size=400)]
        predicted = np.array([np.where(self.rng.random((400, 1)) < 0.7, Y, 0.5) for _ in range(3)])
        held_out = HeldOut([], Y, loss)
        shares = mixture_shares(predicted, held_out)
        assert shares.sum() == pytest.approx(1)
        assert (shares > 0.2).all()
        mean = held_out.losses(np.tensordot(shares, predicted, axes=1)).mean()
        assert mean < min(held_out.losses(one).mean() for one in predicted)

    @pytest.mark.parametrize("loss", [log_loss, squared_error])
    def test_an_expert_that_only_guesses_has_no_share(self, loss):
        Y = np.eye(2)[self.rng.integers(2, size=400)]
        good, guess = 0.8 * Y + 0.1, np.full((400, 2), 0.5)
        np.testing.assert_array_equal(
            mixture_shares(np.array([good, guess]), HeldOut([], Y, loss)) > 0, [True, False]
        )

    @pytest.mark.parametrize("loss", [log_loss, squared_error])
    def test_many_equal_experts_share(self, loss):
        Y = np.eye(2)[self.rng.integers(2, size=60)]
        for predicted in (Y, 0.8 * Y + 0.1):
            shares = mixture_shares(np.array([predicted] * 40), HeldOut([], Y, loss))
            assert shares.sum() == pytest.approx(1)

    @pytest.mark.parametrize("loss", [log_loss, squared_error])
    def test_weights_are_those_of_copies(self, loss):
        Y = np.eye(2)[self.rng.integers(2, size=60)]
        predicted = np.clip(Y + self.rng.normal(size=(3, 60, 2)) / 3, 0.05, 0.95)
        twice = np.repeat(np.arange(60), np.arange(60) % 2 + 1)
        weighted = HeldOut([], Y, loss, np.arange(60) % 2 + 1.0)
        np.testing.assert_allclose(
            mixture_shares(predicted, weighted),
            mixture_shares(predicted[:, twice], HeldOut([], Y[twice], loss)),
            atol=1e-6,
        )


class TestMemberPath:
    def test_the_merged_metric_is_the_mean(self):
        maps = np.random.default_rng(0).normal(size=(3, 2, 5))
        A = merged(maps)
        np.testing.assert_allclose(A.T @ A, np.mean([B.T @ B for B in maps], axis=0), atol=1e-6)

    def test_maps_of_zeros_are_merged_into_one(self):
        assert merged(np.zeros((3, 2, 5))).shape[1] == 5

    def test_the_lowest_held_out_loss_is_taken(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(90, 3)).astype(np.float32)
        Y = np.sin(2 * X[:, :1])
        folds = [(np.setdiff1d(np.arange(90), test), test) for test in np.arange(90).reshape(3, 30)]
        path = member_path(
            LabelledRows(X, Y, np.arange(3), squared_error), folds, 2, (0.5, 0.05, 0.005), "auto"
        )
        assert path.scores[path.alpha] == max(path.scores.values()) > -0.5
        assert np.linalg.norm(path.components[:, 0]) > 3 * np.linalg.norm(path.components[:, 1:])


class TestArrays:
    """What a saved model keeps of a predictor makes one that predicts the same."""

    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("regression", [False, True])
    def test_round_trip(self, sparse, regression):
        frame, y = mixed_table(120)
        encoder = TableEncoder().fit(frame)
        X, features = encoder.transform(frame), features_of(encoder)
        X = csr_array(X) if sparse else X
        y = frame["size"].to_numpy() if regression else y
        predictor = NCARegressor(alpha=0.5) if regression else NCAClassifier(alpha=0.5)
        predictor.fit_encoded(X, y, features)
        arrays, states = predictor.to_arrays()
        Z = predictor.transform(X)
        answers = y if regression else np.searchsorted(predictor.classes_, y)
        again = type(predictor).from_arrays(
            arrays | {"voters": Z, "answers": answers},
            json.loads(json.dumps(states)),
            features,
            None if regression else predictor.classes_.tolist(),
        )
        expected = predictor.predict(X) if regression else predictor.predict_proba(X)
        np.testing.assert_allclose(again.vote(Z), expected, rtol=1e-5)
        if sparse:  # an affine map of the encoded rows
            mapped = X @ arrays["components"].T - arrays["offset"]
            np.testing.assert_allclose(mapped, Z, rtol=1e-4, atol=1e-4)
        else:
            np.testing.assert_array_equal(again.transform(X), Z)
            assert again.curves().keys() == predictor.curves().keys()

    def test_class_weights(self):
        X, y = load_iris(return_X_y=True)
        given = {0: 1.0, 1: 2.0, 2: 4.0}
        arrays, _ = NCAClassifier(alpha=1.5, class_weight=given).fit(X, y).to_arrays()
        assert arrays["class_weights"].tolist() == [1, 2, 4]


class TestClassifier:
    def test_a_mixed_table(self):
        frame, y = mixed_table()
        model = NCAClassifier().fit(frame[::2], y[::2])
        assert model.score(frame[1::2], y[1::2]) > 0.85
        assert model.classes_.tolist() == ["far", "near"]
        assert model.feature_names_in_.tolist() == ["noise", "colour", "size"]
        assert model.feature_effects_[0] < model.feature_effects_[1:].min() / 2
        np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))

    def test_the_vote_is_that_of_the_distances(self):
        X, y = load_iris(return_X_y=True)
        model = NCAClassifier(alpha=1.5).fit(X[::2], y[::2])
        Z, Q = model.transform(X[::2]), model.transform(X[1:9:2])
        expected = np.zeros((4, 3))
        for expert in model.vote_.experts:
            own = slice(*expert.axes)
            d = np.linalg.norm(Q[:, None, own] - Z[None, :, own], axis=2)
            d /= expert.predictor.temperature**0.5
            weights = np.exp(-2 * d if expert.predictor.distance == "plain" else -(d**2))
            votes = weights @ np.eye(3)[y[::2]]
            expected += expert.share * votes / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(model.predict_proba(X[1:9:2]), expected, rtol=1e-6)

    @pytest.mark.long
    def test_encodings_are_mixed(self):
        frame, y = mixed_table()
        mixed, one = NCAClassifier().fit(frame, y), NCAClassifier(n_bins=5).fit(frame, y)
        assert [encoder.n_bins for encoder in one.encoder_.encoders] == [5]
        assert len({expert.axes for expert in mixed.vote_.experts}) > 1
        assert one.encoding_shares_ == {"5 bins": pytest.approx(1)}
        assert set(mixed.encoding_shares_) <= {"8 bins", "straight lines", "32 bins"}
        shares = list(mixed.encoding_shares_.values())
        assert shares == sorted(shares, reverse=True)
        assert sum(expert.share for expert in mixed.vote_.experts) == pytest.approx(1)
        # curves are those of all encodings together: how a row moves with a number
        moved = frame.assign(size=np.minimum(frame["size"] + 0.5, frame["size"].max()))
        size = mixed.curves()["size"]
        places = [
            np.array([np.interp(some["size"], size.edges, row) for row in size.values]).T
            for some in (frame, moved)
        ]
        np.testing.assert_allclose(
            mixed.transform(moved) - mixed.transform(frame), places[1] - places[0], atol=1e-5
        )

    def test_effects_are_what_moves_the_rows(self):
        X, y = load_iris(return_X_y=True)
        model = NCAClassifier(alpha=1.5).fit(X, y)
        moved = X.copy()
        moved[:, 3] = np.random.default_rng(0).permutation(X[:, 3])
        # twice the variance, if the order is random
        shift = model.transform(moved) - model.transform(X)
        np.testing.assert_allclose(
            (np.sum(shift**2) / len(X) / 2) ** 0.5, model.feature_effects_[3], rtol=0.1
        )

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n_components": 0}, "n_components must be"),
            ({"n_members": 1}, "n_members must be at least 2"),
            *(
                ({"alpha": alpha}, 'alpha must be "auto" or a number larger than 0')
                for alpha in ("cv", 0.0, None)
            ),
            ({"random_state": "a"}, "'a' cannot be used to seed"),
            *(
                ({"class_weight": given}, 'class_weight must be None, "balanced" or a dict')
                for given in ("auto", [1, 2])
            ),
            ({"distance": "cosine"}, "distance must be one of auto, squared, plain"),
        ],
    )
    def test_bad_parameters(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            NCAClassifier(**parameters).fit(*load_iris(return_X_y=True))

    @pytest.mark.long
    def test_class_weights(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1], [100, 20])
        X = rng.normal(size=(120, 2)) + y[:, None]
        shares = [
            np.mean(NCAClassifier(alpha=1.5, class_weight=weight).fit(X, y).predict(X) == 1)
            for weight in (None, "balanced", {0: 1, 1: 50})
        ]
        assert shares[0] < shares[1] < shares[2]
        plain, equal = (
            NCAClassifier(alpha=1.5),
            NCAClassifier(alpha=1.5, class_weight={0: 3.0, 1: 3.0}),
        )
        np.testing.assert_allclose(
            equal.fit(X, y).predict_proba(X), plain.fit(X, y).predict_proba(X), rtol=1e-4
        )
        with pytest.raises(ValueError, match="class_weight must be larger than 0"):
            NCAClassifier(class_weight={0: 0.0, 1: 1.0}).fit(X, y)

    def test_what_is_not_fitted_says_so(self):
        with pytest.raises(NotFittedError, match="This NCAClassifier instance is not fitted yet"):
            NCAClassifier().predict(load_iris().data)

    def test_lists_of_cells(self):
        frame, y = mixed_table(40)
        model = NCAClassifier(alpha=1.5).fit(
            frame.to_numpy().tolist(), y.tolist(), sample_weight=[0] * 9 + [1] * 31
        )
        expected = NCAClassifier(alpha=1.5).fit(frame[9:], y[9:]).predict_proba(frame)
        np.testing.assert_allclose(
            model.predict_proba(frame.to_numpy().tolist()), expected, rtol=1e-4
        )

    @pytest.mark.slow
    def test_rows_of_weight_0_are_absent(self):
        frame, y = mixed_table(120)
        frame.loc[::5, "size"] = 1e6
        rows = np.flatnonzero(np.arange(120) % 5)
        model = NCAClassifier(alpha=1.5).fit(frame, y, sample_weight=np.arange(120) % 5 > 0)
        without = NCAClassifier(alpha=1.5).fit(frame.iloc[rows], y[rows])
        np.testing.assert_allclose(
            model.predict_proba(frame), without.predict_proba(frame), rtol=1e-4
        )
        for found, expected in zip(model.kneighbors(frame), without.kneighbors(frame), strict=True):
            np.testing.assert_allclose(
                found, expected if expected.dtype.kind == "f" else rows[expected], rtol=1e-4
            )

    def test_weights_of_rows_and_classes_are_multiplied(self):
        X, y = load_iris(return_X_y=True)
        both = NCAClassifier(alpha=1.5, class_weight={0: 1, 1: 2, 2: 3}).fit(
            X, y, np.arange(150) % 2 + 1
        )
        rows = NCAClassifier(alpha=1.5).fit(X, y, (y + 1) * (np.arange(150) % 2 + 1))
        np.testing.assert_array_equal(both.predict_proba(X), rows.predict_proba(X))

    @pytest.mark.parametrize("weight", [-1.0, np.nan])
    def test_bad_weights(self, weight):
        X, y = load_iris(return_X_y=True)
        with pytest.raises(ValueError, match="sample_weight"):
            NCAClassifier().fit(X, y, sample_weight=np.where(np.arange(150) == 3, weight, 1.0))
        with pytest.raises(ValueError, match=r"2 sample\(s\) while a minimum of 4 is required"):
            NCAClassifier().fit(X, y, sample_weight=np.arange(150) % 100 == 0)

    def test_rare_classes(self):
        X, y = load_iris(return_X_y=True)
        y = y.copy()
        y[0], y[50:52] = 3, 4  # alone, and two
        model = NCAClassifier(alpha=1.5).fit(X, y)
        assert model.predict_proba(X).shape == (150, 5)

    def test_few_rows(self):
        frame = mixed_table()[0]
        with pytest.raises(ValueError, match=r"3 sample\(s\) while a minimum of 4 is required"):
            NCAClassifier().fit(frame[:3], ["a", "a", "b"])
        assert NCAClassifier().fit(frame[:4], ["a", "b", "a", "b"]).predict_proba(
            frame[:1]
        ).shape == (1, 2)
        assert NCARegressor().fit(frame[:4], [1.0, 2.0, 3.0, 5.0]).predict(frame[:1]).shape == (1,)


class TestSparse:
    rng = np.random.default_rng(0)
    levels = rng.integers(40, size=(300, 2))
    X = csr_array(np.hstack([np.eye(40)[levels[:, 0]], np.eye(40)[levels[:, 1]]]))
    y = rng.normal(size=40)[levels[:, 0]]

    def test_one_hot_columns(self):
        model = NCARegressor(4, alpha=0.05, n_members=2).fit(self.X[:200], self.y[:200])
        assert model.score(self.X[200:], self.y[200:]) > 0.6
        assert model.components_.shape[1] == model.feature_effects_.shape[0] == 80
        assert model.feature_effects_[:40].mean() > 2 * model.feature_effects_[40:].mean()
        assert model.curves() == {}
        np.testing.assert_allclose(
            model.predict(self.X[:9].toarray()), model.predict(csc_matrix(self.X[:9]))
        )

    def test_many_rows(self, monkeypatch):
        monkeypatch.setattr(predictors, "MAX_ROWS", 150)
        monkeypatch.setattr(members, "STEPS", 20)
        model = NCAClassifier(4, alpha=0.05, random_state=0).fit(self.X, self.y > 0)
        assert model.score(self.X, self.y > 0) > 0.9

    def test_what_is_refused(self):
        model = NCAClassifier(alpha=1.5).fit(self.X[:50].toarray(), self.y[:50] > 0)
        with pytest.raises(TypeError, match="toarray"):
            model.predict(self.X)
        gaps = self.X[:50] * np.nan
        with pytest.raises(ValueError, match="X is sparse and holds NaN: fill these cells"):
            NCAClassifier().fit(gaps, self.y[:50] > 0)
        with pytest.raises(ValueError, match="does not vary"):
            NCAClassifier().fit(self.X[:50] * 0, self.y[:50] > 0)


class TestRegressor:
    def test_numbers(self):
        X, y = load_diabetes(return_X_y=True)
        model = NCARegressor(alpha=1.5).fit(X[::2], y[::2])
        assert model.score(X[1::2], y[1::2]) > 0.4

    @pytest.mark.slow
    def test_the_unit_of_the_target_does_not_matter(self):
        X, y = load_diabetes(return_X_y=True)
        X, y = X[:80], y[:80]
        found = NCARegressor(alpha=1.5).fit(X, 1e6 * y + 1e9).predict(X)
        np.testing.assert_allclose(
            (found - 1e9) / 1e6, NCARegressor(alpha=1.5).fit(X, y).predict(X), rtol=1e-4
        )

    def test_weights(self):
        """Of two rules, each for half of the rows, the one that counts more is learned."""
        x = np.linspace(-3, 3, 160)
        X, second = np.repeat(x, 2)[:, None], np.arange(320) % 2
        y = np.where(second, np.sin(X[:, 0]), 10.0)
        model = NCARegressor(alpha=0.5).fit(X, y, sample_weight=np.where(second, 1.0, 1e-6))
        np.testing.assert_allclose(model.predict(x[10:-10, None]), np.sin(x[10:-10]), atol=0.1)

    def test_the_loss_is_what_is_minimized(self):
        """The noise is skewed: a prediction of medians has the smaller absolute error."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2))
        y = np.exp(X[:, 0] + 1.5 * rng.normal(size=300))
        errors = {}
        for loss in ("squared_error", "absolute_error"):
            model = NCARegressor(alpha=1.5, n_bins=4, loss=loss).fit(X[:200], y[:200])
            held_out = y[model.held_out_rows_] - model.held_out_votes_
            errors[loss] = np.mean(held_out**2), np.abs(held_out).mean()
        assert errors["absolute_error"][1] < 0.95 * errors["squared_error"][1]
        assert errors["absolute_error"][0] > errors["squared_error"][0]
        with pytest.raises(ValueError, match=r"loss must be .*, got 'mae'"):
            NCARegressor(loss="mae").fit(X, y)

    def test_the_second_map_follows_no_huge_number(self):
        """It is learned from ranks, so one number may be as large as it likes."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        y = X[:, 0].copy()
        found = []
        for largest in (10.0, 1e4):
            y[y.argmax()] = largest
            model = NCARegressor(alpha=1.5)
            model._Y, model._weights = ((y - y.mean()) / y.std())[:, None], None
            found.append(model._targets_of_map(1))
            np.testing.assert_array_equal(model._targets_of_map(0), model._Y)
        np.testing.assert_allclose(*found)

    def test_equal_rows(self):
        """Where equal rows have equal numbers, they are the prediction, unless folds keep them
        together.
        """
        rng = np.random.default_rng(0)
        at = np.arange(160) % 80
        X, y = rng.normal(size=(80, 2))[at], rng.normal(size=80)[at]
        shuffled = rng.permutation(160)
        X, y, at = X[shuffled], y[shuffled], at[shuffled]
        model = NCARegressor(alpha=1.5, n_bins=4, n_members=2).fit(X, y)
        assert model.vote_.prior == 0.1
        assert model.score(X, y) > 0.95
        folds = [(np.flatnonzero(at % 2 != k), np.flatnonzero(at % 2 == k)) for k in (0, 1)]
        apart = NCARegressor(alpha=1.5, n_bins=4).fit_encoded(X, y, folds=folds)
        assert apart.vote_.prior is None

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (np.full(10, 0.1), "y does not vary"),
            (np.arange(10) * 1e160, "whose square overflows or underflows: scale it first"),
            (np.arange(10) * 1e-160, "whose square overflows or underflows: scale it first"),
        ],
    )
    def test_targets_that_do_not_vary_or_too_much_are_refused(self, y, message):
        with pytest.raises(ValueError, match=message):
            NCARegressor().fit(np.arange(10.0)[:, None], y)


@pytest.mark.long
def test_many_rows_go_on_by_stochastic_gradient(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.sin(3 * X[:, 0])
    monkeypatch.setattr(predictors, "MAX_ROWS", 200)
    monkeypatch.setattr(members, "ROWS", 200)
    monkeypatch.setattr(members, "ANCHORS", 32)
    monkeypatch.setattr(members, "STEPS", 20)
    model = NCARegressor(4, alpha=0.05, random_state=0).fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > 0.9
    classes = NCAClassifier(4, alpha=0.05, class_weight="balanced", random_state=0).fit(
        X[:500], y[:500] > 0.5
    )
    assert classes.score(X[500:], y[500:] > 0.5) > 0.85
    again = NCARegressor(4, alpha=0.05, random_state=0).fit(X[:500], y[:500])
    np.testing.assert_array_equal(again.predict(X[500:]), model.predict(X[500:]))


def test_encodings_are_mixed_by_the_same_rows(monkeypatch):
    """Also where the folds of a comparison are given, and many rows go on by gradient."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.sin(3 * X[:, 0]) > 0
    monkeypatch.setattr(predictors, "MAX_ROWS", 200)
    monkeypatch.setattr(members, "STEPS", 5)
    refined, splits = predictors.refined, []

    def recorded(*arguments):
        splits.append(arguments[2])
        return refined(*arguments)

    monkeypatch.setattr(predictors, "refined", recorded)
    some, split = np.arange(150), (np.arange(480), np.arange(480, 600))
    folds = [(np.setdiff1d(some, test), test) for test in some.reshape(3, 50)]
    model = NCAClassifier(2, random_state=0).fit_encoded(X, y, folds=folds, split=split)
    assert splits == [split] * 3
    assert model.held_out_rows_.tolist() == split[1].tolist()
    assert model.member_rows_.tolist() == some.tolist()
    for shares, rows in (
        (model.held_out_votes_, model.held_out_rows_),
        (model.member_votes_, model.member_rows_),
    ):
        assert np.mean((shares[:, 1] > 0.5) == y[rows]) > 0.85
    assert model.score(X, y) > 0.9


def test_rows_that_are_learned_from_are_not_held_out(monkeypatch):
    monkeypatch.setattr(predictors, "MAX_ROWS", 100)
    X = np.random.default_rng(0).normal(size=(200, 2))
    rows = np.arange(200)
    folds = [(rows[:50], rows[50:100]), (rows[50:100], rows[:50])]
    for split, message in (
        (None, "split must be given with folds of more than 100 rows"),
        ((rows[:150], rows[90:]), "60 of the 110 test rows of split are also training rows"),
        ((rows[:100], rows[90:]), "10 of the 110 test rows"),
    ):
        with pytest.raises(ValueError, match=message):
            NCAClassifier().fit_encoded(X, X[:, 0] > 0, folds=folds, split=split)


@pytest.mark.parametrize("by_members", [True, False])
def test_an_interrupt_leaves_out_what_is_not_finished(monkeypatch, by_members):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(3 * X[:, 0]) > 0
    monkeypatch.setattr(predictors, "MAX_ROWS", 100)
    monkeypatch.setattr(members, "STEPS", 5)
    name = "member_path" if by_members else "refined"
    original, calls = getattr(predictors, name), []

    def interrupted(*arguments):
        calls.append(name)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(predictors, name, interrupted)
    some = np.arange(90)
    folds = [(np.setdiff1d(some, test), test) for test in some.reshape(3, 30)]
    split = np.arange(240), np.arange(240, 300)
    model = NCAClassifier(2, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit_encoded(X, y, folds=folds, split=split)
    assert len(model.encoder_.encoders) == 1
    assert model.predict(X).shape == y.shape


def test_many_small_classes_leave_rows_to_learn_from():
    """Of more than 2,000 rows ten of every class, or all, would be held out."""
    rng = np.random.default_rng(0)
    codes = np.arange(2400) % 240
    (fold,), split = NCAClassifier()._folds(rng.normal(size=(2400, 2)), codes)
    assert fold is split
    assert len(fold[0]) == 4 * len(fold[1]) == 1920


@pytest.mark.parametrize("weights", [None, np.linspace(1, 2, 60)])
def test_a_frame_is_read_once(weights, monkeypatch):
    pd = pytest.importorskip("pandas")
    calls, column = [], cells._column

    def counted(series, name, strict):
        calls.append(name)
        return column(series, name, strict)

    monkeypatch.setattr(cells, "_column", counted)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice([*"xyz"], 60)})
    NCAClassifier(alpha=1.5, n_members=2).fit(frame, np.arange(60) % 2, weights)
    assert calls == ["a", "b"]
