"""k nearest neighbours among all rows, of the same class or of other classes, and closest pairs.

A neighbour list is a row of a sparse matrix: `G[i, j]` is the distance from row i to its neighbour
j.

* A row is never its own neighbour, even among exact duplicates.
* If fewer rows exist than requested, all of them are listed. A class of one row has an empty list.
* Ties between equally near rows are broken arbitrarily but deterministically.

`lists.py` searches exactly (scikit-learn's search: multi-threaded, blocked, deterministic), with a
neighbours transformer, or among given distances. `approximate.py` searches approximately, with
`inverted_lists.py` and `brute_force.py`. `search.py` takes one of them by name. `identical.py` and
`twins.py` find copies of rows.
"""

from .approximate import ApproximateSearch
from .brute_force import squares_to_nearest
from .identical import identical_rows
from .inverted_lists import import_faiss
from .lists import (
    EXACT,
    Index,
    Searcher,
    closest_listed,
    closest_pairs,
    exact_index,
    first,
    nearest,
    nearest_other_class,
    nearest_same_class,
    neighbor_lists,
)
from .search import choose_search, recall, searcher
from .twins import chained_rows, n_with_twin, twin_groups

__all__ = [
    "EXACT",
    "ApproximateSearch",
    "Index",
    "Searcher",
    "chained_rows",
    "choose_search",
    "closest_listed",
    "closest_pairs",
    "exact_index",
    "first",
    "identical_rows",
    "import_faiss",
    "n_with_twin",
    "nearest",
    "nearest_other_class",
    "nearest_same_class",
    "neighbor_lists",
    "recall",
    "searcher",
    "squares_to_nearest",
    "twin_groups",
]
