"""What becomes of archives over time: prune, trash, compress, putting sessions away; and back.

Promise: nothing is removed unless a rule of the user says so, and nothing at once. In come
archives, a policy and the time; out come plans with a reason for each segment, and their effect.
May import `in_place` and below.

To put a session away, as `archive` does, is to move it as a whole (live file, agents' transcripts,
tool results) out of its client's folder into its archive, where its sealed segments are.

Rule: `policy` decides and is pure; every removed segment passes through the trash.
"""
