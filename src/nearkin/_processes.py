"""Processes that Ctrl-C does not reach."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any


@contextmanager
def deaf_processes() -> Iterator[None]:
    """Start processes that Ctrl-C and the closing of the terminal do not reach.

    The parent process ends them. It handles a signal that arrives in this context at the end of the
    context, so that none is lost and no process is half started.
    """
    deaf: list[int] = [signal.SIGINT, signal.SIGHUP]
    late: list[int] = []

    def postpone(number: int, frame: Any) -> None:
        late.append(number)

    # Python 3.11 starts it with the first process, and then unblocks SIGINT
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, deaf)  # processes inherit this
    handlers = dict[int, Any]()
    with suppress(ValueError):  # not the main thread
        for number in (*deaf, signal.SIGTERM):
            handlers[number] = signal.signal(number, postpone)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in late:
            signal.raise_signal(number)
