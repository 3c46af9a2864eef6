"""nearkin: learn the space in which nearest neighbours are right."""

from importlib import import_module as _import_module

__version__ = "0.3.0"
# The names that are not in `estimators`, and their modules.
_ELSEWHERE = {
    "ApproximateSearch": "neighbors",
    "EmbeddingAdapter": "vectors",
    "Matcher": "vectors",
    "Migration": "vectors",
    "NCAClassifier": "tables",
    "NCARegressor": "tables",
    "Procrustes": "vectors",
    "TableEncoder": "tables",
    "label_issues": "tables",
}
TYPE_CHECKING = False  # as in typing, which is slow to import
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
    from .vectors import Procrustes as Procrustes

    __all__ = [*_methods, *_ELSEWHERE]
else:

    def __getattr__(name: str) -> object:
        """Import a name when it is first used, which makes `import nearkin` fast."""
        if name == "__all__":
            return [*_import_module(f"{__name__}.estimators").__all__, *_ELSEWHERE]
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
