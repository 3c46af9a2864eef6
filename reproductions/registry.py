"""All experiments, paper by paper."""

from types import ModuleType

from . import discriminative_projections, dne, nca, nmmp, tdl
from .experiment import Experiment

PAPERS: tuple[ModuleType, ...] = (
    nmmp.experiments,
    dne.experiments,
    nca.experiments,
    nca.network,
    nca.video,
    discriminative_projections.figures,
    discriminative_projections.tables,
    tdl.experiments,
    tdl.losses,
    tdl.mnist,
)
EXPERIMENTS: dict[str, Experiment] = {
    one.name: one for paper in PAPERS for one in paper.EXPERIMENTS
}
