"""A session for people and programs, each record once: one module for each format.

Rule: each has a function `pieces(session)` that yields the output in pieces, in constant memory.
"""
