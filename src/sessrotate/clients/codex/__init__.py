"""Codex CLI: one format, `sessions/YYYY/MM/DD/rollout-<time>-<uuid>.jsonl`.

Rule: nothing is loaded before it is asked for.
"""
