"""Progress of a comparison: a callable of the user's, or a bar of rich, in terminals and in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[str, int, int], None]


@contextmanager
def progress_bar(progress: Any) -> Iterator[Callable[..., None]]:
    """Yield what to call with [what is done,] units done and units in all: the callable; for True a bar."""
    if progress is not True:
        yield progress or (lambda *_: None)
        return
    try:
        from rich.progress import Progress as Bar
        from rich.progress import TextColumn
    except ImportError as error:
        raise ImportError("progress=True needs rich: pip install rich (or nearkin[app])") from error
    with Bar(TextColumn("{task.description:20}", markup=False), *Bar.get_default_columns()[1:]) as bar:
        task = bar.add_task("comparing", total=None)

        def show(*about: Any) -> None:
            *what, done, total = about
            bar.update(task, description=what[0] if what else "comparing", completed=done, total=total)

        yield show
