"""What a fit tells the callbacks of scikit-learn (progress bars, monitors) while it runs. A leaf.

An estimator derives from `CallbackSupportMixin` (`LinearEmbedding` does), decorates `fit` with `with_callbacks` and
reports it as a `FitTask` of some steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn < 1.9: nobody listens

    class _Silence:
        def subcontext(self, **_: Any) -> _Silence:
            return self

        def call_on_fit_task_begin(self, **_: Any) -> _Silence:
            return self

        def call_on_fit_task_end(self, **_: Any) -> bool:
            return False

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where scikit-learn's would, without `set_callbacks`."""

        def _init_callback_context(self, **_: Any) -> _Silence:
            return _Silence()

    def _with_callbacks(method: Method) -> Method:
        return method


with_callbacks: Callable[[Method], Method] = _with_callbacks  # scikit-learn's comes without types


class FitTask:
    """A fit that is under way, and its steps.

    It begins where it is made, the first thing in `fit`, and is over at `end`. A fit that raises has not ended;
    `with_callbacks` sees to it that callbacks are torn down even so.

    Parameters
    ----------
    estimator : estimator
    X, y
        As `fit` was given them: callbacks score on them, by the names of the columns and of the classes.
    n_steps : int or None
        How many steps there will be at most; None where the rows decide.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, n_steps: int | None) -> None:
        self._about = {"estimator": estimator, "X": X, "y": y}
        context = estimator._init_callback_context(max_subtasks=n_steps)
        self._context = context.call_on_fit_task_begin(**self._about)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Report the block as a step.

        A callback that asks to stop here is not heard: no later step can do without this one, and there is no map
        before the last. To end such a fit, a callback raises an exception.
        """
        context = self._context.subcontext(task_name=name).call_on_fit_task_begin(**self._about)
        yield
        context.call_on_fit_task_end(**self._about)

    def iteration(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        """Report an iteration of a descent; say whether a callback asks to stop.

        Parameters
        ----------
        attributes : callable that returns a dict
            What the estimator would have learned if it stopped now; called only if a callback wants to know.
        """
        context = self._context.subcontext(task_name="iteration").call_on_fit_task_begin(**self._about)
        return bool(context.call_on_fit_task_end(**self._about, reconstruction_attributes=attributes))

    def end(self) -> None:
        """Report that the estimator is fitted: all its attributes are set."""
        self._context.call_on_fit_task_end(**self._about, reconstruction_attributes={})
