"""The head of every page that sessrotate writes: style, script, and a policy that allows no other.

Rule: only the style and script whose hashes are in the policy apply, and the page uses no network.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources


def head(title: str, style: str, script: str, *, pictures: bool = False) -> str:
    """Return the beginning of a page, to the end of its `head`.

    `title` is HTML text, already escaped. With `pictures`, the page may show its own images.
    """
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            *(["img-src data:"] if pictures else []),
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
<script>{script}</script>
</head>
"""


def asset(package: str, name: str) -> str:
    """Return the text of a file in the `assets` of a package of ours."""
    found = resources.files(f"sessrotate.{package}").joinpath("assets", name)
    return found.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
