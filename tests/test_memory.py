"""What is free, and the refusal of what would not fit."""

import pytest

from nearkin import _memory
from nearkin._memory import available_memory, human_bytes, require_memory


def test_what_would_not_fit_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: 2_000_000)
    require_memory(2_000_000, "A table", "take fewer rows")
    said = "A table needs about 3.2 GB of memory, 2 MB are free: take fewer rows."
    with pytest.raises(MemoryError, match=said):
        require_memory(3.2e9, "A table", "take fewer rows")


def test_nothing_is_refused_where_the_system_does_not_tell(monkeypatch):
    monkeypatch.setattr(_memory, "available_memory", lambda: None)
    require_memory(1e30, "A table", "take fewer rows")


def test_free_memory_is_some():
    assert available_memory() is None or available_memory() > 0


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1e3, "1 kB"), (3.2e16, "3.2e+04 TB")]
)
def test_sizes_are_short(number, text):
    assert human_bytes(number) == text
