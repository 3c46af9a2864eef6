"""Discriminant Neighborhood Embedding (Zhang, Xue, Lu and Guo, ICML 2006)."""

from . import experiments

__all__ = ["experiments"]
