"""The progress bar of a comparison."""

import re
import sys

import pytest
from sklearn.datasets import load_iris

from nearkin._callbacks import progress_bar
from nearkin.comparison import compare


def test_a_bar(capsys):
    pytest.importorskip("rich")
    X, y = (part[::2] for part in load_iris(return_X_y=True))
    compare(X, y, methods=[], references=[], n_splits=2, n_repeats=1, refit=False, progress=True)
    assert re.search(r"majority .*100%", capsys.readouterr().out)
    with progress_bar(True) as show:  # as `compare_vectors` calls it
        show(1, 2)
    assert re.search(r"comparing .*50%", capsys.readouterr().out)


def test_a_callable_or_none(capsys):
    with progress_bar(False) as show:
        show("name", 1, 2)
    with progress_bar(print) as show:
        show(1, 2)
    assert capsys.readouterr().out == "1 2\n"


def test_without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(ImportError, match="progress=True needs rich"), progress_bar(True):
        pass
