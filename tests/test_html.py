"""What notebooks show: a line of what was learned in the diagrams of estimators, and rankings with
a picture.
"""

import inspect
import re
import sys
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearkin
from nearkin import (
    DNE,
    LDE,
    LMNN,
    LPP,
    MLKR,
    NCA,
    NMMP,
    SDA,
    TDL,
    DiscriminativeProjections,
    EmbeddingAdapter,
    NCAClassifier,
    NCARegressor,
    PairNCA,
    Procrustes,
    SoftNeighborsClassifier,
    TableEncoder,
    TDLClassifier,
)
from nearkin._captions import DOCUMENTATION, caption_of
from nearkin.descent import DescentResult, Status
from nearkin.estimators import nca as nca_module
from nearkin.evaluation import Adaptation, Method, PairedTest, Reference, Way, WayResult, compare
from nearkin.evaluation.folds import progress_bar

pytestmark = pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
FEW = {LMNN: {"max_iter": 3}, MLKR: {"max_iter": 3}, NCA: {"max_iter": 3}, PairNCA: {"max_iter": 3}}
FEW |= {predictor: {"n_members": 2, "alpha": 0.01} for predictor in (NCAClassifier, NCARegressor)}
FEW |= {TDL: {"reg": 1.0}, TDLClassifier: {"tdl": TDL(5, reg=1.0)}}
ESTIMATORS = [
    estimator(**FEW.get(estimator, {}))
    for name, estimator in inspect.getmembers(nearkin, inspect.isclass)
    if issubclass(estimator, BaseEstimator)
    and hasattr(estimator, "fit")
    and name != "NeuralNCA"  # needs torch
]
every_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__
)
X, Y = (part[::2] for part in load_iris(return_X_y=True))


def fitted(estimator):
    numeric = isinstance(estimator, (MLKR, NCARegressor)) or type(estimator).__name__.endswith(
        "Regressor"
    )
    return estimator.fit(
        X, X[:, :2] if isinstance(estimator, Procrustes) else X[:, 0] if numeric else Y
    )


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


class TestEveryEstimator:
    @every_estimator
    def test_says_what_it_has_learned_and_only_then(self, estimator):
        assert caption_of(estimator) is None
        assert 'class="caption"' not in estimator._repr_html_()
        caption = caption_of(fitted(estimator))
        assert re.match(r"4 (of 4 )?(features|columns)", caption)
        assert f'<div class="caption">{escape(caption)}</div>' in estimator._repr_html_()
        assert estimator._repr_mimebundle_()["text/plain"] == repr(estimator)

    @every_estimator
    def test_is_shown_whatever_is_missing(self, estimator):
        attributes = vars(fitted(estimator))
        for name in [
            name for name in attributes if name.endswith("_") and not name.startswith("_")
        ]:
            value = attributes.pop(name)
            assert type(estimator).__name__ in estimator._repr_html_()
            attributes[name] = value

    @every_estimator
    def test_leads_to_its_page(self, estimator):
        assert (
            estimator._get_doc_link()
            == f"{DOCUMENTATION}/api/generated/nearkin.{type(estimator).__name__}.html"
        )


@pytest.mark.parametrize(
    ("estimator", "caption"),
    [
        (
            DNE(n_neighbors=3),
            r"→ 4 dimensions \(the number of negative eigenvalues\); Phi\(P\) = -",
        ),
        (DNE(0.5), r"→ 1 dimension \(50% of the negative sum\)"),
        (
            DNE(2, n_neighbors="auto"),
            r"→ 2 dimensions; .*; n_neighbors = \d+ \(held-out accuracy 0\.\d+\)",
        ),
        (LDE(), r"→ 4 dimensions \(the rank\); sum of the between-class shares \d"),
        (LDE(2, shrinkage="auto"), r"; shrinkage = 0\.\d+ \(auto\)"),
        (
            NMMP(),
            r"→ 2 dimensions \(half the rank\); trace ratio [\d.]+ after \d+ eigen-decompositions",
        ),
        (NMMP("bound"), r"\(directions better than all together\)"),
        (
            NMMP(criterion="ratio_trace"),
            r"\(at most 3 for each class\); sum of the between-class shares",
        ),
        (NMMP(2, weight=1.0), "; trace difference"),
        (LPP(), r"\(eigenvalues below 3/4\); sum of the eigenvalues"),
        (SDA(), r"→ \d dimensions? \(those that separate the class means\)"),
        (
            NCA(2, max_iter=2),
            "; leave-one-out expected accuracy 0.9.*, ended by max_iter after 2 iterations",
        ),
        (
            NCA(1, tol=0.01, objective="log_likelihood"),
            "; leave-one-out log likelihood -.*, converged after",
        ),
        (NCA(1, alpha="cv", max_iter=2), r"; alpha = 0\.\d+ \(held-out accuracy 0\.\d+\)"),
        (NCA(1, solver="sgd", max_iter=1, random_state=0), " after 1 epoch$"),
        (
            DiscriminativeProjections(),
            r"\(the classes less one\).*; mu = [\d.e-]+ \(the paper's rule\)",
        ),
        (
            DiscriminativeProjections(1, mu="auto"),
            r"→ 1 dimension; .*; mu = [\d.e-]+ \(held-out accuracy",
        ),
        (TDL(2, reg=1.0), r"; label shift 0\.\d\d$"),
        (
            EmbeddingAdapter(max_iter=2),
            r"→ 4 dimensions \(64 requested\); nca loss -?[\d.e-]+ after 2 passes",
        ),
        (
            SoftNeighborsClassifier(bandwidth="auto"),
            r"; the nearest 75 training rows vote; bandwidth = .* \(auto\)",
        ),
        (
            NCAClassifier(n_members=2),
            r"4 of 4 columns → \d dimensions?; rows moved farthest by x[23], x\d, x\d; "
            r"chosen on held-out rows "
            r"\(log loss 0\.\d+\): alpha [\d.]+, temperature [\d.]+, the (squared|plain) distance",
        ),
    ],
    ids=repr,
)
def test_what_they_say(estimator, caption):
    assert re.search(caption, caption_of(estimator.fit(X, Y))), caption_of(estimator)


@pytest.mark.filterwarnings("ignore:No direction separates")
def test_dne_without_a_negative_eigenvalue():
    on_a_line = np.arange(8.0)[:, None]
    assert "no eigenvalue is negative" in caption_of(DNE().fit(on_a_line, [0, 1] * 4))


def test_names_of_columns_are_escaped():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["<script>", "a & b", "c", "d"])
    for model in (
        NCAClassifier(n_members=2, alpha=1.0).fit(frame, Y),
        TableEncoder().fit(frame.assign(**{"<i>": 0.0})),
    ):
        page = model._repr_html_()
        assert escape(caption_of(model)) in page
        assert "<script>," not in page
        assert "left out: <i>" not in page


def test_an_interrupted_fit(monkeypatch):
    def interrupted(loss, start, **_):
        return DescentResult(start, 1.0, 3, [1.0] * 4, Status.INTERRUPTED)

    monkeypatch.setattr(nca_module, "lbfgs", interrupted)
    model = NCA(2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert "interrupted after 3 iterations" in model._repr_html_()


def test_in_pipelines_and_searches():
    model = make_pipeline(StandardScaler(), DNE(2), KNeighborsClassifier())
    search = GridSearchCV(model, {"dne__n_neighbors": [1, 3]}, cv=2)
    assert "4 features →" not in search._repr_html_()
    for shown_model in (model.fit(X, Y), search.fit(X, Y)):
        assert "4 features → 2 dimensions; Phi(P) = " in shown_model._repr_html_()


@pytest.mark.slow  # distributed takes seconds to load
def test_on_a_cluster():
    dask = pytest.importorskip("nearkin.dask")
    model = dask.DaskDNE(2)
    assert caption_of(model) is None
    assert caption_of(model._take_over(DNE(2).fit(X, Y))).startswith(
        "4 features → 2 dimensions; Phi(P) = "
    )
    assert model._get_doc_link().endswith("/nearkin.dask.DaskDNE.html")
    assert "after 2 iterations" in caption_of(
        dask.DaskNCA(2)._take_over(NCA(2, max_iter=2).fit(X, Y))
    )


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
        result(Way("raw", 8, 32), 0.0, "baseline"),
        result(Way("adapter", 4, 16), 0.1, "better"),
    )
    truncated = result(Way("truncated", 4, 16), -0.05, "reference")
    found = Adaptation(
        [raw, truncated, adapter],
        "MRR",
        "seen",
        {"seen": 1234},
        {},
        "both",
        lambda one, other: PairedTest(0, 1, 9, 5),
    )
    page = Text(found._repr_html_())
    assert page.texts[0] == "Vectors compared by MRR of 1,234 held-out queries (seen)"
    at = page.texts.index("adapter 4")
    assert page.texts[at : at + 5] == ["adapter 4", "0.600", "16", "+0.100", "0.02"]
    assert found._repr_html_().count("font-weight: bold") == 7 + 7  # the head, and the adapter
    assert "0.02" not in page.texts[: at - 1]


class TestProgress:
    def test_a_bar(self, capsys):
        pytest.importorskip("rich")
        compare(
            X, Y, methods=[], references=[], n_splits=2, n_repeats=1, refit=False, progress=True
        )
        assert re.search(r"raw k-NN .*100%", capsys.readouterr().out)
        with progress_bar(True) as show:  # as `compare_vectors` calls it
            show(1, 2)
        assert re.search(r"comparing .*50%", capsys.readouterr().out)

    def test_a_callable_or_none(self, capsys):
        with progress_bar(False) as show:
            show("name", 1, 2)
        with progress_bar(print) as show:
            show(1, 2)
        assert capsys.readouterr().out == "1 2\n"

    def test_without_rich(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "rich.progress", None)
        with pytest.raises(ImportError, match="progress=True needs rich"), progress_bar(True):
            pass
