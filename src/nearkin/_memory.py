"""Memory: how much is free, and the refusal of what would not fit."""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from pathlib import Path


def require_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise a MemoryError that names `what` and the `remedy` if `n_bytes` are not available."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} needs about {human_bytes(n_bytes)} of memory, {human_bytes(available)} are "
            f"free: {remedy}."
        )


def available_memory() -> int | None:
    """Return the bytes that this process may still use, or None if the system does not report them.

    This is the smaller of the free memory of the machine and what its control group (a container)
    still allows.
    """
    limits = []
    meminfo, group = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError, AttributeError):  # Windows has no sysconf
        if meminfo.exists():
            free = re.search(r"^MemAvailable:\s+(\d+)", meminfo.read_text(), re.MULTILINE)
            limits += [int(free[1]) * 1024] if free else []
        else:  # macOS does not report free memory: count all
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # no control group, or "max": no limit
        statistics = (group / "memory.stat").read_text()
        cache = re.search(r"^inactive_file (\d+)$", statistics, re.MULTILINE)
        used = int((group / "memory.current").read_text()) - int(cache[1] if cache else 0)
        limits.append(int((group / "memory.max").read_text()) - used)
    return min(limits, default=None)


def human_bytes(n_bytes: float) -> str:
    """Return text such as "3.2 GB"."""
    exponent = min(int(math.log10(max(n_bytes, 1))) // 3, 4)
    return f"{n_bytes / 1000**exponent:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[exponent]}"
