"""Descents report their iterations to scikit-learn's callbacks, and are the same with and without
them.
"""

import inspect
import pickle
import re
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_wine, make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearkin
from nearkin import (
    DNE,
    ITML,
    LDE,
    LMNN,
    NCA,
    EmbeddingAdapter,
    NCAClassifier,
    NCARegressor,
    PairNCA,
)
from nearkin.tables import predictors
from nearkin.tables.members import Member

pytestmark = pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
with_sklearn_callbacks = pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="scikit-learn has callbacks from 1.9 on"
)
SGD = NCA(2, solver="sgd", max_iter=4, random_state=0)
DESCENTS = {
    ITML(2, max_iter=4): "n_neighbors",  # there is one descent
    LMNN(2, max_iter=4): "n_passes",
    NCA(2, max_iter=4): "n_init",
    PairNCA(2, max_iter=4): "n_init",
}
every_descent = pytest.mark.parametrize("estimator", [*DESCENTS, SGD], ids=repr)


def data():
    return make_classification(60, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)


class Recorder:
    """A callback by the protocol, which records its calls; on request it stops, or fails."""

    def __init__(self, stop=False, fail_at=None):
        self.stop = stop
        self.fail_at = fail_at
        self.calls = []

    def setup(self, estimator, context):
        self._record("setup", context)

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self._record("begin", context, X=X, y=y)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self._record("end", context, X=X, y=y, fitted=fitted_estimator)
        return self.stop

    def teardown(self, estimator, context):
        self._record("teardown", context)

    def _record(self, event, context, **values):
        self.calls.append((event, context, values))
        if event == self.fail_at:
            raise OSError(f"failed at {event}")

    def values(self, event):
        return [values for name, _, values in self.calls if name == event]

    @property
    def events(self):
        return [(event, context.task_name) for event, context, _ in self.calls]


class PropagatedRecorder(Recorder):
    """Goes from a pipeline or a search down to its estimators, as progress bars do."""

    max_propagation_depth = None


def learned(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def assert_same_fit(model, other):
    assert learned(model).keys() == learned(other).keys()
    for name, value in learned(model).items():
        np.testing.assert_array_equal(value, learned(other)[name])


@with_sklearn_callbacks
@every_descent
class TestEveryFit:
    def test_reports_every_iteration_within_the_fit(self, estimator):
        recorder = Recorder()
        model = clone(estimator).set_callbacks(recorder).fit(*data())
        iterations = [("begin", "iteration"), ("end", "iteration")] * model.n_iter_
        assert recorder.events == [
            ("setup", "fit"),
            ("begin", "fit"),
            *iterations,
            ("end", "fit"),
            ("teardown", "fit"),
        ]
        root, *children = recorder.calls[0][1]
        assert root.max_subtasks == 4
        assert all(child.parent is root for child in children)

    def test_passes_the_rows_and_labels_as_they_came(self, estimator):
        X, y = data()
        words = list(np.array(["ant", "bee", "cat"])[y])
        recorder = Recorder()
        clone(estimator).set_callbacks(recorder).fit(X, words)
        hooks = [values for event, _, values in recorder.calls if event in ("begin", "end")]
        assert all(values["X"] is X and values["y"] is words for values in hooks)

    def test_is_the_same_with_and_without_callbacks(self, estimator):
        silent = clone(estimator).fit(*data())
        assert_same_fit(clone(estimator).set_callbacks(Recorder()).fit(*data()), silent)

    def test_hands_over_the_map_so_far(self, estimator):
        X, y = data()
        recorder = Recorder()
        model = clone(estimator).set_callbacks(recorder).fit(X, y)
        *before, last, end = [
            values["fitted"] for event, _, values in recorder.calls if event == "end"
        ]
        assert len(before) + 1 == model.n_iter_
        np.testing.assert_array_equal(last.transform(X), model.transform(X))
        np.testing.assert_array_equal(end.transform(X), model.transform(X))
        assert not np.allclose(before[0].transform(X), model.transform(X))

    def test_stops_on_request(self, estimator):
        model = clone(estimator).set_params(**{DESCENTS.get(estimator, "n_init"): 3})
        model.set_callbacks(Recorder(stop=True)).fit(*data())
        assert model.n_iter_ == 1

    @pytest.mark.slow_after(3)
    @pytest.mark.parametrize("event", ["setup", "begin", "end", "teardown"])
    def test_lets_the_exception_of_a_callback_through(self, estimator, event):
        recorder = Recorder(fail_at=event)
        model = clone(estimator).set_callbacks(recorder)
        with pytest.raises(OSError, match=f"failed at {event}"):
            model.fit(*data())
        assert recorder.events.count(("teardown", "fit")) == 1
        assert_same_fit(model.set_callbacks().fit(*data()), clone(estimator).fit(*data()))

    def test_tears_down_but_does_not_end_when_it_fails(self, estimator):
        recorder = Recorder()
        with pytest.raises(ValueError, match="does not vary"):
            clone(estimator).set_callbacks(recorder).fit(np.ones((6, 2)), [0, 1] * 3)
        assert recorder.events == [("setup", "fit"), ("begin", "fit"), ("teardown", "fit")]

    def test_callbacks_survive_clone_and_pickle(self, estimator):
        recorder = Recorder()
        model = clone(estimator).set_callbacks(recorder).fit(*data())
        again = clone(model).fit(*data())
        assert recorder.events.count(("end", "fit")) == 2
        restored = pickle.loads(pickle.dumps(again))
        assert_same_fit(restored, model)
        assert_same_fit(restored.fit(*data()), model)
        assert restored._skl_callbacks[0].events.count(("end", "fit")) == 3
        assert not hasattr(restored, "_callback_fit_ctx")

    def test_is_a_task_of_the_pipeline(self, estimator):
        recorder = PropagatedRecorder()
        pipeline = (
            make_pipeline(StandardScaler(), clone(estimator)).set_callbacks(recorder).fit(*data())
        )
        assert_same_fit(
            pipeline[-1], clone(estimator).fit(StandardScaler().fit_transform(data()[0]), data()[1])
        )
        root = recorder.calls[0][1]
        assert root.estimator_name == "Pipeline"
        ours = [context for context in root if context.estimator_name == type(estimator).__name__]
        assert [context.task_name for context in ours] == ["fit"] + ["iteration"] * pipeline[
            -1
        ].n_iter_
        assert ours[0].parent is root


@with_sklearn_callbacks
@pytest.mark.parametrize(
    "estimator",
    [NCAClassifier(2, n_bins=8, n_members=2), NCARegressor(2, n_bins=8, n_members=2)],
    ids=repr,
)
class TestPredictorsForTables:
    def test_report_every_penalty(self, estimator):
        X, y = data()
        recorder = Recorder()
        model = clone(estimator).set_callbacks(recorder).fit(X, y)
        iterations = [("begin", "iteration"), ("end", "iteration")] * len(model.alpha_scores_)
        assert recorder.events == [
            ("setup", "fit"),
            ("begin", "fit"),
            *iterations,
            ("end", "fit"),
            ("teardown", "fit"),
        ]
        first, *_, last, end = [
            values["fitted"] for event, _, values in recorder.calls if event == "end"
        ]
        assert [len(found.alpha_scores_) for found in (first, last)] == [
            1,
            len(model.alpha_scores_),
        ]
        for found in (last, end, clone(estimator).fit(X, y)):
            np.testing.assert_array_equal(found.predict(X), model.predict(X))

    def test_stop_on_request(self, estimator):
        model = clone(estimator).set_callbacks(Recorder(stop=True)).fit(*data())
        assert len(model.alpha_scores_) == 1

    def test_an_interrupt_keeps_the_best_map(self, estimator, monkeypatch):
        X, y = data()
        model, descend, calls = clone(estimator), Member.descend, []

        def interrupted(member, alpha):
            calls.append(alpha)
            # at once, and, of two members, in the second penalty of the next fit
            if len(calls) in (
                1,
                5,
            ):
                raise KeyboardInterrupt
            return descend(member, alpha)

        monkeypatch.setattr(Member, "descend", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert not hasattr(model, "components_")
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert list(model.alpha_scores_) == [model.alpha_]
        assert model.predict(X).shape == (60,)

    def test_an_interrupt_of_the_stochastic_descent_keeps_the_map_before(
        self, estimator, monkeypatch
    ):
        def interrupted(*arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(predictors, "MAX_ROWS", 30)
        monkeypatch.setattr(predictors, "refined", interrupted)
        X, y = data()
        model = clone(estimator)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.predict(X).shape == (60,)


ESTIMATORS = [
    estimator
    for _, estimator in inspect.getmembers(nearkin, inspect.isclass)
    if issubclass(estimator, BaseEstimator) and hasattr(estimator, "fit")
]
# A look at the rows, or a solution in closed form: there is nothing to wait for, but in a `Matcher`,
# which fits the estimator that it is given.
SILENT = {"Matcher", "Migration", "TableEncoder"} | {
    "SoftNeighborsClassifier",
    "SoftNeighborsRegressor",
}
QUICK = {
    "max_iter": 2,
    "n_members": 2,
    "n_bins": 8,
}


@with_sklearn_callbacks
@pytest.mark.parametrize("method", ESTIMATORS, ids=lambda method: method.__name__)
def test_every_estimator_reports_one_fit(method):
    """It begins first and ends last, fitted; what is between are iterations, within the bound."""
    if method.__name__ == "NeuralNCA":
        pytest.importorskip("torch")
    assert hasattr(method, "set_callbacks") != (method.__name__ in SILENT)
    if method.__name__ in SILENT:
        return
    estimator = method()
    quick = {name: value for name, value in QUICK.items() if name in estimator.get_params()}
    estimator.set_params(**quick)
    X, y = data()
    silent = clone(estimator).set_params(**seed(estimator)).fit(X, y)
    recorder = Recorder()
    model = estimator.set_params(**seed(estimator)).set_callbacks(recorder).fit(X, y)
    (_, root, _), *_ = recorder.calls
    n_iterations = recorder.events.count(("end", "iteration"))
    iterations = [("begin", "iteration"), ("end", "iteration")] * n_iterations
    assert recorder.events == [
        ("setup", "fit"),
        ("begin", "fit"),
        *iterations,
        ("end", "fit"),
        ("teardown", "fit"),
    ]
    assert root.max_subtasks is None or n_iterations <= root.max_subtasks
    evaluate = "predict" if hasattr(model, "predict") else "transform"
    expected = getattr(silent, evaluate)(X)
    for fitted in (model, recorder.values("end")[-1]["fitted"]):
        np.testing.assert_array_equal(getattr(fitted, evaluate)(X), expected)


def seed(estimator):
    return {"random_state": 0} if "random_state" in estimator.get_params() else {}


@with_sklearn_callbacks
class TestSpectralMethods:
    def test_report_a_fit(self):
        X, y = data()
        recorder = PropagatedRecorder()
        model = make_pipeline(StandardScaler(), DNE(2)).set_callbacks(recorder).fit(X, y)
        assert_same_fit(model[-1], DNE(2).fit(StandardScaler().fit_transform(X), y))
        ours = [
            (event, context.task_name)
            for event, context, _ in recorder.calls
            if context.estimator_name == "DNE"
        ]
        assert ours == [("begin", "fit"), ("end", "fit")]

    @pytest.mark.long
    def test_report_the_folds_that_choose_the_neighbors(self):
        recorder = Recorder()
        X, y = (part[::2] for part in data())
        model = LDE(2, n_neighbors_within="auto").set_callbacks(recorder).fit(X, y)
        silent = LDE(2, n_neighbors_within="auto").fit(X, y)
        np.testing.assert_array_equal(model.components_, silent.components_)
        iterations = [("begin", "iteration"), ("end", "iteration")] * 5
        assert recorder.events == [
            ("setup", "fit"),
            ("begin", "fit"),
            *iterations,
            ("end", "fit"),
            ("teardown", "fit"),
        ]
        maps = [values["fitted"].transform(data()[0]) for values in recorder.values("end")]
        assert {Z.shape for Z in maps} == {(60, 2)}


@with_sklearn_callbacks
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("fit", (data()[1],)),
        ("fit_pairs", ([[0, 1], [2, 3], [4, 5]],)),
        ("fit_triplets", ([[0, 1, 2], [3, 4, 5]],)),
        ("fit_relevance", (data()[0], [[0, 1], [2, 3]])),
    ],
)
def test_every_fit_of_an_adapter_reports_its_passes(method, arguments):
    recorder = Recorder()
    model = EmbeddingAdapter(2, max_iter=3).set_callbacks(recorder)
    getattr(model, method)(data()[0], *arguments)
    assert recorder.events.count(("end", "iteration")) == model.n_iter_ == 3
    np.testing.assert_array_equal(
        recorder.values("end")[-1]["fitted"].components_, model.components_
    )


@with_sklearn_callbacks
@pytest.mark.parametrize(
    ("method", "comparisons"),
    [
        ("fit_triplets", [[0, 1, 2], [3, 4, 5]]),
        ("fit_quadruplets", [[0, 1, 2, 3], [3, 4, 5, 3]]),
    ],
)
def test_comparisons_of_lmnn_report_their_iterations(method, comparisons):
    recorder = Recorder()
    model = LMNN(2).set_callbacks(recorder)
    getattr(model, method)(comparisons, X=data()[0])
    assert recorder.events.count(("end", "iteration")) == model.n_iter_ > 0
    assert recorder.events[-1] == ("teardown", "fit")
    np.testing.assert_array_equal(
        recorder.values("end")[-1]["fitted"].components_, model.components_
    )


@with_sklearn_callbacks
class TestPartialFit:
    def test_is_a_fit_of_one_epoch(self):
        recorder = Recorder()
        clone(SGD).set_callbacks(recorder).partial_fit(*data())
        assert recorder.events == [
            ("setup", "fit"), ("begin", "fit"), ("begin", "iteration"), ("end", "iteration"), ("end", "fit"),
            ("teardown", "fit"),
        ]  # fmt: skip
        with pytest.raises(ValueError, match="does not vary"):
            clone(SGD).set_callbacks(recorder).partial_fit(np.ones((6, 2)), [0, 1] * 3)
        assert recorder.events[-1] == ("teardown", "fit")

    def test_the_number_of_epochs_of_a_fit_is_announced_where_it_is_known(self):
        recorder = Recorder(stop=True)
        clone(SGD).set_params(max_iter="auto").set_callbacks(recorder).fit(*data())
        assert recorder.calls[0][1].max_subtasks is None


@with_sklearn_callbacks
class TestCallbacksOfScikitLearn:
    @pytest.fixture
    def wine(self):
        pytest.importorskip("pandas")
        return load_wine(return_X_y=True, as_frame=True)

    def test_progress_bar(self, wine, capsys, monkeypatch):
        pytest.importorskip("rich")
        from sklearn.callback import ProgressBar

        monkeypatch.setenv("COLUMNS", "120")
        model = (
            make_pipeline(StandardScaler(), NCA(2, max_iter=4))
            .set_callbacks(ProgressBar())
            .fit(*wine)
        )
        assert re.search(r"NCA - fit\b.*100%", capsys.readouterr().out)
        pickle.loads(pickle.dumps(clone(model))).fit(*wine)
        assert re.search(r"NCA - fit\b.*100%", capsys.readouterr().out)

    @pytest.mark.slow
    @pytest.mark.long
    @pytest.mark.filterwarnings(
        "ignore:The estimator KNeighborsClassifier does not support callbacks"
    )
    def test_progress_bar_of_a_search_in_several_processes(self, wine, capsys, monkeypatch):
        pytest.importorskip("rich")
        from sklearn.callback import ProgressBar

        monkeypatch.setenv("COLUMNS", "120")
        pipeline = make_pipeline(StandardScaler(), NCA(2, tol=1e-2), KNeighborsClassifier())
        search = GridSearchCV(pipeline, {"nca__n_components": [1, 3]}, cv=2, n_jobs=2)
        search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(*wine)
        assert len(re.findall("NCA - fit", capsys.readouterr().out)) == 2 * 2 + 1
        assert search.best_score_ > 0.9

    def test_scoring_monitor(self, wine):
        from sklearn.callback import ScoringMonitor

        def accuracy(model, X, y):
            return KNeighborsClassifier(1).fit(model.transform(X), y).score(model.transform(X), y)

        monitor = ScoringMonitor(scoring={"accuracy": accuracy})
        X, y = wine
        model = NCA(2, max_iter=4).set_callbacks(monitor).fit(StandardScaler().fit_transform(X), y)
        scored = [row["task_name"] for row in monitor.get_logs().data if row["accuracy"] > 0.9]
        assert sorted(scored) == ["fit"] + ["iteration"] * model.n_iter_

    def test_what_is_no_callback_is_refused(self):
        with pytest.raises(TypeError, match="FitCallback"):
            NCA().set_callbacks(print)


@pytest.mark.long
@pytest.mark.parametrize(("absent", "has_callbacks"), [("sklearn.callback", False), ("rich", None)])
def test_without_what_callbacks_need_fits_are_the_same(absent, has_callbacks):
    """scikit-learn before 1.9 has no callbacks; rich is for its progress bars only."""
    code = f"""
import sys, pickle, warnings
import sklearn.model_selection, sklearn.neighbors, sklearn.pipeline, sklearn.preprocessing, sklearn.datasets
from threadpoolctl import threadpool_limits
sys.modules[{absent!r}] = None
import nearkin
X, y, estimators = pickle.loads(sys.stdin.buffer.read())
warnings.simplefilter("ignore")
with threadpool_limits(1, user_api="blas"):
    maps = [estimator.fit(X, y).components_ for estimator in estimators]
sys.stdout.buffer.write(pickle.dumps((maps, hasattr(nearkin.NCA(), "set_callbacks"))))
"""
    estimators = [*DESCENTS, SGD]
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((*data(), estimators)),
        capture_output=True,
        check=True,
    )
    maps, found = pickle.loads(done.stdout)
    assert found == (
        find_spec("sklearn.callback") is not None if has_callbacks is None else has_callbacks
    )
    for estimator, components in zip(estimators, maps, strict=True):
        np.testing.assert_array_equal(components, clone(estimator).fit(*data()).components_)
