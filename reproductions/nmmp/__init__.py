"""Neighborhood MinMax Projections (Nie, Xiang and Zhang, IJCAI 2007)."""

from . import experiments

__all__ = ["experiments"]
