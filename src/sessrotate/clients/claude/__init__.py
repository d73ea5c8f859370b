"""Claude Code: one format, `projects/<slug>/<uuid>.jsonl`.

Rule: nothing is loaded before it is asked for.
"""
