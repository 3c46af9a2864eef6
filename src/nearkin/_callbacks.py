"""Reporting of iterations to scikit-learn's callbacks (progress bars, monitors).

An estimator derives from `CallbackSupportMixin`, decorates `fit` with `with_callbacks` and reports
to a `FitTask`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn < 1.9: no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """A stand-in for scikit-learn's class, without `set_callbacks`."""

    def _with_callbacks(method: Method) -> Method:
        return method


with_callbacks: Callable[[Method], Method] = _with_callbacks  # scikit-learn's is not typed


class FitTask:
    """A fit and its iterations.

    Create it first in `fit`, and call `end` last. If a fit raises an error, it does not end;
    `with_callbacks` then still tears down the callbacks.

    Parameters
    ----------
    estimator : estimator
    X, y
        As passed to `fit`, with the names of columns and classes: callbacks compute scores on them.
    n_iterations : int or None
        Maximum number of iterations; None if it depends on the rows.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, n_iterations: int | None) -> None:
        self._about = {"estimator": estimator, "X": X, "y": y}
        self._context: Any = None  # without callbacks
        if hasattr(estimator, "_init_callback_context"):
            context = estimator._init_callback_context(max_subtasks=n_iterations)
            self._context = context.call_on_fit_task_begin(**self._about)

    def iteration(self, attributes: Callable[..., dict[str, Any]], *state: Any) -> bool:
        """Report an iteration of a descent; return whether a callback asks to stop.

        Parameters
        ----------
        attributes : callable that returns a dict
            What the estimator would have learned if it stopped now; only called if a callback needs
            it.
        state
            State of the descent: the arguments of `attributes`.
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
        """Report that the estimator is fitted, with all attributes set."""
        if self._context is not None:
            self._context.call_on_fit_task_end(**self._about, reconstruction_attributes={})


# A progress bar.


@contextmanager
def progress_bar(progress: Any) -> Iterator[Callable[..., None]]:
    """Yield a function of [what is done,] units done and total units; for True it draws a bar."""
    if progress is not True:
        yield progress or (lambda *_: None)
        return
    try:
        from rich.progress import Progress as Bar
        from rich.progress import TextColumn
    except ImportError as error:
        raise ImportError("progress=True needs rich: pip install rich (or nearkin[app])") from error
    name = "comparing"
    with Bar(
        TextColumn("{task.description:20}", markup=False), *Bar.get_default_columns()[1:]
    ) as bar:
        task = bar.add_task(name, total=None)

        def show(*about: Any) -> None:
            *what, done, total = about
            bar.update(task, description=[name, *what][-1], completed=done, total=total)

        yield show
