"""The items of a Codex session, as types: what is sent to the model, and the blocks in it.

Rule: the types are those of the Responses API as the client writes them down (0.20 to 0.169), with
the fields that somebody reads. A version beside a field is the first one seen with it. Types that
have the same fields under other names are one class here; the tables say which names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Struct

from sessrotate.parsing.json_typed import Decoder, tagged

# ── blocks of a content ──────────────────────────────────────────────────────────────────────


class PlainText(Struct, tag_field="type"):
    """Something said."""

    text: str


class Refusal(Struct, tag_field="type"):
    """What the model said instead of an answer."""

    refusal: str = ""


class InputImage(Struct, tag_field="type"):
    """A picture: a `data:` URL, or an address."""

    image_url: str


class EncryptedContent(Struct, tag_field="type"):
    """What only the provider can read."""


if TYPE_CHECKING:
    Block = PlainText | Refusal | InputImage | EncryptedContent | dict[str, Any] | str
else:
    Block = tagged(
        {
            PlainText: (
                "input_text",
                "output_text",
                "summary_text",
                "reasoning_text",
                "text",  # in a completed `UserMessage` (0.150)
                "Text",  # in a completed `AgentMessage` (0.169)
            ),
            Refusal: ("refusal",),
            InputImage: ("input_image",),
            EncryptedContent: ("encrypted_content",),
        }
    )

Content = str | list[Block] | None
"""A list may hold plain JSON too: texts, and blocks of types that are not here."""

BLOCKS: Final[Decoder[Block]] = Decoder(Block)


# ── items ────────────────────────────────────────────────────────────────────────────────────


class _Item(Struct, tag_field="type"):
    """What all items have."""

    id: str | None = None

    @property
    def kind(self) -> str:
        """The item's type, in the client's word."""
        return str(self.__struct_config__.tag)


class _Provenance(Struct):
    type: str | None = None  # whose a block is: "user", "harness", "skills"


class _ItemMetadata(Struct):
    provenance: _Provenance | None = None


class Passthrough(Struct):
    """What the client notes of a message; the lists go with the message's blocks."""

    content_item_kinds: list[str] = []  # "user.text", "compaction.summary"
    content_item_metadata: list[_ItemMetadata] = []


class Message(_Item):
    """A message of the user, of the client in the user's name, of the model or a developer."""

    role: str | None = None
    content: Content = None
    passthrough: Passthrough = msgspec.field(  # 0.169
        name="internal_chat_message_metadata_passthrough", default_factory=Passthrough
    )


class Reasoning(_Item):
    """What was thought."""

    summary: list[Block] | None = None
    content: list[Block] | None = None


class Call(_Item):
    """A tool that the model wants used; the arguments are in one of three fields."""

    call_id: str | None = None
    name: str | None = None
    arguments: Any = UNSET  # a text that is JSON; an object in a `tool_search_call`
    input: Any = UNSET  # of a `custom_tool_call`: any text
    action: Any = None  # of the others: an object


class Output(_Item):
    """What a tool gave: a text, a list of blocks, or an object with `content` and `success`."""

    call_id: str | None = None
    output: Any = UNSET
    tools: Any = None  # of a `tool_search_output`


class GeneratedImage(_Item):
    """A picture that the provider made: PNG, in base64."""

    result: str = ""


class RemoteCompaction(_Item):
    """What a compaction by the provider left of the conversation, encrypted."""


class Unsent(_Item):
    """What the client keeps for itself."""


if TYPE_CHECKING:
    Item = Message | Reasoning | Call | Output | GeneratedImage | RemoteCompaction | Unsent
else:
    Item = tagged(
        {
            Message: ("message",),
            Reasoning: ("reasoning",),
            Call: (
                "function_call",
                "custom_tool_call",
                "local_shell_call",
                "web_search_call",
                "tool_search_call",
            ),
            Output: (
                "function_call_output",
                "custom_tool_call_output",
                "local_shell_call_output",
                "tool_search_output",
            ),
            GeneratedImage: ("image_generation_call",),
            RemoteCompaction: ("compaction", "compaction_summary", "context_compaction"),
            Unsent: ("ghost_snapshot", "other"),
        }
    )


class _ExitCode(Struct):
    exit_code: int = 0


class ShellOutput(Struct):
    """What a shell's output is as JSON, up to 0.77."""

    output: str
    metadata: _ExitCode = msgspec.field(default_factory=_ExitCode)


SHELL_OUTPUT: Final[Decoder[ShellOutput | dict[str, Any]]] = Decoder(ShellOutput)


def texts(content: Content) -> list[str]:
    """Return the texts of a content, which is a text, a list of blocks, or nothing.

    Blocks of types that are not here count too if they have a `text`.
    """
    found = []
    for block in [content] if isinstance(content, str) else content or ():
        match block:
            case str(text) | PlainText(text) | {"text": str(text)}:
                found.append(text)
    return found
