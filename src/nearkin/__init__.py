"""nearkin: learn the space in which nearest neighbours are right."""

from __future__ import annotations

from importlib import import_module as _import_module

TYPE_CHECKING = False  # as in typing, which is slow to import
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

__version__ = "0.4.0"
# The names that are not in `estimators`, and their modules.
_ELSEWHERE = {
    "ApproximateSearch": "neighbors",
    "EmbeddingAdapter": "vectors",
    "Matcher": "vectors",
    "Migration": "vectors",
    "NCAClassifier": "tables",
    "NCARegressor": "tables",
    "TableEncoder": "tables",
    "label_issues": "tables",
}


def load(path: str | PathLike[str]) -> Any:
    """Load a model saved by `nearkin compare --save`, or an adapter by `nearkin adapt --save`.

    The file holds arrays and text, and everything in it is checked: loading a file from somebody
    else runs no code from it.

    Parameters
    ----------
    path : str or path-like
        A safetensors file. Those of version 0.3 can be read, too.

    Returns
    -------
    SavedModel or EmbeddingAdapter
        A model has `predict`, `details` and `transform`, which take tables as they are: see
        `nearkin.app.loading.SavedModel`. An adapter, or a map of `nearkin migrate`, is a fitted
        `EmbeddingAdapter`.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no model, is damaged, or was written by a newer nearkin; the message names the
        field and the remedy.
    ImportError
        If the packages of the command are missing: `pip install "nearkin[app]"`.

    Examples
    --------
    After `nearkin compare measurements.csv --target species --save model.safetensors`:

    >>> import nearkin, pandas as pd
    >>> model = nearkin.load("model.safetensors")  # doctest: +SKIP
    >>> model.predict(pd.read_csv("new.csv"))  # doctest: +SKIP
    array(['setosa', 'virginica'], dtype='<U10')
    """
    try:
        return _import_module(f"{__name__}.app.loading").load(path)
    except ModuleNotFoundError as error:
        raise ImportError(
            f'nearkin.load needs {error.name}: pip install "nearkin[app]".'
        ) from error


if TYPE_CHECKING:
    from .estimators import *  # noqa: F403 - the names in its __all__
    from .estimators import __all__ as _methods
    from .neighbors import ApproximateSearch as ApproximateSearch
    from .tables import NCAClassifier as NCAClassifier
    from .tables import NCARegressor as NCARegressor
    from .tables import TableEncoder as TableEncoder
    from .tables import label_issues as label_issues
    from .vectors import EmbeddingAdapter as EmbeddingAdapter
    from .vectors import Matcher as Matcher
    from .vectors import Migration as Migration

    __all__ = [*_methods, *_ELSEWHERE, "load"]
else:

    def __getattr__(name: str) -> object:
        """Import a name when it is first used, which makes `import nearkin` fast."""
        if name == "__all__":
            return [*_import_module(f"{__name__}.estimators").__all__, *_ELSEWHERE, "load"]
        module = f"{__name__}.{name}"
        try:
            return _import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
        if name.startswith("_") or name not in __getattr__("__all__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        value = getattr(_import_module(f"{__name__}.{_ELSEWHERE.get(name, 'estimators')}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
