"""All experiments, in the order of the papers' years."""

from types import ModuleType

from .experiment import Experiment

PAPERS: tuple[ModuleType, ...] = ()
EXPERIMENTS: dict[str, Experiment] = {one.name: one for paper in PAPERS for one in paper.EXPERIMENTS}
