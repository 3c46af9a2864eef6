"""How a descent reports its iterations to the callbacks of scikit-learn (progress bars, monitors).
A leaf.

An estimator derives from `CallbackSupportMixin`, decorates `fit` with `with_callbacks` and reports
a `FitTask`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn < 1.9: no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands where scikit-learn's would, without `set_callbacks`."""

    def _with_callbacks(method: Method) -> Method:
        return method


with_callbacks: Callable[[Method], Method] = _with_callbacks  # scikit-learn's comes without types


class FitTask:
    """A fit and its iterations.

    It begins when it is made, the first thing in `fit`, and is over at `end`. A fit that raises has
    not ended; `with_callbacks` sees to it that callbacks are torn down even so.

    Parameters
    ----------
    estimator : estimator
    X, y
        As `fit` was given them: callbacks score on them, by the names of the columns and of the
        classes.
    n_iterations : int or None
        How many iterations there will be at most; None where the rows decide.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, n_iterations: int | None) -> None:
        self._about = {"estimator": estimator, "X": X, "y": y}
        self._context: Any = None  # of no callbacks
        if hasattr(estimator, "_init_callback_context"):
            context = estimator._init_callback_context(max_subtasks=n_iterations)
            self._context = context.call_on_fit_task_begin(**self._about)

    def iteration(self, attributes: Callable[..., dict[str, Any]], *state: Any) -> bool:
        """Report an iteration of a descent; say whether a callback requests to stop.

        Parameters
        ----------
        attributes : callable that returns a dict
            What the estimator would have learned if it stopped now; called only if a callback wants
            to know.
        state
            Where the descent is: arguments of `attributes`.
        """
        if self._context is None:
            return False
        context = self._context.subcontext(task_name="iteration")
        context.call_on_fit_task_begin(**self._about)
        return bool(
            context.call_on_fit_task_end(
                **self._about, reconstruction_attributes=partial(attributes, *state)
            )
        )

    def end(self) -> None:
        """Report that the estimator is fitted: all its attributes are set."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._about, reconstruction_attributes={})
