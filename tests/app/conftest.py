"""A picture takes longer than the comparison of a small table: tests that are not about it go without."""

from pathlib import Path

import pytest


@pytest.fixture
def undrawn(monkeypatch):
    """Write no more of a picture than how such a file begins."""
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig", lambda figure, path, **options: Path(path).write_bytes(b"\x89PNG")
    )
