"""Neighbourhood Components Analysis (Goldberger, Roweis, Hinton and Salakhutdinov, NIPS 2004)."""

from . import experiments, network, video

__all__ = ["experiments", "network", "video"]
