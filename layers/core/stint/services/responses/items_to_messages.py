"""Conversion of items to the model's messages.

Clients see an answer of the model as several items: reasoning, text and calls. Providers take it as one message, with
the results of its calls directly after it. So adjacent items of the assistant are collected in a draft, which is closed
where the next answer begins, and outputs are moved to their calls first (`answer_order`). A stored conversation says
where its answers begin, because two rounds of calls by the server look like one.

Semantic Kernel's agent for responses continues a response with all that it has sent since the user's question: the
question, the model's texts, and every output. For OpenAI's models the new output is the last item. Providers take it
directly after its call only, so the question would follow it, and the model would call the function again. So items
that the client has sent before are left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from stint.dataclasses import dataclass, field
from stint.domain.content import Content, TextContentItem, items_of
from stint.domain.errors import InvalidRequest
from stint.domain.inference import AssistantAnswer, ModelMessage, Reasoning, SystemText, ToolResult, UserInput
from stint.domain.json_text import parse_json
from stint.domain.openai.code_interpreter import CodeInterpreterCall
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.file_search import FileSearchCall
from stint.domain.openai.image_generation import ImageGenerationCall
from stint.domain.openai.items import (
    CompactionItem,
    FunctionCall,
    FunctionCallOutput,
    HostedCall,
    Item,
    Message,
    ReasoningItem,
    WebSearchCall,
)
from stint.domain.openai.mcp_items import McpApprovalRequest, McpApprovalResponse, McpCall
from stint.domain.openai.opaque import CompactedContext, OpaqueReader
from stint.domain.openai.prompt_cache import breakpoints_in
from stint.domain.stored_messages import SUMMARY, CompactedHistory
from stint.domain.tools import ToolCall, write_denial
from stint.loop.transcript import SENT, Transcript
from stint.services.conversations.item_files import distribute_texts
from stint.services.responses.answer_order import order_answers
from stint.services.responses.code_runs import logs_in
from stint.services.responses.hosted_tools import WEB_SEARCH, result_of
from stint.services.responses.item_content import content_of, message_text
from stint.services.responses.search_items import chunks_of, urls_of
from stint.tools.port import CODE_INTERPRETER, FILE_SEARCH, IMAGE_GENERATION

Words = tuple[object, ...]
"""What tells messages apart: their role, and their texts and images."""


@dataclass(slots=True)
class Draft:
    """An assistant's answer that is built from adjacent items."""

    reasoning: Reasoning | None = None
    late: str = ""
    text: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)

    def close(self, transcript: Transcript) -> None:
        """Add the answer to a transcript, and start another one."""
        if self.text or self.calls:
            reasoning = (self.reasoning or Reasoning()).model_copy(update={"late": self.late})
            thoughts = reasoning if reasoning != Reasoning() else None
            transcript.append_message(AssistantAnswer("\n".join(self.text), tuple(self.calls), thoughts))
            for result in self.results:
                transcript.append_message(result)
        self.reasoning, self.late, self.text, self.calls, self.results = None, "", [], [], []

    def ends_before(self, item: Item) -> bool:
        """Return whether an assistant's item starts the next answer.

        Text and reasoning do after the results of all calls, and reasoning does after text. Calls never do: adjacent
        calls belong to one answer, whoever runs them.
        """
        if isinstance(item, ReasoningItem) and self.text and not self.calls:
            return True
        said = isinstance(item, Message | ReasoningItem)
        return said and bool(self.calls) and len(self.results) == len(self.calls)

    def add_hosted(self, call: ToolCall, result: str) -> None:
        """Add a call that an MCP server ran."""
        self.calls.append(call)
        self.results.append(ToolResult(call.call_id, call.tool_name, result))


class MessageBuilder:
    """Adds items to a transcript. `texts` has the texts of their files, in order.

    `approved` has the approved calls, which run now; `later` follows them. A `lenient` reader ignores
    outputs of unknown calls, for contexts without their older part.
    """

    def __init__(self, transcript: Transcript, *, lenient: bool = False) -> None:
        self.transcript = transcript
        self.lenient = lenient
        self.consented: dict[str, ToolCall] = {}
        self.later: list[ModelMessage] = []
        self.draft = Draft()
        self.opaque = OpaqueReader()
        self.results: dict[str, Content] = {}

    @property
    def approved(self) -> list[ToolCall]:
        """Return the approved calls that have not run, in the model's order."""
        return [call for call in self.transcript.open.values() if call.call_id in self.consented]

    def read(self, items: Iterable[Item], texts: Iterable[str] = ()) -> None:
        """Append items.

        Raises:
            InvalidRequest: an output or an approval has no call, or opaque content is not this server's. The message
                names the location.
        """
        self.append_items(dict(enumerate(distribute_texts(list(items), texts))))

    def append_items(self, items: Mapping[int, StoredItem]) -> None:
        """Append items by their locations in the input, answers after their calls. Raises as `read` does."""
        self.results = find_results(items, self.transcript)
        new = leave_out_repetitions(items, self.transcript)
        for place, stored in order_answers(new, self.transcript.open).items():
            try:
                self.append_item(stored)
            except ValueError as error:
                raise InvalidRequest(f"input[{place}]: {error}", param=f"input[{place}]") from None
        self.draft.close(self.transcript)
        self.transcript.begin_run_after_answer()
        self.keep_approved()

    def append_item(self, stored: StoredItem) -> None:
        draft, item = self.draft, stored.item
        hosted_id = stored.call_id or item.id
        if draft.ends_before(item) or stored.begins_answer:
            draft.close(self.transcript)
        draft.late = stored.late or draft.late
        match item:
            case Message(role="assistant"):
                draft.text.append(message_text(item.content))
            case ReasoningItem():
                text = item.encrypted_content
                draft.reasoning = self.opaque.read(text, Reasoning) if text is not None else draft.reasoning
            case FunctionCall(call_id=call_id) if call_id in self.transcript.open and not draft.calls:
                pass  # a client that continues a response may repeat the call with its output
            case FunctionCall():
                draft.calls.append(call_of(item.call_id, item.name, item.arguments))
            case McpApprovalRequest():
                draft.calls.append(call_of(item.id, item.name, item.arguments))
            case _ if (asked := self.find_open_request(item)) is not None:
                self.add_approved(asked, item_result(item))
            case McpCall():
                draft.add_hosted(call_of(hosted_id, item.name, item.arguments), item_result(item))
            case WebSearchCall():
                query = json.dumps({"query": item.action.query}, ensure_ascii=False)
                draft.add_hosted(call_of(hosted_id, WEB_SEARCH, query), item_result(item))
            case FileSearchCall():
                query = json.dumps({"query": " ".join(item.queries)}, ensure_ascii=False)
                draft.add_hosted(call_of(hosted_id, FILE_SEARCH, query), item_result(item))
            case ImageGenerationCall():
                prompt = json.dumps({"prompt": item.revised_prompt or ""}, ensure_ascii=False)
                draft.add_hosted(call_of(hosted_id, IMAGE_GENERATION, prompt), item_result(item))
            case CodeInterpreterCall():
                code = json.dumps({"code": item.code or ""}, ensure_ascii=False)
                draft.add_hosted(call_of(hosted_id, CODE_INTERPRETER, code), item_result(item))
            case _:
                draft.close(self.transcript)
                self.add_other(item, iter(stored.texts))

    def find_open_request(self, item: Item) -> str | None:
        """Return the approval request of a call that ran after it, if the call has no result yet."""
        asked = item.approval_request_id if isinstance(item, HostedCall) else None
        return asked if asked in self.transcript.open else None

    def add_approved(self, asked: str, result: str) -> None:
        """Append the result of a call that has run after its approval."""
        self.transcript.append_message(ToolResult(asked, self.transcript.open[asked].tool_name, result))
        self.consented.pop(asked, None)
        if next(iter(self.consented), None) not in self.transcript.open:
            self.keep_approved()

    def add_other(self, item: Item, texts: Iterator[str]) -> None:
        """Append an item that is not the assistant's."""
        match item:
            case Message(role="user"):
                breakpoints = breakpoints_in(item.content)
                self.append_message(UserInput(content_of(item.content, texts), breakpoints=breakpoints))
            case Message():
                self.append_message(SystemText(message_text(item.content)))
            case FunctionCallOutput(call_id=call_id) | McpApprovalResponse(approval_request_id=call_id) if (
                self.lenient and call_id not in self.transcript.open
            ):
                pass
            case FunctionCallOutput():
                output = item.output
                self.add_output(item.call_id, output if isinstance(output, str) else content_of(output, texts))
            case McpApprovalResponse():
                call = self.open_call(item.approval_request_id, "approval", "approval_request_id")
                if item.approve:
                    self.consented[call.call_id] = call
                else:
                    said = ToolResult(call.call_id, call.tool_name, write_denial(item.reason))
                    self.transcript.append_message(said)
            case CompactionItem():
                compacted = self.opaque.read(item.encrypted_content, CompactedContext)
                if compacted.messages is not None:
                    self.consented, self.later = {}, []
                    self.transcript.compact(CompactedHistory(**dict(compacted)))
                    return
                for text in compacted.instructions:
                    self.append_message(SystemText(text))
                self.append_message(UserInput(f"{SUMMARY}\n{compacted.summary}"))
            case _:  # the model has the tools themselves, so it needs no lists of tools
                pass

    def add_output(self, call_id: str, output: Content) -> None:
        """Append the result of a call. A client that sends a result again is ignored."""
        if call_id not in self.transcript.open and self.results.get(call_id) == output:
            return
        call = self.open_call(call_id, "output", "call_id")
        self.transcript.append_message(ToolResult(call_id, call.tool_name, output))
        self.results[call_id] = output

    def keep_approved(self) -> None:
        """Drop the approvals of calls that were run or skipped."""
        self.consented = {call.call_id: call for call in self.approved}
        if not self.consented:
            self.flush_later()

    def flush_later(self) -> None:
        """Continue after the approved calls, which have run or will not run."""
        self.consented = {}
        for message in self.later:
            self.transcript.append_message(message)
        self.later = []

    def append_message(self, message: ModelMessage) -> None:
        if self.consented:
            self.later.append(message)
        else:
            self.transcript.append_message(message)

    def open_call(self, call_id: str, what: str, name: str) -> ToolCall:
        call = self.transcript.open.get(call_id)
        if call is None or self.consented.get(call_id) is call:
            raise ValueError(
                f"The {what} does not match a call: the conversation has no unanswered call with the "
                f"{name} {call_id!r}."
            )
        return call


def call_of(call_id: str, name: str, arguments: str) -> ToolCall:
    try:
        parsed = parse_json(arguments) if arguments.strip() else {}
    except ValueError:
        parsed = None
    known = parsed if isinstance(parsed, dict) else arguments
    return ToolCall(call_id=call_id, tool_name=name, arguments=known, arguments_json=arguments or "{}")


def item_result(item: Item) -> str:
    """Return the result of a call that the server ran, for the model. That of an image is without the image."""
    match item:
        case McpCall():
            return result_or_sent(item, result_of(item))
        case WebSearchCall():
            return urls_of(item)
        case FileSearchCall():
            return chunks_of(item)
        case CodeInterpreterCall():
            return result_or_sent(item, logs_in(item))
        case ImageGenerationCall():
            from stint.services.responses.image_items import image_note  # noqa: PLC0415 - few responses have images

            return image_note(item)
    return ""


def result_or_sent(item: McpCall | CodeInterpreterCall, result: str) -> str:
    """Return a result; without one, that a call of a response that was cancelled was sent."""
    return SENT if item.status == "incomplete" and not result else result


def find_results(items: Mapping[int, StoredItem], transcript: Transcript) -> dict[str, Content]:
    """Return the results of a transcript by the ids of their calls, if the items have an output that repeats one."""
    answered = transcript.call_ids - transcript.open.keys()
    if not any(isinstance(each.item, FunctionCallOutput) and each.item.call_id in answered for each in items.values()):
        return {}
    return {each.call_id: each.content for each in transcript.messages if isinstance(each, ToolResult)}


def leave_out_repetitions(items: Mapping[int, StoredItem], transcript: Transcript) -> dict[int, StoredItem]:
    """Return items without the messages that repeat the exchange which an output after them continues."""
    last = max((place for place, stored in items.items() if continues(stored, transcript)), default=-1)
    before = {place: words for place, stored in items.items() if place < last and (words := words_of(stored))}
    said = exchange_of(transcript.messages) if before else set()
    return {place: stored for place, stored in items.items() if before.get(place) not in said}


def continues(stored: StoredItem, transcript: Transcript) -> bool:
    """Return whether an item is the output of a call that waits."""
    return isinstance(stored.item, FunctionCallOutput) and stored.item.call_id in transcript.open


def exchange_of(messages: Sequence[ModelMessage]) -> set[Words]:
    """Return what tells the messages after the last answer without calls apart."""
    said: set[Words] = set()
    for message in reversed(messages):
        match message:
            case AssistantAnswer(text=text, tool_calls=calls):
                if not calls:
                    break
                said.add(("assistant", text))
            case SystemText(text=text):
                said.add(("system", text))
            case UserInput(content=content):
                said.add(("user", *words_in(content)))
    return said


def words_of(stored: StoredItem) -> Words | None:
    """Return what tells an item that is a message apart; None for other items."""
    match stored.item:
        case Message(role="user", content=parts):
            return "user", *words_in(content_of(parts, iter(stored.texts)))
        case Message(role=role, content=parts):
            return "assistant" if role == "assistant" else "system", message_text(parts)
    return None


def words_in(content: Content) -> Iterator[object]:
    """Yield the texts and images of a content. Their hashes are kept, so that large ones are read once."""
    for item in items_of(content):
        if isinstance(item, TextContentItem):
            yield item.text
        else:
            yield item.image.data
            yield item.image.url.uri if item.image.url else None
