"""A model of the next order of writes: a small disk, others who touch it, our rules, a judge.

`rules.py` has the rules as a page. `disk.py` and `world.py` are the outside; `reading.py`,
`exchanging.py` and `tool.py` follow the rules; `judge.py` says what is wrong; `histories.py` tries
every history of a short life, and `jobs.py` chooses which.
"""
