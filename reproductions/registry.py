"""All experiments, paper by paper."""

from types import ModuleType

from . import discriminative_projections, dne, nca, nmmp, tdl, tdl_mnist
from .experiment import Experiment

PAPERS: tuple[ModuleType, ...] = (
    nmmp,
    dne,
    nca,
    discriminative_projections,
    tdl,
    tdl_mnist,
)
EXPERIMENTS: dict[str, Experiment] = {one.name: one for paper in PAPERS for one in paper.EXPERIMENTS}
