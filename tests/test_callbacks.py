"""Fits tell scikit-learn's callbacks what they do, and do the same whether anybody listens or not."""

import pickle
import re
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearkin

from .test_contract import DESCENTS, VARIANTS, data

STEPS = {
    nearkin.DNE: ["graph", "scatter", "eigenproblem"],
    nearkin.LDE: ["within scatter", "between scatter", "eigenproblem"],
    nearkin.LFDA: ["local scales", "scatter", "eigenproblem"],
    nearkin.LPP: ["graph", "scatter", "eigenproblem"],
    nearkin.MFA: ["within scatter", "between scatter", "eigenproblem"],
    nearkin.RCA: ["total scatter", "within scatter", "eigenproblem"],
    nearkin.NMMP: ["within scatter", "between scatter", "eigenproblem"],
}
DESCENTS_OF = {nearkin.LMNN: "n_passes", nearkin.NCA: "n_init", nearkin.PairNCA: "n_init"}
listening = pytest.mark.skipif(find_spec("sklearn.callback") is None, reason="scikit-learn has callbacks from 1.9 on")
SPECTRAL = [*(v for v in VARIANTS if type(v) in STEPS)]
spectral_variant = pytest.mark.parametrize("estimator", SPECTRAL, ids=repr)
every_variant = pytest.mark.parametrize(
    "estimator", [v for v in VARIANTS if type(v) in {*STEPS, *DESCENTS_OF}], ids=repr
)


class Recorder:
    """A callback as the protocol wants it, which writes down all that it is told; on request it stops, or fails."""

    def __init__(self, stop=False, fail_at=None):
        self.stop = stop
        self.fail_at = fail_at
        self.told = []

    def setup(self, estimator, context):
        self._write("setup", context)

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self._write("begin", context, X=X, y=y)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self._write("end", context, X=X, y=y, fitted=fitted_estimator)
        return self.stop

    def teardown(self, estimator, context):
        self._write("teardown", context)

    def _write(self, event, context, **values):
        self.told.append((event, context, values))
        if event == self.fail_at:
            raise OSError(f"failed at {event}")

    @property
    def events(self):
        return [(event, context.task_name) for event, context, _ in self.told]


class PropagatedRecorder(Recorder):
    """Goes from a pipeline or a search down to its estimators, as progress bars do."""

    max_propagation_depth = None


def learned(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def assert_same_fit(model, other):
    assert learned(model).keys() == learned(other).keys()
    for name, value in learned(model).items():
        np.testing.assert_array_equal(value, learned(other)[name])


@listening
@every_variant
class TestEveryFit:
    def test_shows_the_rows_and_labels_that_it_was_given(self, estimator):
        X, y = data()
        words = list(np.array(["ant", "bee", "cat"])[y])
        recorder = Recorder()
        clone(estimator).set_callbacks(recorder).fit(X, words)
        hooks = [values for event, _, values in recorder.told if event in ("begin", "end")]
        assert all(values["X"] is X and values["y"] is words for values in hooks)

    def test_is_the_same_with_and_without_callbacks(self, estimator):
        silent = clone(estimator).fit(*data())
        assert_same_fit(clone(estimator).set_callbacks(Recorder()).fit(*data()), silent)

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


@listening
@spectral_variant
class TestSpectralFits:
    def test_tells_its_steps_in_order_one_inside_the_other(self, estimator):
        recorder = Recorder()
        clone(estimator).set_callbacks(recorder).fit(*data())
        steps = [(event, name) for name in STEPS[type(estimator)] for event in ("begin", "end")]
        assert recorder.events == [
            ("setup", "fit"), ("begin", "fit"), *steps, ("end", "fit"), ("teardown", "fit")
        ]  # fmt: skip

    def test_announces_as_many_steps_as_it_has(self, estimator):
        recorder = Recorder()
        clone(estimator).set_callbacks(recorder).fit(*data())
        root, *steps = recorder.told[0][1]
        assert root.max_subtasks == len(steps) == len(STEPS[type(estimator)])
        assert [step.max_subtasks for step in steps] == [0] * len(steps)
        assert all(step.parent is root for step in steps)

    def test_hands_over_the_fitted_estimator_at_the_end_and_nothing_before(self, estimator):
        X, y = data()
        recorder = Recorder()
        model = clone(estimator).set_callbacks(recorder).fit(X, y)
        *before, last = [values["fitted"] for event, _, values in recorder.told if event == "end"]
        assert before == [None] * len(STEPS[type(estimator)])
        np.testing.assert_array_equal(last.transform(X), model.transform(X))

    def test_goes_on_where_a_callback_asks_to_stop(self, estimator):
        recorder = Recorder(stop=True)
        model = clone(estimator).set_callbacks(recorder).fit(*data())
        assert_same_fit(model, clone(estimator).fit(*data()))
        assert recorder.events[-1] == ("teardown", "fit")

    def test_is_a_task_of_the_pipeline(self, estimator):
        recorder = PropagatedRecorder()
        pipeline = make_pipeline(StandardScaler(), clone(estimator)).set_callbacks(recorder).fit(*data())
        assert_same_fit(pipeline[-1], clone(estimator).fit(StandardScaler().fit_transform(data()[0]), data()[1]))
        root = recorder.told[0][1]
        assert root.estimator_name == "Pipeline"
        ours = [context for context in root if context.estimator_name == type(estimator).__name__]
        assert [context.task_name for context in ours] == ["fit", *STEPS[type(estimator)]]
        assert ours[0].parent is root
        assert recorder.events.count(("setup", "fit")) == recorder.events.count(("teardown", "fit")) == 1

    def test_is_a_task_of_the_search(self, estimator):
        recorder = PropagatedRecorder()
        steps = make_pipeline(StandardScaler(), clone(estimator))
        grid = {f"{type(estimator).__name__.lower()}__n_components": [1, 2]}
        search = GridSearchCV(steps, grid, cv=2, scoring=lambda *_: 0.0).set_callbacks(recorder).fit(*data())
        assert recorder.events.count(("end", STEPS[type(estimator)][-1])) == 2 * 2 + 1
        assert search.best_estimator_[-1].n_components_ == 1


@listening
@pytest.mark.parametrize("estimator", [v for v in VARIANTS if isinstance(v, DESCENTS)], ids=repr)
class TestDescents:
    def test_tells_every_iteration(self, estimator):
        recorder = Recorder()
        model = clone(estimator).set_callbacks(recorder).fit(*data())
        told = [event for event, name in recorder.events if name == "iteration"]
        assert told == ["begin", "end"] * model.n_iter_
        root = recorder.told[0][1]
        allowed = 200 if model.max_iter == "auto" else model.max_iter
        assert root.max_subtasks == getattr(model, DESCENTS_OF[type(model)]) * allowed

    def test_hands_over_the_map_so_far(self, estimator):
        X, y = data()
        recorder = Recorder()
        model = clone(estimator).set_callbacks(recorder).fit(X, y)
        *fitted, last, end = [values["fitted"] for event, _, values in recorder.told if event == "end"]
        assert len(fitted) + 1 == model.n_iter_
        np.testing.assert_array_equal(last.transform(X), model.transform(X))
        np.testing.assert_array_equal(end.transform(X), model.transform(X))
        assert not np.allclose(fitted[0].transform(X), model.transform(X))

    def test_stops_when_a_callback_asks_to(self, estimator):
        model = (
            clone(estimator)
            .set_params(**{DESCENTS_OF[type(estimator)]: 3})
            .set_callbacks(Recorder(stop=True))
            .fit(*data())
        )
        assert model.n_iter_ == 1
        assert model.loss_curve_[1] < model.loss_curve_[0]


@listening
class TestStochasticDescents:
    @staticmethod
    def model(**parameters):
        return nearkin.NCA(2, solver="sgd", tol=1.0, random_state=0, **parameters)

    @pytest.mark.parametrize(("max_iter", "announced"), [("auto", None), (12, 12)])
    def test_tells_every_epoch(self, max_iter, announced):
        recorder = Recorder()
        model = self.model(max_iter=max_iter).set_callbacks(recorder).fit(*data())
        told = [event for event, name in recorder.events if name == "iteration"]
        assert told == ["begin", "end"] * model.n_iter_
        assert recorder.told[0][1].max_subtasks == announced

    def test_hands_over_the_map_so_far_and_stops_when_asked_to(self):
        X, y = data()
        recorder = Recorder(stop=True)
        model = self.model(n_init=3).set_callbacks(recorder).fit(X, y)
        assert model.n_iter_ == 1
        fitted = [values["fitted"] for event, _, values in recorder.told if event == "end"]
        np.testing.assert_array_equal(fitted[0].transform(X), model.transform(X))

    def test_is_the_same_with_and_without_callbacks(self):
        model = self.model(max_iter=12)
        assert_same_fit(clone(model).set_callbacks(Recorder()).fit(*data()), clone(model).fit(*data()))

    def test_partial_fit_is_a_fit_of_one_epoch(self):
        recorder = Recorder()
        self.model().set_callbacks(recorder).partial_fit(*data())
        assert recorder.events == [
            ("setup", "fit"), ("begin", "fit"), ("begin", "iteration"), ("end", "iteration"), ("end", "fit"),
            ("teardown", "fit"),
        ]  # fmt: skip
        with pytest.raises(ValueError, match="does not vary"):
            self.model().set_callbacks(recorder).partial_fit(np.ones((6, 2)), [0, 1] * 3)
        assert recorder.events[-1] == ("teardown", "fit")


@listening
class TestCallbacksOfScikitLearn:
    @pytest.fixture
    def wine(self):
        return load_wine(return_X_y=True, as_frame=True)

    @pytest.mark.parametrize("wrap", [lambda dne: dne, lambda dne: make_pipeline(StandardScaler(), dne)])
    def test_progress_bar(self, wine, wrap, capsys, monkeypatch):
        pytest.importorskip("rich")
        from sklearn.callback import ProgressBar

        monkeypatch.setenv("COLUMNS", "120")
        model = wrap(nearkin.DNE()).set_callbacks(ProgressBar()).fit(*wine)
        assert re.search(r"DNE - fit\b.*100%", capsys.readouterr().out)
        pickle.loads(pickle.dumps(clone(model))).fit(*wine)
        assert re.search(r"DNE - fit\b.*100%", capsys.readouterr().out)

    @pytest.mark.filterwarnings("ignore:The estimator KNeighborsClassifier does not support callbacks")
    def test_progress_bar_of_a_search_in_several_processes(self, wine, capsys, monkeypatch):
        pytest.importorskip("rich")
        from sklearn.callback import ProgressBar

        monkeypatch.setenv("COLUMNS", "120")
        pipeline = make_pipeline(StandardScaler(), nearkin.DNE(), KNeighborsClassifier())
        search = GridSearchCV(pipeline, {"dne__n_neighbors": [1, 3]}, cv=2, n_jobs=2)
        search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(*wine)
        assert len(re.findall("DNE - fit", capsys.readouterr().out)) == 2 * 2 + 1
        assert search.best_score_ > 0.9

    def test_scoring_monitor(self, wine):
        from sklearn.callback import ScoringMonitor

        def accuracy(model, X, y):
            return KNeighborsClassifier(1).fit(model.transform(X), y).score(model.transform(X), y)

        monitor = ScoringMonitor(scoring={"accuracy": accuracy})
        nearkin.DNE().set_callbacks(monitor).fit(*wine)
        (row,) = monitor.get_logs().data
        assert (row["task_name"], row["accuracy"]) == ("fit", 1.0)

    def test_what_is_no_callback_is_refused(self):
        with pytest.raises(TypeError, match="FitCallback"):
            nearkin.DNE().set_callbacks(print)


def fits_in_another_process(preparation):
    """Return the maps that all variants learn in a process that is prepared by some code, as bytes."""
    code = f"""
import sys, pickle
import sklearn.model_selection, sklearn.neighbors, sklearn.pipeline, sklearn.preprocessing, sklearn.datasets
from threadpoolctl import threadpool_limits
{preparation}
import nearkin
X, y, variants = pickle.loads(sys.stdin.buffer.read())
with threadpool_limits(1, user_api="blas"):
    maps = [variant.fit(X, y).components_ for variant in variants]
sys.stdout.buffer.write(pickle.dumps((maps, hasattr(nearkin.DNE(), "set_callbacks"))))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps((*data(), VARIANTS)), capture_output=True, check=True
    )
    return pickle.loads(done.stdout)


def assert_our_fits(maps):
    for variant, components in zip(VARIANTS, maps, strict=True):
        np.testing.assert_array_equal(components, clone(variant).fit(*data()).components_)


def test_before_scikit_learn_1_9_fits_are_silent():
    maps, has_callbacks = fits_in_another_process("sys.modules['sklearn.callback'] = None")
    assert not has_callbacks
    assert_our_fits(maps)


def test_without_rich_nothing_breaks():
    maps, has_callbacks = fits_in_another_process("sys.modules['rich'] = None")
    assert has_callbacks == (find_spec("sklearn.callback") is not None)
    assert_our_fits(maps)
