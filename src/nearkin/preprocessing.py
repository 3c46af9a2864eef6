"""The former name of `nearkin.tables`."""

from . import tables
from ._messages import warn_user


def __getattr__(name: str) -> object:
    if name.startswith("_") or not hasattr(tables, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    warn_user(
        "nearkin.preprocessing is nearkin.tables now, and will be gone in version 0.5",
        FutureWarning,
    )
    return getattr(tables, name)
