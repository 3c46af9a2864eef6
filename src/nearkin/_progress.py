"""A progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


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
