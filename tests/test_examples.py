"""What the examples promise holds."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.slow
@pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not installed")
def test_clusters_on_a_learned_metric_agree_better_with_the_classes():
    figures = runpy.run_path(str(EXAMPLES / "learned_metric.py"))["main"]()
    for method in ("k-means", "spectral"):
        assert figures["learned"][method] > figures["raw"][method] + 0.03
