"""k nearest neighbours: of all rows, of the same class, of other classes; the closest pairs of
classes.

A neighbour list is a row of a sparse matrix: `G[i, j]` is the distance from row i to its neighbour
j.

* A row is never its own neighbour, even among exact duplicates.
* Where fewer rows exist than requested, all of them are listed. A class of one row has an empty
  list.
* Which of several equally near rows is taken is unspecified, but the same for the same input.

`lists.py` searches exactly (scikit-learn's search: multi-threaded, blocked, deterministic), with a
neighbours transformer, or among distances that are given; `approximate.py` approximately.
"""

from .approximate import ApproximateSearch as ApproximateSearch
from .approximate import choose_search as choose_search
from .approximate import searcher as searcher
from .lists import EXACT as EXACT
from .lists import Index as Index
from .lists import Searcher as Searcher
from .lists import closest_listed as closest_listed
from .lists import closest_pairs as closest_pairs
from .lists import first as first
from .lists import nearest as nearest
from .lists import nearest_other_class as nearest_other_class
from .lists import nearest_same_class as nearest_same_class
from .lists import neighbor_lists as neighbor_lists
