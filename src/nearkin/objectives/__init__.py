"""What descent minimizes: free functions that return a value and its gradient, in blocks, without n
x n memory.
"""
