"""The code in the documents runs, block after block as a reader would paste them."""

import re
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.filterwarnings("ignore:faiss was imported before")
def test_scaling():
    text = (DOCS / "scaling.md").read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, names)
    Z = names["pipeline"].transform(names["X"])
    squares = np.square(Z[names["numbers"]] - Z[:3, None]).sum(axis=2)
    np.testing.assert_allclose(names["distances"], squares, atol=1e-2)
