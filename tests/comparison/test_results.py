"""The ranking of what was found, and how it is shown."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from nearkin import DNE
from nearkin.comparison import RAW, SCORES, default_references, leader

from .tables import (
    DNE_METHOD,
    hidden,
    quick,
)


@pytest.fixture(scope="module")
def comparison():
    return quick(*hidden(), references=default_references()[:2], n_repeats=2)


class TestRanking:
    @pytest.mark.slow
    def test_one_row_a_contestant_with_the_references_last(self, comparison):
        rows = comparison.ranking()
        assert rows == [*comparison.results, *comparison.references]
        for row in rows:
            assert row.deviation == row.score.std(ddof=1)
            assert row.is_tested == (row.kind in ("method", "choice"))
            assert (row.dimensions is None) == (row.vote == "") == (row.kind == "reference")

    def test_the_automatic_choice_leads_and_says_what_it_was(self, comparison):
        rows = comparison.ranking()
        (choice,) = (row for row in rows if row.kind == "choice")
        assert leader(rows) is choice
        assert sum(choice.chosen.values()) == len(choice.score) == len(comparison.folds)
        assert choice.settings == [({"method": name}, n) for name, n in choice.chosen.items()]
        assert (choice.vote, choice.neighbors, choice.soft) == ("3-NN", (3, 3, 3), 0)

    def test_without_a_choice_the_best_method_leads(self, comparison):
        rows = [row for row in comparison.ranking() if row.kind != "choice"]
        assert leader(rows).name == "DNE"
        others = [row for row in rows if row.kind != "method"]
        assert leader(others).kind == "baseline"

    @pytest.mark.slow
    def test_settings_are_counted(self):
        ranking = quick(*hidden(), methods=[DNE_METHOD]).ranking()
        (row,) = (row for row in ranking if row.name == "DNE")
        assert sum(n for _, n in row.settings) == 3
        assert all(settings.keys() == {"n_neighbors"} for settings, _ in row.settings)


class TestPresentation:
    def test_it_prints_a_line_a_method(self, comparison):
        lines = repr(comparison).splitlines()
        assert lines[0] == "Comparison by accuracy (150 labelled rows, 6 folds):"
        assert lines[-1] == comparison.notes[0]
        assert [line[:22].strip() for line in lines[1:-1]] == [
            result.name for result in (*comparison.results, *comparison.references)
        ]
        assert repr(comparison["DNE"]) == next(line for line in lines if line.startswith("DNE"))
        assert "p = " in repr(comparison["DNE"])
        assert all("nan" not in line for line in lines)

    def test_frame(self, comparison):
        pytest.importorskip("pandas")
        frame = comparison.to_frame().set_index("method")
        assert frame.index.tolist() == [
            result.name for result in (*comparison.results, *comparison.references)
        ]
        assert set(SCORES["classification"]) <= set(frame.columns)
        assert frame.loc["DNE", "accuracy"] == comparison["DNE"].score.mean()
        assert frame.loc["DNE", ["low", "high"]].tolist() == list(comparison["DNE"].interval)
        assert np.isnan(frame.loc[RAW, "p_value"])

    def test_without_pandas(self, comparison, monkeypatch):
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match=r"to_frame\(\) needs pandas: pip install pandas"):
            comparison.to_frame()

    def test_a_notebook_shows_the_notes_and_the_table(self, comparison, monkeypatch):
        pytest.importorskip("pandas")
        page = replace(comparison, remarks=("<&>",))._repr_html_()
        assert page.startswith("<p>Comparison by accuracy (150 labelled rows, 6 folds):</p><p>")
        assert "<p>&lt;&amp;&gt;</p>" in page
        assert page.endswith(comparison.to_frame().to_html())
        monkeypatch.setitem(sys.modules, "pandas", None)
        assert comparison._repr_html_() is None

    def test_names_that_are_not_there(self, comparison):
        with pytest.raises(KeyError, match="'LMNN'; finished were DNE, automatic choice, raw k-NN"):
            comparison["LMNN"]

    def test_the_map_of_a_method_to_be_fitted(self, comparison):
        X, y = hidden()
        mapping = comparison.mapping(comparison["DNE"], 2)
        scaled = StandardScaler().fit_transform(X)
        np.testing.assert_allclose(
            mapping.fit(X, y).transform(X), DNE(2).fit(scaled, y).transform(scaled), atol=1e-10
        )
        assert (
            comparison.mapping(comparison.raw, 2)
            is None
            is comparison.mapping(comparison.choice, 2)
        )
