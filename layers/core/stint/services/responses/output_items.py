"""The output of a response, derived from its steps. Streaming, reading and resuming yield the same items.

The steps are stored, and the items are not: they are made again whenever someone reads a response. So the id of an item
is derived from the id of its response and from its place in the output. A place is never used twice. If a process dies
while an item is streamed, readers may have seen that item, and its place is skipped by the process that goes on.
"""

from collections.abc import Callable, Iterable, Mapping

from stint.domain.content import text_of
from stint.domain.ids import hex_of, item_name, place_of
from stint.domain.inference import AnswerDetails, Reasoning
from stint.domain.openai.code_interpreter import CodeInterpreterCall
from stint.domain.openai.file_search import FileSearchCall
from stint.domain.openai.image_generation import ImageGenerationCall
from stint.domain.openai.items import (
    CompactionItem,
    FunctionCall,
    HostedCall,
    Message,
    OutputItem,
    ReasoningItem,
    WebSearchCall,
)
from stint.domain.openai.mcp_items import McpApprovalRequest, McpCall, McpListTools
from stint.domain.openai.opaque import CompactedContext
from stint.domain.openai.parts import OutputText, ReasoningText, RefusalPart, SummaryText
from stint.domain.openai.stored_responses import ResponseOutcome, ResponseRecord, ResponseSettings, StoredResponse
from stint.domain.schema import Schema
from stint.domain.steps import InferenceStep, Step, ToolExecutionStep
from stint.domain.stored_messages import CompactedHistory
from stint.domain.tools import ToolCall, ToolResponse
from stint.services.conversations.include import ENCRYPTED_REASONING
from stint.services.responses.answer_calls import AnswerCalls
from stint.services.responses.code_runs import cite_files, files_of_run, find_container, finish_run, open_run
from stint.services.responses.hosted_tools import HostedTools, finish_mcp_call, is_plain
from stint.services.responses.search_items import finish_file_search, finish_web_search, open_search, sources_of
from stint.tools.port import CODE_INTERPRETER, IMAGE_GENERATION

Encode = Callable[[Schema], str]
"""A function that encodes a document as signed text: `OpaqueTexts.encode`."""


class OutputItems:
    """The growing output of a response, in the model's order.

    An item's id is derived from the response's id and its output index. `skipped` indexes belong to items that were
    interrupted when a process died. The item of a client's call comes after those of the calls before it, which come
    with their results. `answers` has late reasoning by the place of an answer's first item, `call_ids` the model's ids.
    """

    def __init__(
        self, response_id: str, settings: ResponseSettings, encode: Encode, listed: Iterable[McpListTools] = ()
    ) -> None:
        self.encode = encode
        self.digits = hex_of(response_id.partition("_")[2])
        self.settings = settings
        self.items: list[OutputItem] = []
        self.partial: list[OutputItem] = []
        self.early: dict[str, ToolExecutionStep] = {}
        self.calls = AnswerCalls()
        self.skipped, self.sources = 0, dict[str, str]()
        self.answers, self.call_ids = dict[int, str](), dict[str, str]()
        self.container_id = find_container(settings, response_id)
        self.container_files: dict[str, str] = {}
        self.listed: list[McpListTools] = []
        self.list_tools(listed)
        self.cites = self.hosted.cites

    @property
    def place(self) -> int:
        """Return the output index of the next item."""
        return len(self.items) + self.skipped

    def next_id(self, prefix: str, ahead: int = 0) -> str:
        """Return the id of the next item, or of a later one."""
        return item_name(prefix, self.digits, self.place + ahead)

    @property
    def all_items(self) -> list[OutputItem]:
        """Return all items in the order of their indexes, including those of an interrupted answer."""
        return sorted([*self.items, *self.partial], key=lambda item: place_of(item.id)) if self.partial else self.items

    def add_record(self, record: ResponseRecord) -> None:
        """Add a record of the log."""
        self.skipped += record.skipped or 0
        if record.cited is not None:
            self.add_sources(record.cited)
        self.early |= {step.tool_calls[0].call_id: step for step in record.early or ()}
        if record.compaction is not None:
            self.add_compaction(record.compaction)
        if record.step is not None:
            self.add_step(record.step, record.details)
        if record.ending is not None:
            self.finish(record.ending)

    def add_sources(self, sources: Mapping[str, str]) -> None:
        """Add files that were found before this response, so that its texts can cite them."""
        self.sources |= sources
        self.cites = is_plain(self.settings)

    def list_tools(self, listed: Iterable[McpListTools]) -> None:
        """Add the items that list the tools of MCP servers."""
        for server in listed:
            item = server.model_copy(update={"id": self.next_id("mcpl")})
            self.items.append(item)
            self.listed.append(item)
        self.hosted = HostedTools.of(self.settings, self.listed)

    def add_step(self, step: Step, details: AnswerDetails | None = None) -> list[OutputItem]:
        """Add a stored step, and return its items."""
        first = len(self.items)
        match step:
            case InferenceStep():
                self.early = {}
                self.add_answer(step, details or AnswerDetails())
            case ToolExecutionStep(tool_calls=[call], tool_responses=[response]):
                self.add_result(call, response)
            case _:
                pass
        return self.items[first:]

    def add_compaction(self, compaction: CompactedHistory) -> OutputItem:
        self.items.append(compaction_item(self.next_id("cmp"), compaction, self.encode))
        return self.items[-1]

    def add_answer(self, step: InferenceStep, details: AnswerDetails) -> None:
        reasoning = details.reasoning or Reasoning()
        self.answers[len(self.items)] = reasoning.late
        if (shown := reasoning.shown) is not None:
            self.items.append(self.reasoning(shown))
        answer = step.model_response
        broken = details.filtered or answer.stop_reason == "out_of_tokens"
        text, calls = text_of(answer.content), [] if broken else answer.tool_calls
        dropped = {call.call_id for call in answer.tool_calls} if broken else set()
        self.calls = AnswerCalls(list(calls), dropped=dropped, refused={*(details.refused or ())})
        if text or not calls:
            part = RefusalPart(refusal=text) if details.refusal else self.output_text(text)
            status = "incomplete" if broken else "completed"
            self.items.append(Message(id=self.next_id("msg"), role="assistant", content=[part], status=status))
        self.add_client_calls()

    def output_text(self, text: str) -> OutputText:
        """Return a text of the model with its citations."""
        part = OutputText(text=text)
        if self.cites:
            from stint.services.responses.citations import cite  # noqa: PLC0415 - few responses search files

            part = cite(text, self.sources)
        return cite_files(part, self.container_files, self.container_id) if is_plain(self.settings) else part

    def add_client_calls(self) -> None:
        """Add the waiting calls up to the next server call, which is added with its result."""
        while self.calls.waiting and self.is_for_client(self.calls.waiting[0]):
            self.add_client_call(self.calls.waiting.pop(0))

    def is_for_client(self, call: ToolCall) -> bool:
        named = call.tool_name in self.hosted.functions or call.tool_name in self.hosted.approvals
        return named and not isinstance(call.arguments, str) and call.call_id not in self.calls.refused

    def add_client_call(self, call: ToolCall) -> None:
        """Add a call that the client runs or approves."""
        arguments = text_of_arguments(call)
        if call.tool_name in self.hosted.functions:
            item = FunctionCall(id=self.next_id("fc"), call_id=call.call_id, name=call.tool_name, arguments=arguments)
            self.items.append(item)
        else:
            request = self.calls.requests[call.call_id] = self.next_id("mcpr")
            label = self.hosted.servers.get(call.tool_name, call.tool_name)  # a tool without a server has its own name
            self.items.append(
                McpApprovalRequest(id=request, server_label=label, name=call.tool_name, arguments=arguments)
            )

    def add_result(self, call: ToolCall, response: ToolResponse) -> None:
        """Add a call that the server ran. Earlier calls without a result stay without one."""
        waiting = self.calls.waiting
        if call.call_id in {each.call_id for each in waiting}:
            while (passed := waiting.pop(0)).call_id != call.call_id:
                self.add_without_result(passed)
        if (opened := self.opened(call)) is not None:
            self.call_ids[opened.id] = call.call_id
        if isinstance(opened, McpCall):
            self.items.append(finish_mcp_call(opened, response))
        elif isinstance(opened, WebSearchCall):
            self.items.append(finish_web_search(opened, response, self.settings.include))
        elif isinstance(opened, FileSearchCall):
            self.sources |= sources_of(response)
            self.items.append(finish_file_search(opened, response, self.settings.include))
        elif isinstance(opened, ImageGenerationCall):
            from stint.services.responses.image_items import finish_image  # noqa: PLC0415 - few responses have images

            self.items.append(finish_image(opened, call, response))
        elif isinstance(opened, CodeInterpreterCall):
            self.container_files |= files_of_run(response)
            self.items.append(finish_run(opened, response, self.settings.include))
        self.add_client_calls()

    def add_without_result(self, call: ToolCall) -> None:
        """Add a client's call unchanged, and a server's call that started as incomplete."""
        if self.is_for_client(call):
            self.add_client_call(call)
        elif (early := self.early.get(call.call_id)) is not None:
            self.add_result(call, early.tool_responses[0])
        elif (opened := self.opened(call)) is not None:
            self.items.append(opened.model_copy(update={"status": "incomplete"}))

    def finish(self, ending: ResponseOutcome) -> None:
        """Add the waiting calls and the interrupted answer of a response that has ended.

        If the response reached a limit, server calls that did not run are dropped.
        """
        waiting, self.calls.waiting = self.calls.waiting, []
        for call in waiting:
            if ending.broke_off or self.is_for_client(call):
                self.add_without_result(call)
            else:
                self.calls.dropped.add(call.call_id)
        known = {item.id for item in self.items}
        self.partial = [item for item in ending.partial if item.id not in known]

    def opened(self, call: ToolCall) -> HostedCall | None:
        """Return the item of a call that the server starts to run; None if it is not a hosted tool's."""
        item = self.item_of(call)
        asked = call.call_id if call.call_id.startswith("mcpr_") else None
        return item.model_copy(update={"approval_request_id": asked}) if item is not None and asked else item

    def item_of(self, call: ToolCall) -> HostedCall | None:
        name = call.tool_name
        if call.call_id in self.calls.refused:
            return None
        if name in self.hosted.servers:
            return McpCall(
                id=self.next_id("mcp"),
                server_label=self.hosted.servers[name],
                name=name,
                arguments=text_of_arguments(call),
                status="in_progress",
            )
        if name == IMAGE_GENERATION and self.hosted.image_tool is not None and isinstance(call.arguments, dict):
            from stint.services.responses.image_items import open_image  # noqa: PLC0415 - few responses have images

            return open_image(self.hosted.image_tool, self.next_id)
        if name == CODE_INTERPRETER and self.hosted.runs_code:
            return open_run(call, self.container_id, self.next_id)
        return open_search(call, self.hosted, self.next_id)

    def reasoning(self, reasoning: Reasoning) -> ReasoningItem:
        """Return reasoning as a summary, or raw if the request asked for reasoning without a summary."""
        encrypted = ENCRYPTED_REASONING in self.settings.include
        is_raw = self.settings.has_raw_reasoning
        return ReasoningItem(
            id=self.next_id("rs"),
            summary=[SummaryText(text=reasoning.text)] if reasoning.text and not is_raw else [],
            content=[ReasoningText(text=reasoning.text)] if reasoning.text and is_raw else None,
            encrypted_content=self.encode(reasoning) if encrypted else None,
        )


def text_of_arguments(call: ToolCall) -> str:
    return call.arguments_json or (call.arguments if isinstance(call.arguments, str) else "{}")


def output_of(stored: StoredResponse, encode: Encode, settings: ResponseSettings | None = None) -> OutputItems:
    """Return the output of a stored response so far, with its own settings or others."""
    header = stored.header
    output = OutputItems(header.response_id, settings or header.settings, encode, header.listed)
    for record in stored.records:
        output.add_record(record)
    return output


def compaction_item(item_id: str, compaction: CompactedHistory, encode: Callable[[Schema], str]) -> CompactionItem:
    """Return the item of a compaction, which has all that the model sees of what was before it."""
    return CompactionItem(id=item_id, encrypted_content=encode(CompactedContext(**dict(compaction))))
