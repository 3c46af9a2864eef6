"""Who is near whom: the k nearest rows overall, of the same class, of the other classes; the closest pairs of classes.

What this package adds to a search is the class: a neighbour list is a row of a sparse matrix, `G[i, j]` is the distance
from row i to its neighbour j.

* A row is never its own neighbour, even among exact duplicates.
* Where fewer rows exist than were asked for, all of them are listed. A class of one row has no kin: its list is empty.
* Which of several tied rows is taken is unspecified, but the same for the same input.

`lists.py` asks the questions; `search.py` answers them exactly (scikit-learn's search: multi-threaded, blocked,
deterministic), with a neighbours transformer or from distances that are given; `inverted.py` answers approximately.
"""

from .choice import choose_search as choose_search
from .choice import searcher as searcher
from .ivf import ApproximateSearch as ApproximateSearch
from .lists import BYTES_PER_PAIR as BYTES_PER_PAIR
from .lists import closest_pairs as closest_pairs
from .lists import nearest as nearest
from .lists import nearest_other_class as nearest_other_class
from .lists import nearest_same_class as nearest_same_class
from .search import EXACT as EXACT
from .search import Index as Index
from .search import Searcher as Searcher
