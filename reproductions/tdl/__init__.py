"""Transductive Distance Learning (Li, Yang and Wang, ICML 2007)."""

from . import experiments, losses, mnist

__all__ = ["experiments", "losses", "mnist"]
