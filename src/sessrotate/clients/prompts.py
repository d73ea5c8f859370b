"""Which records are prompts that a person typed, and what was typed. Pure.

Rule: clients write many records, and texts beside what was typed, in the user's name; only what a
person asked is a prompt. Which text is whose, the client's view says (`Text.is_note`). This is the
one place that says what a record asks, for turns, headings, titles, search and the list.

A command (`/review`, `!ls`) begins a turn too; `/compact` begins none, because it asks nothing.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from msgspec.structs import replace

from sessrotate.clients.view import Block, Image, Text, View

_INTERRUPTED: Final = "[Request interrupted by user"
_COMPACT: Final = ("/compact", "/compact ")


def is_note(block: Block) -> bool:
    """Return whether a block is what the client or an editor put beside what was typed."""
    return isinstance(block, Text) and block.is_note


def is_of_client(view: View) -> bool:
    """Return whether the client wrote this itself: a note, a reminder, a command's output."""
    if view.is_boundary or view.is_summary:
        return False
    return (
        view.is_meta
        or view.kind == "system"
        or (bool(view.blocks) and all(map(is_note, view.blocks)))
    )


def asked(view: View) -> str | None:
    """Return what a person, or whoever started an agent, asked with a record; None if nobody did.

    That is what was typed, and "" where only a picture was sent.
    """
    if view.kind != "user" or view.is_meta or view.is_summary:
        return None
    typed = [block for block in view.blocks if _is_typed(block)]
    texts = (block.text.strip() for block in typed if isinstance(block, Text))
    said = "\n".join(filter(None, texts))
    return None if not typed or said.startswith(_INTERRUPTED) else said


def is_prompt(view: View) -> bool:
    """Return whether a person asked this, so that a turn begins here."""
    said = None if view.is_sidechain else asked(view)
    return said is not None and not _asks_to_compact(said)


def is_typed(view: View) -> bool:
    """Return whether a person typed this: a prompt, or a command that begins no turn."""
    return not view.is_sidechain and asked(view) is not None


def is_heading(view: View, block: Block) -> bool:
    """Return whether a prompt begins with this block: what its turn is called by.

    Results of tools may stand before it: a person may put words to what they allow or refuse.
    """
    return is_prompt(view) and block is next(filter(_is_typed, view.blocks))


def typed_first(view: View) -> View:
    """Return a prompt with what was typed before its pictures, and these before all else.

    So that its first block is what the turn is called by (`is_heading`). Other records stay as they
    are, and so does one with a tool's result, which belongs to what came before.
    """
    if not is_prompt(view) or not all(isinstance(block, Text | Image) for block in view.blocks):
        return view
    return replace(view, blocks=tuple(sorted(view.blocks, key=_rank)))


def _rank(block: Block) -> int:
    return 2 if is_note(block) else int(isinstance(block, Image))


def _is_typed(block: Block) -> TypeGuard[Text | Image]:
    return isinstance(block, Text | Image) and not is_note(block)


def _asks_to_compact(said: str) -> bool:
    return said == _COMPACT[0] or said.startswith(_COMPACT[1])
