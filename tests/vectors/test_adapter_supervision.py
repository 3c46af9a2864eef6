"""What EmbeddingAdapter takes from labels, pairs, triplets and judgements, what it refuses, and how
a fit is ended.
"""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, random_array
from scipy.special import logsumexp
from sklearn.base import clone

from nearkin import EmbeddingAdapter
from nearkin._blocks import unit_rows
from nearkin.descent import adam
from nearkin.objectives.cosine import CosineSoftmax, _loss_of_similarities
from nearkin.testing import check_gradient
from nearkin.vectors import Relevance, judgements
from nearkin.vectors import adapter as adapter_module
from nearkin.vectors.judgements import Pairs, relevance_matrix

P = 6
X = np.random.default_rng(0).normal(size=(48, P)) * np.arange(1, P + 1) + 1
Y = np.random.default_rng(1).integers(0, 5, 48)
PAIRS = np.random.default_rng(2).permutation(48).reshape(24, 2)
RNG = np.random.default_rng(3)


def cosines(model, rows=X):
    Z = model.embed(rows)
    return Z @ Z.T


def adapter(**parameters):
    size = None if parameters.get("side") == "query" else 3
    return EmbeddingAdapter(size, **{"max_iter": 4, "start": "plda", **parameters})


def pairs(numbers, grades):
    return Pairs.of(X, numbers, grades, np.arange(48))


def assert_same(model, other):
    np.testing.assert_allclose(cosines(model), cosines(other), atol=1e-8)


def one_hot(y, n=5):
    return np.eye(n)[y]


class TestLabels:
    def test_names_do_not_count(self):
        for names in (
            np.array(["e", "b", "a", "d", "c"]),
            np.array([7, 3, 40, 0, 9]),
            np.array([2.0, 1, 0, 4, 3]),
        ):
            assert_same(adapter().fit(X, names[Y]), adapter().fit(X, Y))

    @pytest.mark.parametrize(
        "form", [np.asarray, csr_array, coo_array, lambda A: A.astype(bool), np.ndarray.tolist]
    )
    def test_columns_of_one_label_each_are_plain_labels(self, form):
        assert_same(adapter().fit(X, form(one_hot(Y))), adapter().fit(X, Y))

    @pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, float])
    @pytest.mark.parametrize("form", [np.asarray, csr_array])
    def test_columns_of_several_labels_in_any_form(self, form, dtype):
        several = np.random.default_rng(0).random((48, 6)) < 0.4
        assert_same(
            adapter().fit(X, form(several.astype(dtype))),
            adapter().fit(X, several.astype(np.int64)),
        )

    def test_a_column_that_no_row_has_is_none(self):
        assert_same(adapter().fit(X, one_hot(np.array([0, 2, 3, 6, 8])[Y], 9)), adapter().fit(X, Y))

    def test_given_columns_are_not_changed(self):
        given = csr_array(one_hot(Y))
        given.data[::3] = 0
        n, data = given.nnz, given.data.copy()
        adapter().fit(X, given)
        assert given.nnz == n
        np.testing.assert_array_equal(given.data, data)

    @pytest.mark.slow
    def test_rows_without_a_label_in_any_form(self):
        plain = adapter().fit(X, np.where(np.arange(48) % 3, Y, -1))
        names = np.array(["a", "b", "c", "d", "e"], dtype=object)[Y]
        names[::3] = None
        numbers = np.where(np.arange(48) % 3, Y, np.nan)
        columns = one_hot(Y) * (np.arange(48) % 3 > 0)[:, None]
        for y in (names, numbers, columns, csr_array(columns)):
            assert_same(adapter().fit(X, y), plain)

    def test_rows_without_a_label_enter_through_the_mean_and_the_total_covariance_alone(self):
        """A square of rows has the mean and covariance of one that is turned, but no row in common."""
        square = np.vstack([np.eye(P)[:2], -np.eye(P)[:2]])
        turned = np.hstack(
            [square[:, :2] @ np.array([[1, 1], [-1, 1]]) / 2**0.5, np.zeros((4, P - 2))]
        )
        y = np.append(Y, np.full(4, -1))
        both = adapter(start="plda")
        models = [clone(both).fit(np.vstack([X, rows]), y) for rows in (square, turned)]
        assert_same(*models)
        assert not np.allclose(cosines(both.fit(X, Y)), cosines(models[0]))
        query = adapter(side="query")
        # where neither is used
        np.testing.assert_array_equal(
            query.fit(np.vstack([X, square]), y).components_, query.fit(X, Y).components_
        )

    def test_sparse_rows(self):
        S = random_array(
            (48, 300), density=0.03, random_state=np.random.default_rng(0), format="csr"
        )
        sparse, dense = adapter().fit(S, Y), adapter().fit(S.toarray(), Y)
        np.testing.assert_array_equal(sparse.components_, dense.components_)
        np.testing.assert_array_equal(sparse.transform(S), dense.transform(S.toarray()))


class TestPairs:
    def test_have_no_order(self):
        grades = np.linspace(0.5, 1, 24)
        plain = adapter().fit_pairs(X, PAIRS, grades)
        assert_same(adapter().fit_pairs(X, PAIRS[:, ::-1], grades), plain)
        assert_same(adapter().fit_pairs(X, PAIRS[::-1], grades[::-1]), plain)
        some = np.where(np.arange(24)[:, None] % 2, PAIRS, PAIRS[:, ::-1])
        assert_same(adapter().fit_pairs(X, some, grades), plain)

    def test_a_pair_that_comes_twice_counts_twice_whichever_row_is_first(self):
        chain = np.column_stack([np.arange(47), np.arange(1, 48)])
        again = chain[::2]
        grades = 1.0 + (np.arange(47) % 2 == 0)
        graded = adapter(alpha=0).fit_pairs(X, chain, grades)
        for more in (again, again[:, ::-1]):
            assert_same(adapter(alpha=0).fit_pairs(X, np.vstack([chain, more])), graded)

    def test_unlike_ones_part(self, monkeypatch):
        """Of many pairs in small batches, rows come apart that were judged unlike."""
        monkeypatch.setattr(adapter_module, "BATCH", 4)
        unlike = np.column_stack([PAIRS[:, 0], np.roll(PAIRS[:, 1], 5)])
        grades = np.repeat([1, 0], 24)

        def gap(model):
            Z = cosines(model)
            return Z[tuple(PAIRS.T)].mean() - Z[tuple(unlike.T)].mean()

        parameters = {"alpha": 0.0, "max_iter": 10}
        without = gap(adapter(**parameters).fit_pairs(X, PAIRS))
        assert gap(adapter(**parameters).fit_pairs(X, np.vstack([PAIRS, unlike]), grades)) > without

    def test_a_row_unlike_one_of_a_batch_may_belong_to_another(self, monkeypatch):
        """It is a candidate of both: a relevant row that is none has an infinite loss."""
        monkeypatch.setattr(adapter_module, "BATCH", 4)
        chain, unlike = (np.column_stack([np.arange(40), np.arange(k, 40 + k)]) for k in (1, 5))
        known = np.vstack([chain, unlike])
        model = adapter().fit_pairs(X, known, np.repeat([1, 0], 40))
        assert np.isfinite(model.loss_curve_).all()
        judged = pairs(known, np.repeat([1.0, 0.0], 40))
        comparison = judged.comparison(np.array([3, 8]), RNG)
        assert comparison.offered[comparison.relevance > 0].all()

    @pytest.mark.parametrize("grade", [0, -1])
    def test_of_no_grade_are_as_others_that_are_not_known(self, grade):
        more = np.roll(PAIRS.ravel(), 1).reshape(24, 2)
        graded = adapter(alpha=0).fit_pairs(X, np.vstack([PAIRS, more]), np.repeat([1, grade], 24))
        assert_same(graded, adapter(alpha=0).fit_pairs(X, PAIRS))

    def test_of_all_rows_of_a_class_are_its_labels(self):
        """But for the start, which labels choose, and whose covariance of pairs weights large
        classes more: in equal classes it is the same.
        """
        y = np.arange(48) % 8
        i, j = np.nonzero(np.triu(y[:, None] == y, 1))
        labelled = adapter(loss="contrastive", alpha=0, start="plda").fit(X, y)
        assert_same(adapter(alpha=0).fit_pairs(X, np.column_stack([i, j])), labelled)


class TestTriplets:
    def test_both_losses_are_one(self):
        triplets = np.random.default_rng(0).permutation(48).reshape(16, 3)
        assert_same(
            *(adapter(loss=loss).fit_triplets(X, triplets) for loss in ("nca", "contrastive"))
        )


class TestRelevance:
    Q = np.random.default_rng(4).normal(size=(10, P)) + 1
    R = random_array((10, 48), density=0.1, random_state=np.random.default_rng(5), format="csr")

    def judged(self, R):
        return Relevance(self.Q, X, R, np.arange(10))

    def triples(self):
        query, document = self.R.nonzero()
        return np.column_stack([query, document, self.R.data])

    def test_triples_are_the_sparse_matrix(self):
        by_matrix = adapter().fit_relevance(self.Q, X, self.R)
        for triples in (self.triples(), self.triples()[::-1], self.triples().tolist()):
            assert_same(adapter().fit_relevance(self.Q, X, triples), by_matrix)
        assert_same(adapter().fit_relevance(self.Q, X, coo_array(self.R)), by_matrix)

    @pytest.mark.parametrize("side", ["both", "query"])
    def test_queries_may_be_the_documents(self, side):
        R = np.column_stack([PAIRS, np.ones(24)])
        same = adapter(side=side).fit_relevance(X, X, R)
        assert_same(same, adapter(side=side).fit_relevance(X.copy(), X, R))

    def test_without_a_grade_it_is_1(self):
        at, one = self.triples()[:, :2], csr_array(self.R > 0).astype(int)
        assert_same(
            adapter().fit_relevance(self.Q, X, at.astype(int)),
            adapter().fit_relevance(self.Q, X, one),
        )

    def negatives(self, step=7):
        """Places that hold no grade, a few."""
        return np.argwhere(self.R.toarray() == 0)[::step]

    def with_negatives(self):
        """The grades, and stored zeros."""
        at, (query, document) = self.negatives(), self.R.nonzero()
        data = np.concatenate([self.R.data, np.zeros(len(at))])
        where = np.append(query, at[:, 0]), np.append(document, at[:, 1])
        return csr_array((data, where), shape=self.R.shape)

    def test_of_few_documents_what_is_judged_not_relevant_is_as_others(self):
        """All are candidates of every query."""
        at = self.negatives()
        more = np.vstack([self.triples(), np.column_stack([at, -np.arange(len(at))])])
        assert_same(
            adapter().fit_relevance(self.Q, X, more), adapter().fit_relevance(self.Q, X, self.R)
        )

    def test_of_many_documents_those_judged_not_relevant_are_always_candidates(self, monkeypatch):
        monkeypatch.setattr(judgements, "CANDIDATES", 24)
        items, unlike = np.array([1, 4, 7]), relevance_matrix(self.with_negatives(), (10, 48))
        offered = unlike[items].indices
        assert (unlike.data == 0).any()
        for seed in range(5):
            rng = np.random.default_rng(seed)
            comparison = self.judged(unlike).comparison(items, rng)
            rows = {row.tobytes() for row in comparison.candidates}
            assert {X[d].tobytes() for d in offered} <= rows
            number = {row.tobytes(): i for i, row in enumerate(X)}
            candidates = [number[row.tobytes()] for row in comparison.candidates]
            judged = {*zip(*unlike[items].tocoo().coords, strict=True)}
            for q, d in np.ndindex(3, len(candidates)):
                if not comparison.offered[:, d].all():
                    assert comparison.offered[q, d] == ((q, candidates[d]) in judged)
            np.testing.assert_allclose(
                np.sort(comparison.relevance.sum(axis=1)), np.sort(unlike[items].sum(axis=1))
            )
        model = adapter(random_state=1)
        as_rows = np.vstack([self.triples(), np.column_stack([self.negatives(), -np.ones(62)])])
        with_them = model.fit_relevance(self.Q, X, self.with_negatives()).components_
        np.testing.assert_allclose(
            model.fit_relevance(self.Q, X, as_rows).components_, with_them, atol=1e-12
        )
        assert not np.allclose(model.fit_relevance(self.Q, X, self.R).components_, with_them)

    def test_so_many_that_are_not_relevant_are_drawn(self, monkeypatch):
        monkeypatch.setattr(judgements, "CANDIDATES", 12)
        R = relevance_matrix(self.with_negatives(), (10, 48))
        comparison = self.judged(R).comparison(np.arange(10), RNG)
        relevant = np.unique(self.R.indices)
        assert len(comparison.candidates) <= len(relevant) + 12 + 12
        assert {X[d].tobytes() for d in relevant} <= {r.tobytes() for r in comparison.candidates}

    def test_only_the_ratios_of_the_grades_of_a_query_count(self):
        triples = self.triples()
        scaled = triples * np.column_stack([np.ones((len(triples), 2)), 1 + triples[:, 0]])
        assert_same(
            adapter().fit_relevance(self.Q, X, triples), adapter().fit_relevance(self.Q, X, scaled)
        )
        equal = np.column_stack([triples[:, :2], 2 + triples[:, 0]])  # of one query alike: binary
        assert_same(
            adapter().fit_relevance(self.Q, X, equal),
            adapter().fit_relevance(self.Q, X, triples[:, :2].astype(int)),
        )

    def test_the_objective_is_least_where_the_ranking_has_the_graded_distribution(self):
        """The gradient is 0 where p_ij is w_ij over the sum of the query's: a teacher's softmax."""
        S = np.random.default_rng(0).normal(size=(4, 9))
        P = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
        value, gradient = _loss_of_similarities(S, 7 * P, "contrastive")
        np.testing.assert_allclose(gradient, 0, atol=1e-15)
        assert value == pytest.approx(-np.mean(np.sum(P * np.log(P), axis=1)))

    def test_queries_without_a_relevant_document_enter_through_the_mean_alone(self):
        Q = np.vstack([self.Q, X[:3]])
        for side in ("both", "query"):
            judged = self.triples()
            with_them = adapter(side=side).fit_relevance(Q, X, judged)
            assert np.isfinite(with_them.components_).all()
            assert side == "both" or np.array_equal(
                with_them.components_,
                adapter(side=side).fit_relevance(self.Q, X, judged).components_,
            )


class TestObjective:
    @pytest.mark.parametrize(("side", "m"), [("both", 3), ("query", P)])
    @pytest.mark.parametrize("kind", ["labels", "pairs"])
    def test_is_the_loss_and_the_penalty(self, kind, side, m, monkeypatch):
        descents = []

        def noted(estimate, start, **options):
            descents.append((estimate, start))
            return adam(estimate, start, **options)

        monkeypatch.setattr(adapter_module, "adam", noted)
        model = adapter(alpha=3.0, side=side, loss="nca", temperature=0.2)
        model = model.fit(X, Y) if kind == "labels" else model.fit_pairs(X, PAIRS)
        ((estimate, start),) = descents
        A = start + np.random.default_rng(0).normal(size=(m, P)) / 3
        check_gradient(lambda A: estimate(A, 0), A)
        W, n = 1.0 * (Y[:, None] == Y) * ~np.eye(48, dtype=bool), 48
        if kind == "pairs":
            W, n = np.zeros((48, 48)), 24
            W[PAIRS[:, 0], PAIRS[:, 1]] = W[PAIRS[:, 1], PAIRS[:, 0]] = 1
        U = unit_rows(X)
        S = unit_rows((U - U.mean(axis=0) if side == "both" else U) @ A.T)
        S = S @ (S if side == "both" else U).T / 0.2
        np.fill_diagonal(S, -np.inf)
        losses = logsumexp(S, axis=1) - logsumexp(S, axis=1, b=W)
        penalty = 3.0 / n**0.5 * np.sum((A - start) ** 2)
        assert estimate(A, 0)[0] == pytest.approx(losses.mean() + penalty, rel=1e-9)
        assert model.loss_curve_[0] == pytest.approx(estimate(start, 0)[0], rel=1e-9)


class TestEndings:
    @pytest.mark.parametrize("quantize", [None, "int8", "binary"])
    def test_an_interrupt_keeps_the_map_so_far(self, quantize, monkeypatch):
        model, estimate, calls = adapter(quantize=quantize), CosineSoftmax.estimate, []

        def interrupted(*arguments):
            calls.append(arguments)
            if len(calls) in (1, 13):  # at once, and in the third pass of the next fit
                raise KeyboardInterrupt
            return estimate(*arguments)

        monkeypatch.setattr(CosineSoftmax, "estimate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
        assert not hasattr(model, "components_")
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
        assert model.n_iter_ == 2
        assert len(model.loss_curve_) == 3
        assert model.transform(X).shape == (48, 1 if quantize == "binary" else 3)

    @pytest.mark.skipif(
        find_spec("sklearn.callback") is None, reason="scikit-learn has callbacks from 1.9 on"
    )
    @pytest.mark.parametrize("quantize", [None, "int8", "binary"])
    def test_callbacks_see_the_map_so_far_and_stop_the_fit(self, quantize):
        class Watching:
            seen = ()

            def setup(self, estimator, context):
                pass

            teardown = setup

            def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
                pass

            def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
                self.seen += (
                    fitted_estimator.transform(X),
                    fitted_estimator.get_feature_names_out(),
                )
                return len(self.seen) >= 6

        watching = Watching()
        model = adapter(quantize=quantize).set_callbacks(watching).fit(X, Y)
        assert model.n_iter_ == 3
        np.testing.assert_array_equal(watching.seen[-2], model.transform(X))
        plain = adapter(quantize=quantize, max_iter=4).fit(X, Y)
        assert plain.n_iter_ == 4
        assert model.loss_curve_.tolist() == plain.loss_curve_[:4].tolist()
