"""How much memory there is, and a refusal with a remedy where something would not fit. A leaf."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path


def available_memory() -> int | None:
    """Return the bytes that this process may still use, or None where the system does not report it.

    The smaller of the free memory of the machine and what its control group (a container) still allows.
    """
    limits = [limit for limit in (_free_memory(), _container_allowance()) if limit is not None]
    return min(limits) if limits else None


def _free_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # macOS: all of it, for want of a better figure
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return None


def _container_allowance() -> int | None:
    group = Path("/sys/fs/cgroup")
    try:
        cache = re.search(r"^inactive_file (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
        used = int((group / "memory.current").read_text()) - int(cache[1] if cache else 0)
        return int((group / "memory.max").read_text()) - used
    except (OSError, ValueError):  # no control group, or "max": no limit
        return None


def human_bytes(n_bytes: float) -> str:
    """Return e.g. '3.2 GB'."""
    exponent = min(int(math.log10(max(n_bytes, 1))) // 3, 4)
    return f"{n_bytes / 1000**exponent:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[exponent]}"


def require_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Raise a MemoryError that names `what` and the `remedy` when `n_bytes` are not to be had."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{what} needs about {human_bytes(n_bytes)} of memory, {human_bytes(available)} are free: {remedy}."
        )
