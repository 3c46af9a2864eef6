"""The choice among vectors, on held-out queries."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from nearkin._blocks import unit_rows
from nearkin.comparison import twin_groups
from nearkin.statistics import PairedTest, paired_test_by_rows
from nearkin.vectors import Adaptation, Labels, Relevance, Way, WayResult, ways_of
from nearkin.vectors import comparison as adaptation
from nearkin.vectors.comparison import (
    SETTINGS,
    adapter_of,
    compare_vectors,
    place_in_sequence,
    score_settings,
    vectors_of,
)
from nearkin.vectors.judgements import SEEN, UNSEEN, scores_of

from ..vectors.test_judgements import judged, labelled


def paired(n=40, p=10):
    """Return rows in pairs, of which the last one is a copy of the first, and judged in none."""
    X = labelled(n, p).X
    pairs = np.arange(n).reshape(-1, 2)
    return Relevance.of_pairs(np.vstack([X, X[:1]]), pairs, np.ones(n // 2), np.r_[:n, 0])


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "known", [labelled(80, 10), paired(), judged()], ids=["labels", "pairs", "documents"]
)
@pytest.mark.parametrize("place", range(4))
def test_nothing_is_learned_from_held_out_queries(known, place):
    """Other vectors in their place, and in that of their copies, move no other row."""

    def split(known):
        return list(known.splits(np.random.default_rng(0)))[place]

    def candidates(known, rows):
        settings = {kind: {"start": "plda", "max_iter": 2} for kind in ("adapter", "query adapter")}
        for way in ways_of(known, [4], "both"):
            adapter = None
            if way.is_adapted:
                adapter = adapter_of(way.uncoded, split(known).train, settings)
            yield vectors_of(way, split(known), known, adapter).candidates[rows]

    queries = known.vectors()[0]
    held_out = np.isin(known.groups, known.groups[split(known).queries])
    moved = np.where(
        held_out[:, None], np.random.default_rng(1).normal(size=queries.shape), queries
    )
    moved = moved.astype(queries.dtype)
    if isinstance(known, Labels):
        other, rows = replace(known, X=moved), slice(None)
    elif known.own_rows:
        other, rows = replace(known, queries=moved, documents=moved), ~held_out
    else:
        other, rows = replace(known, queries=moved), slice(None)
    for one, same in zip(candidates(known, rows), candidates(other, rows), strict=True):
        np.testing.assert_array_equal(one, same)


def nested(n=600, p=96, n_classes=24):
    """Return rows whose first numbers differ most between classes, while all vary alike in them."""
    rng, y = np.random.default_rng(0), np.arange(n) % n_classes
    means = rng.normal(size=(n_classes, p)) * 1.6 * np.exp(-np.arange(p) / 20)
    return Labels((means[y] + rng.normal(size=(n, p))).astype(np.float32), y, np.arange(n))


@pytest.fixture
def few_fits(monkeypatch):
    """Choose between two settings of short fits, on one split."""
    short = [settings | {"max_iter": 6} for settings in SETTINGS[::4]]
    monkeypatch.setattr(adaptation, "SETTINGS", short)
    monkeypatch.setattr(adaptation, "CHOICE_QUERIES", 1)


@pytest.mark.usefixtures("few_fits")
class TestAdapt:
    @pytest.mark.slow
    def test_an_adapter_that_helps_is_shown_to(self):
        found = compare_vectors(labelled(), sizes=(4,))
        assert found.score == "precision@10"
        names = [one.way.name for one in found.results]
        assert names == ["raw", "centred 12", "truncated 4", "PCA 4", "adapter 4", "adapter 12", "adapter 4 int8",
                         "adapter 4 binary", "adapter 4 binary, rescored"]  # fmt: skip
        assert found.chosen.status == "better"
        assert found.chosen.way.bytes < found.raw.way.bytes
        assert found.settings["adapter"] in adaptation.SETTINGS
        # no bytes are spent for less than a tenth of a point
        little = replace(found.chosen.tests[SEEN], difference=5e-4, standard_error=1e-6)
        cheap = replace(found, between=lambda *_: little).chosen
        better = [one.way.bytes for one in found.results if one.status == "better"]
        assert cheap.way.bytes == min(better) < found.raw.way.bytes
        assert sum(found.n_queries.values()) == 400
        assert list(found.n_queries) == [SEEN, UNSEEN]

    @pytest.mark.long
    def test_noise_keeps_raw(self):
        known = labelled(200)
        y = np.random.default_rng(1).permutation(known.y)
        found = compare_vectors(Labels(known.X, y, known.groups), sizes=(4,))
        assert found.chosen is found.raw

    @pytest.mark.long
    def test_judged_documents_and_queries_alone(self):
        found = compare_vectors(judged(), sizes=(3,))
        assert found.score == "nDCG@10"
        assert found.chosen.status == "better"
        query = compare_vectors(judged(), side="query")
        assert [one.way.name for one in query.results] == ["raw", "query adapter 10"]
        # the same row as beside adapters of both
        one = next(one for one in found.results if one.way == query.results[1].way)
        assert one.scores == query.results[1].scores
        assert found.settings["query adapter"] == query.settings["query adapter"]

    def test_another_setting_than_the_default_must_be_better_by_a_standard_error(self):
        known, tried = judged(), [SETTINGS[0] | {"max_iter": n} for n in (4, 1)]
        one, other = score_settings("adapter", tried, known, "nDCG@10", "both", 0, list)
        (split,) = list(known.splits(np.random.default_rng(0)))[:1]
        of_queries = []
        for settings in tried:
            adapter = adapter_of(Way("adapter", 10), split.train, {"adapter": settings})
            vectors = vectors_of(Way("adapter", 10), split, known, adapter)
            of_queries.append(scores_of(vectors, split, known)["nDCG@10"])
        a, b = of_queries
        test = paired_test_by_rows([b], [a], [split.queries], len(split.train), known.groups)
        assert one == pytest.approx(a.mean())
        assert other == pytest.approx(b.mean() - test.standard_error)

    def test_sizes_are_not_of_queries_alone(self):
        with pytest.raises(ValueError, match=r'sizes=\(4,\) needs side="both"'):
            compare_vectors(judged(), sizes=(4,), side="query")
        for known in (labelled(80, 10), paired()):
            assert "query adapter" not in {way.kind for way in ways_of(known, None, "both")}

    @pytest.mark.slow
    def test_the_mean_of_a_narrow_band_may_be_all_that_is_wrong(self):
        """Classes are directions from a mean, and how far a row lies from it says nothing."""
        rng, y = np.random.default_rng(0), np.arange(240) % 10
        X = rng.normal(size=(10, 12))[y] + 0.8 * rng.normal(size=(240, 12))
        X = 20 + X * rng.lognormal(0, 1, size=(240, 1))
        shifted = Labels(X.astype(np.float32), y, np.arange(240))
        found = compare_vectors(shifted, sizes=())
        centred = next(one for one in found.results if one.way.kind == "centred")
        assert centred.status == "better"
        Z = found.adapter(centred.way, shifted).embed(shifted.X)
        rows = unit_rows(shifted.X)
        np.testing.assert_allclose(Z, unit_rows(rows - rows.mean(axis=0)), atol=1e-4)

    @pytest.mark.long_after(1)
    @pytest.mark.parametrize("expect", ["both", "new", "known"])
    def test_truncation_is_advised_where_it_beats_an_adapter(self, expect):
        """The first numbers matter most, also for new classes, on which it alone gains."""
        found = compare_vectors(nested(), sizes=(24,), expect=expect)
        of_name = {one.way.name: one for one in found.results}
        truncated, adapter = of_name["truncated 24"], of_name["adapter 24"]
        assert truncated.status == "better"
        assert truncated.tests[UNSEEN].difference > adapter.tests[UNSEEN].difference + 0.1
        assert truncated.tests[SEEN].difference < adapter.tests[SEEN].difference - 0.05
        assert found.chosen.way.kind == ("adapter" if expect == "known" else "truncated")
        assert ("adapter 24" in found.harmful) == (expect == "both")

    @pytest.mark.parametrize("kind", ["raw", "centred", "truncated", "PCA"])
    def test_vectors_without_judgements_are_maps_too(self, kind):
        known = labelled(60, 10)
        X = unit_rows(known.X)
        whole = kind in ("raw", "centred")
        mean = X.mean(axis=0) * (kind in ("centred", "PCA"))
        A = np.eye(10 if whole else 4, 10)
        if kind == "PCA":
            A = np.linalg.svd(X - mean, full_matrices=False)[2][:4]
        Z = adapter_of(Way(kind, len(A)), known, {}).embed(known.X)
        expected = unit_rows((X - mean) @ A.T)
        np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-5)

    @pytest.mark.long
    def test_pairs_do_not_find_themselves(self):
        known = labelled(100)
        order = np.argsort(known.y, kind="stable")
        found = compare_vectors(
            Relevance.of_pairs(known.X, order.reshape(-1, 2), np.ones(50)), sizes=(4,)
        )
        assert 0 < found.raw.scores["queries"]["precision@1"] < 1

    @pytest.mark.long
    def test_the_seed_decides(self):
        one, again = (compare_vectors(labelled(60), sizes=(4,)) for _ in range(2))
        assert [r.scores for r in one.results] == [r.scores for r in again.results]

    def test_unseen_classes_need_classes(self):
        with pytest.raises(ValueError, match="at least 8 classes"):
            compare_vectors(labelled(n_classes=3), sizes=(4,), expect="new")


@pytest.mark.usefixtures("few_fits")
class TestHonesty:
    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("factor", [1, 5])
    def test_copies_of_a_direction_prove_nothing(self, factor):
        """Labels are noise, but each row has a copy of its label, maybe of another length."""
        known = labelled(120)
        y = np.random.default_rng(1).permutation(known.y)
        X, y = np.vstack([known.X, factor * known.X]), np.r_[y, y]
        groups = twin_groups(unit_rows(X), scale=False)
        assert compare_vectors(Labels(X, y, groups), sizes=(4,)).chosen.way.kind == "raw"

    @pytest.mark.parametrize(
        "known",
        [
            Labels(labelled(3).X, np.array([0, 1, 0]), np.arange(3)),
            Labels(labelled(40).X, np.repeat([0, 1], 20), np.repeat([0, 1], 20)),
            Labels(
                labelled(300).X,
                np.where(np.arange(300) < 6, np.arange(300) % 2, -1),
                np.arange(300),
            ),
            Relevance.of_pairs(
                labelled(30).X, np.column_stack([np.arange(29), np.arange(1, 30)]), np.ones(29)
            ),
        ],
        ids=["three rows", "two groups", "few labels", "a chain of pairs"],
    )
    def test_too_little_is_refused_or_compared(self, known):
        try:
            found = compare_vectors(known, sizes=(4,))
        except ValueError as error:
            assert "too few rows for four splits" in str(error)  # noqa: PT017
        else:
            assert np.isfinite(
                [
                    value
                    for one in found.results
                    for value in next(iter(one.scores.values())).values()
                ]
            ).all()

    @pytest.mark.slow
    def test_scores_differ_by_the_difference(self):
        found = compare_vectors(labelled(240, n_classes=9), sizes=(4,))
        for one in found.results:
            for part, test in one.tests.items():
                difference = one.scores[part][found.score] - found.raw.scores[part][found.score]
                assert difference == pytest.approx(test.difference)


def test_bits_come_last_and_long_vectors_first():
    every = ways_of(labelled(4, 384, 2), (64, 32), "both")
    ways = sorted((way for way in every if way.kind == "adapter"), key=place_in_sequence)
    assert [way.name for way in ways] == [
        *(
            "adapter 384",
            "adapter 64",
            "adapter 64 int8",
            "adapter 64 binary, rescored",
            "adapter 32",
        ),
        *("adapter 32 int8", "adapter 64 binary"),
    ]


def test_a_notebook_shows_the_table_of_what_was_compared(monkeypatch):
    pytest.importorskip("pandas")

    def result(way, difference, status):
        tests = {SEEN: PairedTest(difference, 0.01, 50, 5)}
        return WayResult(way, {SEEN: {"MRR": 0.5 + difference}}, tests, 0.02, status, 1.0)

    ways = Way("raw", 8), Way("truncated", 4), Way("adapter", 4)
    results = map(result, ways, (0.0, -0.05, 0.1), ("baseline", "worse", "better"))
    found = Adaptation(
        [*results],
        "MRR",
        SEEN,
        {SEEN: 1234},
        {},
        expect="both",
        between=lambda one, other, part: PairedTest(0, 1, 9, 5),
        judgements=None,
        held_out=lambda way: iter(()),
    )
    frame = found.to_frame().set_index("vectors")
    assert frame["MRR"].tolist() == [0.5, 0.45, 0.6]
    assert frame.loc["adapter 4", ["low", "high"]].mean() == pytest.approx(0.1)
    assert frame["p_value"].isna().tolist() == [True, False, False]
    assert found._repr_html_() == found.to_frame().to_html()
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert found._repr_html_() is None
