"""The pictures of the experiments."""

import numpy as np
import pytest

from reproductions.pictures import blank, panels, scatter


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class TestPictures:
    def test_panels_name_their_planes_and_classes(self, rng):
        pytest.importorskip("matplotlib")
        y = np.repeat(["a", "b"], 20)
        planes = {f"plane {number}": rng.normal(size=(40, 2)) for number in range(5)}
        figure = panels(planes, y, labelled=np.arange(40) < 3)
        drawn = [ax for ax in figure.axes if ax.axison]
        assert [ax.get_title() for ax in drawn] == list(planes)
        assert len(figure.axes) == 6  # two rows of three, the last place empty
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "labelled"]

    def test_many_rows_are_drawn_as_small_dots_that_do_not_vanish(self, rng):
        pytest.importorskip("matplotlib")
        for n, size in ((30, 16), (20_000, 3)):
            ax = blank(2, 2).subplots()
            scatter(ax, rng.normal(size=(n, 2)), np.arange(n) % 10)
            assert len(ax.collections) == 10
            assert all(dots.get_sizes() == [size] for dots in ax.collections)
            assert len({dots.get_facecolor().tobytes() for dots in ax.collections}) == 10
