"""Cutting a session file at its boundaries, and proving that the pieces are the whole.

Promise: segments + headers + manifest give back the source byte for byte, or say which piece is
wrong. In comes a session file or a folder of segments; out comes a `SplitPlan`, a `Manifest`, a
verified `SegmentSet`. May import `clients`, `parsing`, `system`, `fs`.

Rule: the manifest and the chain of headers each prove a set alone; neither is trusted as a path.
"""
