"""Vectors: adapt, match, migrate, export."""
