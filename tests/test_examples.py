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


@pytest.mark.slow
@pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not installed")
def test_a_table_is_predicted_and_drawn(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("sys.argv", ["table.py", str(tmp_path / "columns.png")])
    explained = runpy.run_path(str(EXAMPLES / "table.py"))["main"]()
    assert all(share > 0.35 for share in explained.values())
    assert (tmp_path / "columns.png").stat().st_size > 10_000
