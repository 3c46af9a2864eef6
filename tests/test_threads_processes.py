"""Processes that Ctrl-C does not reach, started by one that loses no signal meanwhile."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from nearkin._threads import deaf_processes

CHILD = "import sys; print('ready', flush=True); sys.stdin.read(); print('alive')"
NUMBERS = [signal.SIGINT, signal.SIGHUP, signal.SIGTERM]


@pytest.fixture
def caught():
    """The signals that this process handles, in order."""
    caught = []
    before = {number: signal.signal(number, lambda n, _: caught.append(n)) for number in NUMBERS}
    yield caught
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("others", [False, True], ids=["alone", "beside another thread"])
def test_a_signal_is_handled_at_the_end(caught, number, others):
    """Another thread does not block it, so that it arrives at once."""
    over = threading.Event()
    if others:
        threading.Thread(target=over.wait).start()
    with deaf_processes():
        os.kill(os.getpid(), number)
        assert caught == []
    over.set()
    for _ in range(1000):  # the thread that receives it may have to wait for a core
        if caught:
            break
        time.sleep(0.01)
    assert caught == [number]


def test_processes_do_not_receive_it(caught):
    with deaf_processes():
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    with child:
        assert child.stdout.readline() == "ready\n"
        for number in (signal.SIGINT, signal.SIGHUP):
            child.send_signal(number)
        assert child.communicate()[0] == "alive\n"
    assert caught == []


def test_what_was_set_before_is_set_again(caught):
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    handlers = [signal.getsignal(number) for number in NUMBERS]
    with deaf_processes():
        pass
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == blocked
    assert [signal.getsignal(number) for number in NUMBERS] == handlers
