"""All experiments, paper by paper."""

from types import ModuleType

from . import (
    discriminative_projections,
    dne,
    dp_table,
    nca,
    nca_video,
    neural_nca,
    nmmp,
    tdl,
    tdl_losses,
    tdl_mnist,
)
from .experiment import Experiment

PAPERS: tuple[ModuleType, ...] = (
    nmmp,
    dne,
    nca,
    neural_nca,
    nca_video,
    discriminative_projections,
    dp_table,
    tdl,
    tdl_losses,
    tdl_mnist,
)
EXPERIMENTS: dict[str, Experiment] = {
    one.name: one for paper in PAPERS for one in paper.EXPERIMENTS
}
