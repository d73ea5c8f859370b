"""A model of the next order of writes: a small disk, others who touch it, the rules, a judge.

`rules.py` begins with the rules. `disk.py` and `world.py` are the outside, `judge.py` says what is
wrong, `histories.py` tries every history of a short life, `jobs.py` chooses among them.
"""
