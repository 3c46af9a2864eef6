"""A picture takes longer than the comparison of a small table: tests that are not about it go
without.
"""

from pathlib import Path

import pytest

from benchmarks.tools.browser import Browser, find_chromium
from nearkin.app.cli import NEEDED

for name in NEEDED:
    pytest.importorskip(name, reason=f"the command needs {name}: pip install 'nearkin[app]'")


@pytest.fixture
def undrawn(monkeypatch):
    """Write no more of a picture than how such a file begins."""
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig",
        lambda figure, path, **options: Path(path).write_bytes(b"\x89PNG"),
    )


@pytest.fixture(scope="module")
def address():
    """Return the address of a scheduler in this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


def needs_chromium(test):
    """Mark a test in a browser: slow, and skipped where there is none."""
    return pytest.mark.slow(
        pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed")(test)
    )


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


@pytest.fixture
def look(browser):
    """Return a function that opens a page and tests what holds for each: it is drawn whole, fits its
    width, has the colours of the theme, and asks nobody for anything.
    """

    def opened(page, width, *, dark=False):
        browser.open(page, width=width, dark=dark)
        browser.wait_for("document.documentElement.dataset.drawn === 'yes'")
        charts = "[...document.querySelectorAll('.chart')].every(host => host.querySelector('svg'))"
        assert browser.evaluate(charts)
        assert browser.evaluate("typeof pwned") == "undefined"
        assert browser.evaluate("document.images.length") == 0
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert "NaN" not in browser.evaluate("document.querySelector('main').outerHTML")
        colour = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert colour == ("rgb(20, 24, 28)" if dark else "rgb(255, 255, 255)")
        assert browser.console == browser.requests == []

    return opened
