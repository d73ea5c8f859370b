"""What becomes of archives over time: a policy, prune and trash, compress, put away.

Promise: nothing goes unless a rule of the user says so, and nothing at once. In come archives, a
policy and the time; out come plans with a reason for each segment, and their effect.
May import `in_place` and below.

Rule: the policy decides purely; what is removed passes through the trash.
"""
