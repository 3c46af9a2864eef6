"""Objectives for descent: free functions that return a value and its gradient, computed in blocks
without n x n memory.
"""
