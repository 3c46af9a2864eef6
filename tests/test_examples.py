"""What the examples of the gallery promise holds. The documentation runs all of them when it is
built.
"""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive"),
]


def names_of(example):
    """Run an example, and return its variables."""
    plt = pytest.importorskip("matplotlib.pyplot")
    names = runpy.run_path(str(EXAMPLES / example))
    plt.close("all")
    return names


def test_clusters_on_a_learned_metric_agree_better_with_the_classes():
    figures = names_of("methods/plot_learned_metric.py")["figures"]
    for method in ("k-means", "spectral clustering"):
        assert figures["learned space"][method] > figures["pixels"][method] + 0.03


def test_a_table_is_predicted():
    pytest.importorskip("pandas")
    assert all(mean > 0.35 for mean in names_of("tables/plot_columns.py")["r2"].values())
