"""Losses for descent, and their formulas: functions that return a value and its gradient.

They compute in blocks, without n x n memory.
"""
