"""Compare learned metrics by k-NN on held-out rows; the result may be that none improves on the raw features.

Every method is scored by the same k-NN vote (for numbers, their mean) on the same held-out rows. Whatever a method
leaves open (its dimension, DNE's k) is chosen by validation inside the training rows; scaling is learned there, too.
The differences to k-NN on the raw features are paired by fold, and tested by the corrected resampled t-test (folds
share training rows, so their differences are not independent; Nadeau and Bengio 2003) with Holm's correction for the
number of methods.

Rows may lack a label: the others are held out and vote, as if alone; methods that can learn from all rows do so, and
are ranked beside those that cannot.
"""

from .comparison import compare as compare
from .embeddings import Shares as Shares
from .embeddings import held_out_accuracy as held_out_accuracy
from .embeddings import neighborhood_preservation as neighborhood_preservation
from .embeddings import same_class_among as same_class_among
from .methods import RAW as RAW
from .methods import Method as Method
from .methods import default_methods as default_methods
from .results import Comparison as Comparison
from .results import MethodResult as MethodResult
from .results import best_result as best_result
from .results import status_of as status_of
from .statistics import corrected_resampled_t_test as corrected_resampled_t_test
from .statistics import holm as holm
from .task import CLASSIFICATION as CLASSIFICATION
from .task import REGRESSION as REGRESSION
from .task import TASKS as TASKS
from .task import Task as Task
from .task import named_task as named_task
from .views import HeldOutMap as HeldOutMap
from .views import confusion as confusion
from .views import first_repeat as first_repeat
from .views import held_out_map as held_out_map
from .views import score_by_dimension as score_by_dimension
