"""Former place of what `nearkin.comparison`, `nearkin.statistics` and `nearkin.vectors` hold."""

import warnings

from .comparison import *  # noqa: F403 - the names in its __all__
from .statistics import *  # noqa: F403
from .vectors import *  # noqa: F403

warnings.warn(
    "nearkin.evaluation will be removed in version 0.5: comparisons of tables are in "
    "nearkin.comparison, those of vectors in nearkin.vectors, tests in nearkin.statistics.",
    FutureWarning,
    stacklevel=2,
)
