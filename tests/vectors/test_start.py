"""Where an adapter begins: what a start adds to the map by labels, and how one is chosen."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from nearkin import EmbeddingAdapter
from nearkin._blocks import unit_rows
from nearkin.scatter import total_scatter
from nearkin.vectors import Labels, Relevance, adapter, compare_vectors
from nearkin.vectors import comparison as adaptation
from nearkin.vectors import start as start_module
from nearkin.vectors.adapter import n_passes
from nearkin.vectors.comparison import SETTINGS
from nearkin.vectors.judgements import Pairs
from nearkin.vectors.start import STARTS, choose_start, free_map, least_regret, plda, start_map

P, M = 50, 12
free = pytest.mark.parametrize("start", ["leading", "random"])


def topics(turned, n_classes=12, each=10, seed=0):
    """Return rows whose class has a direction of its own: one of the first axes, or turned."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), each)
    X = np.eye(n_classes, P)[y] + 0.1 * rng.normal(size=(len(y), P))
    return (X @ np.linalg.qr(rng.normal(size=(P, P)))[0] if turned else X), y


def parts(X, y):
    """Return rows of unit length, their mean, their covariance and the map by labels."""
    X = unit_rows(X)
    mean = X.mean(axis=0)
    S_t = total_scatter(X - mean) / len(X)
    S_w = Labels(X - mean, y, np.arange(len(y))).within_covariance()
    return X, mean, S_t, plda(S_t, S_w, M)


def precision_of_new_classes(X, y, **parameters):
    """Return the share of the nearest five rows that have the class, for a half of the classes."""
    known = y < y.max() / 2
    Z = EmbeddingAdapter(M, **parameters).fit(X[known], y[known]).transform(X[~known])
    cosines = Z @ Z.T - 2 * np.eye(len(Z))
    return np.mean(y[~known][np.argsort(-cosines)[:, :5]] == y[~known][:, None])


class TestMap:
    def test_principal_directions_are_turned_to_the_map_by_labels(self):
        _, mean, S_t, A = parts(*topics(turned=True))
        added = start_map(A, S_t, mean, "pca", 0) - A
        product = A @ added.T
        np.testing.assert_allclose(product, product.T, atol=1e-9)
        assert np.linalg.eigvalsh(product).min() > -1e-9  # of no rotation is the trace larger
        found = np.linalg.svd(added)[1]
        np.testing.assert_allclose(found, found[0], rtol=1e-9)
        largest = np.linalg.eigh(S_t)[1][:, -M:]
        np.testing.assert_allclose(added @ largest @ largest.T, added, atol=1e-9)
        length, of_labels = (np.trace(B @ S_t @ B.T) ** 0.5 for B in (added, A))
        assert length == pytest.approx(0.7 * of_labels)

    @free
    def test_what_depends_on_no_data_leaves_the_rows_of_the_map_alone(self, start):
        X, mean, S_t, A = parts(*topics(turned=True))
        added = start_map(A, S_t, mean, start, 0) - A
        np.testing.assert_allclose(added @ A.T, 0, atol=1e-12)
        R = free_map(M, P, start, 0)
        np.testing.assert_allclose(R @ R.T, np.eye(M), atol=1e-12)
        length = np.mean(np.sum((X @ R.T) ** 2, axis=1)) ** 0.5
        rest = np.eye(P) - np.linalg.pinv(A) @ A
        np.testing.assert_allclose(added, 0.5 / length * R @ rest, atol=1e-9)

    @free
    def test_the_seed_of_a_random_map_alone_counts(self, start):
        _, mean, S_t, A = parts(*topics(turned=True))
        one, same, other = (start_map(A, S_t, mean, start, seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(one, same)
        assert np.allclose(one, other) == (start == "leading")

    @pytest.mark.parametrize("start", ["plda", "pca", "leading", "random"])
    def test_a_large_penalty_keeps_it(self, start):
        X, y = topics(turned=True)
        _, mean, S_t, A = parts(X, y)
        model = EmbeddingAdapter(M, start=start, alpha=1e12).fit(X, y)
        B = start_map(A, S_t, mean, start, np.random.RandomState(0).randint(2**31))
        assert model.start_ == start
        assert np.linalg.norm(model.components_ - B) < 1e-3 * np.linalg.norm(B)


class TestChoice:
    @pytest.mark.long
    @pytest.mark.parametrize(("turned", "chosen"), [(False, ["leading"]), (True, STARTS[2:])])
    def test_new_topics_lie_in_what_training_rows_leave_out(self, turned, chosen):
        X, y = topics(turned)
        assert EmbeddingAdapter(M).fit(X, y).start_ in chosen
        by_labels = precision_of_new_classes(X, y, start="plda")
        assert precision_of_new_classes(X, y) > by_labels + 0.1

    @pytest.mark.long
    def test_where_noise_is_large_nothing_is_added(self):
        """All classes differ in the same few directions, and the others have noise alone."""
        rng = np.random.default_rng(0)
        y = np.arange(180) % 12
        X = 3 * rng.normal(size=(180, P))
        X[:, -M:] = 2 * rng.normal(size=(12, M))[y] + 0.3 * rng.normal(size=(180, M))
        assert EmbeddingAdapter(M).fit(X, y).start_ == "plda"

    def test_two_classes_leave_none_to_hold_out(self):
        X, y = topics(turned=False, each=30)
        assert EmbeddingAdapter(M).fit(X[y < 2], y[y < 2]).start_ == "leading"

    def test_of_triplets_and_of_several_labels_nothing_is_added(self):
        X, y = topics(turned=False)
        triplets = np.arange(len(y) // 3 * 3).reshape(-1, 3)
        assert EmbeddingAdapter(M, max_iter=1).fit_triplets(X, triplets).start_ == "plda"
        several = np.eye(12)[y]
        several[:, 0] = 1
        assert EmbeddingAdapter(M, max_iter=1).fit(X, several).start_ == "plda"

    @pytest.mark.long
    def test_precision_and_names_of_classes_do_not_count(self):
        X, y = topics(turned=True)
        names = np.random.default_rng(1).permutation(12)[y]
        found = [
            EmbeddingAdapter(M, max_iter=3).fit(rows, labels)
            for rows, labels in ((X, y), (X, names), (X.astype(np.float32), y))
        ]
        assert len({model.start_ for model in found}) == 1
        for model in found[1:]:
            Z, W = found[0].transform(X), model.transform(X)
            np.testing.assert_allclose(W @ W.T, Z @ Z.T, atol=1e-3)

    @pytest.mark.slow
    def test_rows_without_a_label_tell_where_new_topics_lie(self):
        X, y = topics(turned=True)
        some = np.where(y < 6, y, -1)
        Z = EmbeddingAdapter(M, start="plda").fit(X, some).transform(X)[y >= 6]
        nearest = np.argsort(2 * np.eye(len(Z)) - Z @ Z.T)[:, :5]
        found = np.mean(y[y >= 6][nearest] == y[y >= 6][:, None])
        assert found > precision_of_new_classes(X, y, start="plda") + 0.1
        assert EmbeddingAdapter(M).fit(X, some).start_ in STARTS

    @pytest.mark.parametrize(("heavy", "chosen"), [(0, "plda"), (1, "pca")])
    def test_the_queries_that_weigh_choose(self, heavy, chosen):
        """Of two maps, each of which serves a half of the classes."""
        rng = np.random.default_rng(0)
        y = np.arange(120) % 12
        X = unit_rows(np.eye(12)[y] + 0.05 * rng.normal(size=(120, 12)))
        kept = {"plda": slice(6), "pca": slice(6, 12), "leading": slice(1), "random": slice(1)}

        def fit(known, starts):
            return [lambda rows, at=kept[start]: unit_rows(rows[:, at]) for start in starts]

        weights = np.where((y >= 6) == heavy, 20.0, 1.0)
        known = Labels(X, y, np.arange(120), weights)
        assert choose_start(known, 6, 0, fit) == chosen

    @pytest.mark.parametrize("start", ["plda", "pca"])
    @pytest.mark.parametrize("kind", ["pairs", "documents"])
    def test_held_out_queries_choose(self, kind, start):
        """Of the maps, one keeps the directions in which what is relevant agrees."""
        rng = np.random.default_rng(0)
        of = np.arange(240) % 24
        X = unit_rows(np.hstack([rng.normal(size=(24, 6))[of], 2 * rng.normal(size=(240, 6))]))
        if kind == "pairs":
            pairs = np.array([(i, i + 24) for i in range(24)] + [(i, i + 48) for i in range(24)])
            known = Pairs.of(X, pairs, np.ones(48), np.arange(240))
        else:
            R = csr_array(1.0 * (of[:72, None] == of[72:]))
            known = Relevance(X[:72], X[72:], R, np.arange(72))
        learned_from = []

        def fit(train, starts):
            learned_from.append(set(map(bytes, train.vectors()[0])))
            maps = dict.fromkeys(starts, slice(6, 12)) | {start: slice(6)}
            return [lambda rows, at=maps[one]: unit_rows(rows[:, at]) for one in starts]

        assert choose_start(known, 6, 0, fit) == start
        queries = set(map(bytes, known.vectors()[0]))
        assert all(0 < len(some) < len(queries) for some in learned_from)

    def test_few_queries_choose_nothing(self):
        X = unit_rows(np.random.default_rng(0).normal(size=(30, 12)))
        known = Relevance(X[:7], X, csr_array(np.eye(7, 30)), np.arange(7))
        assert choose_start(known, 6, 0, None) == "plda"
        pairs = np.column_stack([np.arange(29), np.arange(1, 30)])  # all hang together
        assert choose_start(Pairs.of(X, pairs, np.ones(29), np.arange(30)), 6, 0, None) == "plda"

    def test_a_start_is_chosen_on_a_sample(self, monkeypatch):
        monkeypatch.setattr(start_module, "CHOICE_ROWS", 40)
        X = unit_rows(np.random.default_rng(0).normal(size=(400, 12)))
        R = csr_array((np.ones(200), (np.arange(100).repeat(2), np.arange(200))), shape=(100, 300))
        seen = []

        def fit(train, starts):
            seen.append(train)
            return [lambda rows: rows for _ in starts]

        choose_start(Relevance(X[:100], X[100:], R, np.arange(100)), 6, 0, fit)
        for train in seen:
            assert len(train) == 30
            assert 80 <= len(train.documents) <= 120
            assert (train.n_relevant == 2).all()
        seen.clear()
        pairs = np.column_stack([np.arange(200), np.arange(200, 400)])
        choose_start(Pairs.of(X, pairs, np.ones(200), np.arange(400)), 6, 0, fit)
        assert all(len(train.items) == len(train.queries) // 2 == 15 for train in seen)

    def test_copies_are_held_out_together(self):
        X, y = topics(turned=True)
        X, y, are_known = unit_rows(X).repeat(2, axis=0), y.repeat(2), []

        def fit(known, starts):
            learned_from = {row.tobytes() for row in known.X}

            def embed(rows):
                are_known.append(any(row.tobytes() in learned_from for row in rows))
                return rows

            return [embed for _ in starts]

        choose_start(Labels(X, y, np.arange(len(y))), M, 0, fit)
        assert are_known == 12 * [
            False,
            True,
        ]  # queries and candidates of three starts, four splits

    def test_least_regret(self):
        scores = np.array([[0.98, 0.80], [0.97, 0.95], [0.90, 0.96]])
        assert least_regret(scores) == 1
        assert least_regret(scores[:, :1]) == 0
        assert least_regret(scores[:, 1:]) == 2
        assert least_regret(scores + np.array([1, -2])) == 1


class TestExpect:
    @pytest.mark.long
    def test_decides_the_part_and_the_settings(self, monkeypatch):
        short = [one | {"max_iter": 2} for one in SETTINGS if one["start"] in ("plda", "leading")]
        monkeypatch.setattr(adaptation, "SETTINGS", [short[0], short[-1]])
        X, y = topics(turned=False, each=7)
        known = Labels(X.astype(np.float32), y, np.arange(len(y)))
        new = compare_vectors(known, sizes=(M,), expect="new")
        assert new.part == "unseen classes"
        assert new.settings["adapter"]["start"] == "leading"
        closed = compare_vectors(known, sizes=(M,), expect="known")
        assert closed.part == "seen classes"
        assert closed.harmful == []

    def test_a_wrong_word(self):
        with pytest.raises(ValueError, match="expect"):
            compare_vectors(Labels(np.eye(3), np.arange(3), np.arange(3)), expect="unseen")


def test_passes_are_fewer_where_rows_are_many(monkeypatch):
    passes = [n_passes(n) for n in (10, 10_000, 250_000, 10**6, 10**8)]
    assert passes[:3] == [20, 20, 20]
    assert passes[2:] == sorted(passes[2:], reverse=True)
    assert passes[3] * 10**6 // 512 == pytest.approx(10_000, rel=0.2)
    assert passes[4] == 1
    monkeypatch.setattr(adapter, "ENOUGH_STEPS", 3)
    X, y = topics(turned=False)
    assert EmbeddingAdapter(M, start="plda").fit(X, y).n_iter_ == 3
    assert EmbeddingAdapter(M, start="plda", max_iter=7).fit(X, y).n_iter_ == 7
