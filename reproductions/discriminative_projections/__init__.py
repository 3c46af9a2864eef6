"""Discriminative Projections (Wang and Mahadevan)."""

from . import figures, tables

__all__ = ["figures", "tables"]
