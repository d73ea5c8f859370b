"""All sessions of the machine, and what is in one: the figures of `list` and `report`.

Promise: every byte is counted once. In come the clients' folders; out come the values of `model`
and `session_info`. May import `reading` and below, and of `in_place` only the plan of a rotation.

Rule: only reads, and only as much of a file as the figure needs.
"""
