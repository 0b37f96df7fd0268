"""A model call in the form in which the API shows it: chat completions, whichever provider got it.

The messages are written by the adapter of chat completions, so that they are those that its servers get. The answer is
bounded: a page of messages, each of its texts up to a length, and images as their sizes. Secrets of the request, and of
the tools that are offered, are redacted before anything is cut: a part of a secret would not be recognized.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

from stint.dataclasses import dataclass, field
from stint.domain.inference import InferenceRequest, ModelMessage, ToolResult
from stint.domain.known_secrets import redact_json, remember
from stint.domain.model_inputs import CutText, ModelInput
from stint.loop.toolbox import Toolbox
from stint.models.openai.message_writer import MessageWriter, write_json
from stint.models.openai.messages import MessageForm, write_message, write_tool_images
from stint.models.openai.request import write_request
from stint.models.tool_names import sanitize_request
from stint.tools.outcomes import is_head
from stint.tools.redaction import secrets_of

Message = dict[str, Any]

PAGE_BYTES = 1_000_000
"""Maximum bytes of JSON of a page of messages, unless one message has more."""
LONGEST_TEXT = 200_000
"""Maximum characters of a text of a message."""
TOOL_BYTES = 1_000_000
"""Maximum bytes of JSON of the tools."""
NOT_PARAMETERS = ("model", "stream", "stream_options", "tools", "prompt_cache_key")
TEXTS = ("content", "text", "arguments")
"""The fields of messages that may be long."""
TOOL_MESSAGE = b'{"role":"tool"'
CUT = "[{count} characters are left out here.]"


@dataclass(frozen=True, slots=True)
class RebuiltCall:
    """A model call that was rebuilt. `model` is the name by which its caller knows the model.

    Without `has_tools` the request lacks tools, because they are not known. `unknown` says in words what is not known.
    """

    step_id: str
    model: str
    request: InferenceRequest
    toolbox: Toolbox
    secrets: Collection[str] = field(default=(), repr=False)
    """Credentials of the caller, and of the settings of the run, besides those of the tools."""
    is_history_cut: bool = False
    has_tools: bool = True
    unknown: Sequence[str] = ()


class BriefWriter(MessageWriter):
    """Writes messages with the sizes of images in place of their data."""

    def write_one(self, message: ModelMessage, form: Any) -> bytes:
        """Write one message. Raises InvalidRequest if an image cannot be read."""
        return write_json(without_data(write_message(message, form)))

    def late_images(self, result: ToolResult) -> list[Message]:
        """Return the images of a tool's result that follow the results of all tools."""
        return [without_image_data(part) for part in write_tool_images(result)]


def without_data(message: Message) -> Message:
    """Return a written message without the data of images."""
    content = message.get("content")
    return message | {"content": [*map(without_image_data, content)]} if isinstance(content, list) else message


def without_image_data(part: Message) -> Message:
    url = part["image_url"]["url"] if part.get("type") == "image_url" else ""
    if not url.startswith("data:"):
        return part
    head, _, encoded = url.partition(",")
    return part | {"image_url": part["image_url"] | {"url": f"{head},"}, "omitted_bytes": len(encoded) * 3 // 4}


def show_call(call: RebuiltCall, start_index: int = 0) -> ModelInput:
    """Return a model call for the API, with a page of its messages from `start_index` on."""
    remember(call.secrets)
    for tool in call.toolbox.server.values():
        remember(secrets_of(tool.toolgroup, fixed=tool.args))
    request = sanitize_request(call.request)
    body = write_request(request)
    written = BriefWriter().write(request.messages, MessageForm())
    page = MessagePage(start_index).filled(written)
    tools = Shelf(TOOL_BYTES).filled(body.get("tools", []))
    return ModelInput(
        step_id=call.step_id,
        model=call.model,
        messages=page.messages,
        start_index=start_index,
        message_count=len(written),
        has_more=start_index + len(page.messages) < len(written),
        tools=tools.kept if call.has_tools else None,
        omitted_tools=tools.omitted or None,
        parameters=redact_json({name: value for name, value in body.items() if name not in NOT_PARAMETERS}),
        is_history_cut=call.is_history_cut,
        shortened_results=shortened_in(call.request.messages, written),
        cut_texts=page.cut_texts,
        unknown=[*call.unknown],
    )


def shortened_in(messages: Sequence[ModelMessage], written: Sequence[bytes]) -> list[int]:
    """Return the places of results that were cut for the model, among the written messages.

    Images of tools are written as further messages, which move the places of those after them.
    """
    results = [is_head(message.content) for message in messages if isinstance(message, ToolResult)]
    if not any(results):
        return []
    places = [place for place, each in enumerate(written) if each.startswith(TOOL_MESSAGE)]
    return [place for place, is_cut in zip(places, results, strict=True) if is_cut]


@dataclass(slots=True)
class Shelf:
    """Tools, as far as they fit."""

    left: int
    kept: list[Message] = field(default_factory=list)
    omitted: int = 0

    def filled(self, tools: Sequence[Message]) -> "Shelf":
        for tool in redact_json(list(tools)):
            self.left -= len(write_json(tool))
            if self.left >= 0:
                self.kept.append(tool)
            else:
                self.omitted += 1
        return self


@dataclass(slots=True)
class MessagePage:
    """A page of messages. It has at least one, if there is one at its place."""

    start_index: int
    left: int = PAGE_BYTES
    messages: list[Message] = field(default_factory=list)
    cut_texts: list[CutText] = field(default_factory=list)

    def filled(self, written: Sequence[bytes]) -> "MessagePage":
        """Add messages from the page's place on, as far as they fit."""
        for place in range(self.start_index, len(written)):
            self.left -= min(len(written[place]), LONGEST_TEXT)
            if self.messages and self.left < 0:
                break
            cutter = Cutter()
            self.messages.append(cutter.shorten(redact_json(json.loads(written[place]))))
            if cutter.characters:
                self.cut_texts.append(CutText(message=place, characters=cutter.characters))
        return self


@dataclass(slots=True)
class Cutter:
    """Cuts the texts of a message, and counts the characters that it leaves out."""

    left: int = LONGEST_TEXT
    characters: int = 0

    def shorten(self, value: Any, name: str = "") -> Any:
        """Return a JSON value whose texts together have a limited length. `name` is that of its field."""
        if isinstance(value, dict):
            return {field_name: self.shorten(part, field_name) for field_name, part in value.items()}
        if isinstance(value, list):
            return [self.shorten(part, name) for part in value]
        if not isinstance(value, str) or name not in TEXTS:
            return value
        kept, rest = value[: self.left], value[self.left :]
        self.left -= len(kept)
        self.characters += len(rest)
        return kept + CUT.format(count=len(rest)) if rest else kept
