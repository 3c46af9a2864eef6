"""Rankings in notebooks, with a picture."""

import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier

from nearkin import (
    LPP,
)
from nearkin.comparison import Method, Reference, compare
from nearkin.statistics import PairedTest
from nearkin.vectors import Adaptation, Way, WayResult

pytestmark = pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
X, Y = (part[::2] for part in load_iris(return_X_y=True))


class Text(HTMLParser):
    """The text of a page whose elements are all closed, and the labels of its pictures."""

    def __init__(self, page):
        super().__init__()
        self.open, self.texts, self.labels = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in ("br", "input", "path", "circle"):
            self.open.append(tag)
        self.labels += [value for name, value in attributes if name == "aria-label"]

    def handle_endtag(self, tag):
        if tag not in ("path", "circle"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def comparison():
    references = [Reference("majority", DummyClassifier(), 1000)]
    return compare(
        X, Y, methods=[Method("<b>LPP</b>", LPP(2))], references=references, n_splits=3, n_repeats=1
    )


class TestComparison:
    @pytest.mark.parametrize("absent", ["matplotlib", "pandas"])
    def test_a_line_and_a_picture_for_each(self, comparison, absent, monkeypatch):
        monkeypatch.setitem(sys.modules, absent, None)
        page = Text(comparison._repr_html_())
        results = [*comparison.results, *comparison.references]
        names = [result.name for result in results]
        assert [text for text in page.texts if text in names] == names
        assert page.texts[0] == "Comparison by accuracy (75 labelled rows, 3 folds)"
        assert page.texts[1] == f"The automatic choice on all rows is {comparison.winner_method}."
        assert len(page.labels) == len(results)
        assert page.labels[names.index("majority")].startswith(
            f"difference {results[-1].difference:+.3f}, 95 % interval"
        )
        assert page.texts[-2:] == ["←", "reference"]  # far below the others

    def test_less_may_be_better_and_nothing_may_be_known(self, comparison):
        raw = replace(comparison.raw, score=comparison.raw.score[:1])
        lpp = replace(
            comparison["<b>LPP</b>"], interval=(-np.inf, np.inf), p_value=1e-9, difference=0.1
        )
        score = replace(comparison.protocol.score, name="log_loss", sign=-1)
        protocol = replace(comparison.protocol, score=score)
        found = replace(
            comparison,
            results=(raw, lpp),
            references=(),
            protocol=protocol,
            winner=None,
            remarks=("<&>",),
        )
        page = Text(found._repr_html_())
        assert page.texts[1] == "<&>"
        assert {"log loss (less is better) ± std", "<0.001", f"{raw.score[0]:.3f}"} <= set(
            page.texts
        )


def test_vectors_that_were_compared():
    def result(way, difference, status):
        tests = {"seen": PairedTest(difference, 0.01, 50, 5)}
        return WayResult(way, {"seen": {"MRR": 0.5 + difference}}, tests, 0.02, status, 1.0)

    raw, adapter = (
        result(Way("raw", 8), 0.0, "baseline"),
        result(Way("adapter", 4), 0.1, "better"),
    )
    truncated = result(Way("truncated", 4), -0.05, "reference")
    found = Adaptation(
        [raw, truncated, adapter],
        "MRR",
        "seen",
        {"seen": 1234},
        {},
        side="both",
        expect="both",
        between=lambda one, other: PairedTest(0, 1, 9, 5),
        judgements=None,
        held_out=lambda way: iter(()),
    )
    page = Text(found._repr_html_())
    assert page.texts[0] == "Vectors compared by MRR of 1,234 held-out queries (seen)"
    at = page.texts.index("adapter 4")
    assert page.texts[at : at + 5] == ["adapter 4", "0.600", "16", "+0.100", "0.02"]
    assert found._repr_html_().count("font-weight: bold") == 7 + 7  # the head, and the adapter
    assert "0.02" not in page.texts[: at - 1]
