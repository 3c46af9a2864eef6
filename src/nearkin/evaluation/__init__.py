"""Compare learned metrics by k-NN on held-out rows; the result may be that none improves on the raw
features.

Every method is scored by the vote of the nearest rows (for numbers, their mean) on the same
held-out rows. Whatever is left open (dimension, DNE's k, how many rows vote, the method itself in
the automatic choice) is chosen by validation inside the training rows; scaling is learned there,
too. The differences to the raw features are paired by row, and tested with Holm's correction for
the number of methods. Twins, identical rows or nearly, stay on one side of a split.

Rows may lack a label: the others are held out and vote, as if alone; methods that can learn from
all rows do so, and are ranked beside those that cannot.
"""

from ..graphs import joined_groups as joined_groups
from ..vectors.judgements import FOLDS as FOLDS
from ..vectors.judgements import UNSEEN as UNSEEN
from ..vectors.judgements import Judgements as Judgements
from ..vectors.judgements import Labels as Labels
from ..vectors.judgements import Relevance as Relevance
from ..vectors.judgements import judged_matrix as judged_matrix
from ..vectors.retrieval import RETRIEVAL_SCORES as RETRIEVAL_SCORES
from ..vectors.retrieval import Vectors as Vectors
from ..vectors.retrieval import retrieval_scores as retrieval_scores
from .adaptation import Adaptation as Adaptation
from .adaptation import Way as Way
from .adaptation import WayResult as WayResult
from .adaptation import compare_vectors as compare_vectors
from .adaptation import ways_of as ways_of
from .comparison import compare as compare
from .comparison import extend as extend
from .comparison import with_winner as with_winner
from .embeddings import Shares as Shares
from .embeddings import held_out_accuracy as held_out_accuracy
from .embeddings import neighborhood_preservation as neighborhood_preservation
from .embeddings import same_class_among as same_class_among
from .folds import CHOICE as CHOICE
from .methods import RAW as RAW
from .methods import Method as Method
from .methods import Reference as Reference
from .methods import all_methods as all_methods
from .methods import default_methods as default_methods
from .methods import default_references as default_references
from .protocol import few_decide as few_decide
from .protocol import first_repeat as first_repeat
from .results import Comparison as Comparison
from .results import Doubt as Doubt
from .results import MethodResult as MethodResult
from .results import RankingRow as RankingRow
from .results import difference_test as difference_test
from .results import leader as leader
from .results import ranked as ranked
from .scores import CLASSIFICATION as CLASSIFICATION
from .scores import REGRESSION as REGRESSION
from .scores import SCORES as SCORES
from .scores import TASKS as TASKS
from .scores import OwnVote as OwnVote
from .scores import Score as Score
from .scores import Task as Task
from .scores import Vote as Vote
from .scores import named_task as named_task
from .statistics import PairedTest as PairedTest
from .statistics import corrected_resampled_t_test as corrected_resampled_t_test
from .statistics import holm as holm
from .statistics import status_of as status_of
from .twins import n_with_twin as n_with_twin
from .twins import twin_groups as twin_groups
from .views import HeldOutMap as HeldOutMap
from .views import better_by_another_score as better_by_another_score
from .views import chosen_predictor as chosen_predictor
from .views import confusion as confusion
from .views import first_map as first_map
from .views import held_out_map as held_out_map
from .views import score_by_dimension as score_by_dimension
