"""k nearest neighbours: of all rows, of the same class, of other classes; the closest pairs of
classes.

A neighbour list is a row of a sparse matrix: `G[i, j]` is the distance from row i to its neighbour
j.

* A row is never its own neighbour, even among exact duplicates.
* Where fewer rows exist than requested, all of them are listed. A class of one row has an empty
  list.
* Which of several equally near rows is taken is unspecified, but the same for the same input.

`lists.py` searches exactly (scikit-learn's search: multi-threaded, blocked, deterministic), with a
neighbours transformer, or among distances that are given; `approximate.py` approximately, with
`inverted_lists.py` and `brute_force.py`.
"""

from .approximate import (
    ApproximateSearch,
    choose_search,
    searcher,
)
from .brute_force import squares_to_nearest
from .identical import identical_rows
from .lists import (
    EXACT,
    Index,
    Searcher,
    closest_listed,
    closest_pairs,
    first,
    nearest,
    nearest_other_class,
    nearest_same_class,
    neighbor_lists,
)

__all__ = [
    "EXACT",
    "ApproximateSearch",
    "Index",
    "Searcher",
    "choose_search",
    "closest_listed",
    "closest_pairs",
    "first",
    "identical_rows",
    "nearest",
    "nearest_other_class",
    "nearest_same_class",
    "neighbor_lists",
    "searcher",
    "squares_to_nearest",
]
