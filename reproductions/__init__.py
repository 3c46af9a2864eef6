"""The experiments of the five papers, repeated: our numbers beside the printed ones (`python -m
reproductions`).
"""

from .data import Data, MissingDataError
from .experiment import Experiment, Run
from .registry import EXPERIMENTS

__all__ = ["EXPERIMENTS", "Data", "Experiment", "MissingDataError", "Run"]
