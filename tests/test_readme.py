"""What the shop window promises runs."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the README is not installed")
def test_python_examples():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    X, y = load_wine(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    names = {"X": X, "y": y, "X_train": X_train, "X_test": X_test, "y_train": y_train, "y_test": y_test}
    names |= {"pairs": np.stack([X[:5], X[5:10]], axis=1), "X_new": X_test}
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 7
    for block in blocks:
        exec(block, names)
    plt.close("all")


@pytest.mark.skipif(not README.exists(), reason="the README is not installed")
def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target
