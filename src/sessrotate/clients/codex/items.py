"""The contents of Codex's messages and of what tools gave → blocks.

Rule: what has another shape than clients write (0.20 to 0.169) is shown as `Unknown`, not lost.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from sessrotate.clients.codex.rows import inner, text
from sessrotate.clients.view import Image, Text, Thinking, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from sessrotate.clients.codex.rows import Payload
    from sessrotate.clients.view import Block

_DATA: Final = re.compile(r"data:([\w.+/-]{0,100})[^,]{0,100};base64,")


def content(value: Any) -> tuple[Block, ...]:
    """Return the blocks of a content, which is a text, a list of blocks, or nothing."""
    if isinstance(value, str):
        return (Text(value),) if value else ()
    if not isinstance(value, list):
        return ()
    return tuple(_block(each) for each in value)


def given(output: Any) -> tuple[tuple[Block, ...], bool]:
    """Return what a tool gave, and whether it says that it failed.

    Clients up to 0.77 wrote a text that is JSON: `{"output":…,"metadata":{"exit_code":…}}`; some
    an object with `content` and `success`.
    """
    if isinstance(output, str) and output.startswith('{"output":'):
        try:
            found = json.loads(output)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and isinstance(found.get("output"), str):
            return content(found["output"]), bool(inner(found, "metadata").get("exit_code"))
    if isinstance(output, dict):
        value = output.get("content", output.get("content_items"))
        blocks = content(value) or (Unknown("", output),)
        return blocks, output.get("success") is False
    return content(output), False


def _block(block: Any) -> Block:
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        return Unknown("", block)
    kind = text(block, "type") or ""
    return _BLOCKS.get(kind, _unknown)(block)


def _text(block: Payload) -> Block:
    said = text(block, "text")
    return _unknown(block) if said is None else Text(said)


def _image(block: Payload) -> Block:
    address = text(block, "image_url")
    if address is None:
        return _unknown(block)
    data = _DATA.match(address)
    if data is None:
        return Image("", "", address)
    return Image(data[1], address[data.end() :], "")


def _unknown(block: Payload) -> Block:
    return Unknown(text(block, "type") or "", block)


_BLOCKS: Final[dict[str, Callable[[Payload], Block]]] = {
    "input_text": _text,
    "output_text": _text,
    "text": _text,
    "summary_text": _text,
    "refusal": lambda block: Text(text(block, "refusal") or ""),
    "input_image": _image,
    "encrypted_content": lambda _block: Thinking(""),
}
"""Types of blocks, of the Responses API as the client writes them down."""
