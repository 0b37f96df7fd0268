"""The input of a run: which of its client's messages it takes. The stored turns are the record.

Clients send the whole conversation with each run. `read_input` decides, by the ids that the last turns have:

    the last turn     the request has                               the run
    waits             an answer to a waiting call                   resumes it; the door checks that none is missing
    waits             results, and new messages of the user         starts a turn with both
    waits             approvals, and new messages of the user       is refused: the calls may run only before these
    waits             only new messages of the user                 starts a turn, which cancels the waiting one
    does not wait     new messages of the user                      starts a turn
    failed at once    nothing new                                   repeats it, if another attempt may succeed
    any               nothing new                                   shows the last turn, and follows it while it runs
    none              nothing new                                   shows that there is nothing

New are the user's messages after the last one that the turns have, except those that they have, too: an older message
may be there again, or edited. A client that shares no message with the turns sends what is after its last answer.
Results count if they are after the answer with the waiting calls, because models repeat the ids of calls.

docs/decisions.md, entry 165, has the reasons.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from stint.ag_ui.contents import images_of, read_content, read_result
from stint.ag_ui.events import interrupt_id
from stint.ag_ui.schemas.inputs import FrontendTool, GivenMessage, GivenResult, ResumeEntry, RunInput, RunMessage
from stint.ag_ui.snapshots import CONTEXT_ID
from stint.dataclasses import dataclass, field
from stint.documents.document_reader import PlacedImage
from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.stored_turns import StoredTurn, unanswered_calls
from stint.domain.llama_stack.turns import ToolApproval, TurnCreateRequest, TurnResumeRequest
from stint.domain.messages import InputMessage, UserMessage
from stint.domain.run_outcome import RunStatus
from stint.domain.steps import InferenceStep
from stint.domain.tools import ToolDef, ToolResponse, ToolResponseMessage

PlacedResult: TypeAlias = tuple[int, GivenResult]
"""A result with its place among the messages."""

NO_ARGUMENTS = {"type": "object"}
DISMISSED = "The user dismissed the request."


@dataclass(frozen=True, slots=True)
class NewMessages:
    """A turn to be started. `ids` are the client's, one for each message; `retry_of` is the turn that it repeats.

    `answered` has the client's ids of the results, by their calls.
    """

    request: TurnCreateRequest
    ids: Sequence[str]
    images: Sequence[PlacedImage] = ()
    answered: Mapping[str, str] = field(default_factory=dict)
    retry_of: str = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """A turn to be resumed. `answered` has the client's ids of the results, by their calls."""

    turn_id: str
    request: TurnResumeRequest
    images: Sequence[PlacedImage] = ()
    answered: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NothingNew:
    """A run that adds nothing. `last` is the turn that it shows, if there is one."""

    last: StoredTurn | None


TakenInput = NewMessages | Answers | NothingNew


@dataclass(slots=True)
class RunInputReader:
    """Reads the input of one run. `turns` are the last ones of its thread, and `known` the ids of their messages."""

    given: RunInput
    turns: Sequence[StoredTurn]
    known: Set[str]
    images: list[PlacedImage] = field(default_factory=list)

    @property
    def last(self) -> StoredTurn | None:
        return self.turns[-1] if self.turns else None

    def read(self) -> TakenInput:
        """Return what the run takes. Raises InvalidRequest."""
        messages = [*self.find_messages()]
        last = self.last
        if last is not None and last.status is RunStatus.awaiting_input:
            return self.read_answers(last, messages)
        self.check_resume(last)
        return self.start(messages) if messages else NothingNew(last)

    def find_messages(self) -> Iterator[tuple[int, GivenMessage]]:
        """Yield the new messages of the user with their places, each id once."""
        given, seen, known = self.given.messages, set[str](), -1
        for index, message in enumerate(given):  # a message that is there again does not count
            if message.id in self.known and message.id not in seen:
                known = index
            seen.add(message.id)
        after = known if known >= 0 else last_place(given, lambda each: each.role == "assistant")
        found = {*self.known}
        for index in range(after + 1, len(given)):
            message = given[index]
            if isinstance(message, GivenMessage) and message.id not in found:
                found.add(message.id)
                yield index, message

    def start(
        self, messages: Sequence[tuple[int, GivenMessage]], results: Mapping[str, PlacedResult] | None = None
    ) -> NewMessages:
        """Return a turn with new messages, and with results of the calls that the last one waits for."""
        taken: list[InputMessage] = []
        ids: list[str] = []
        for call_id, (index, result) in (results or {}).items():
            place = f"messages[{index}]"
            content = read_result(result, place)
            self.images += images_of(content, place)
            taken.append(ToolResponseMessage(call_id=call_id, content=content))
            ids.append(result.id)
        if (context := self.read_context()) is not None:
            taken.append(context)
            ids.append(CONTEXT_ID)
        for index, message in messages:
            place = f"messages[{index}]"
            content = read_content(message, place)
            self.images += images_of(content, place)
            taken.append(UserMessage(content=content))
            ids.append(message.id)
        return NewMessages(self.make_request(taken), ids, self.images, ids_of(results or {}))

    def make_request(self, messages: list[InputMessage]) -> TurnCreateRequest:
        tools = [to_tool(tool) for tool in self.given.tools or ()]
        return TurnCreateRequest(messages=messages, client_tools=tools or None, stream=True)

    def repeat(self, last: StoredTurn) -> NewMessages:
        """Return a turn that repeats the last one, which has failed."""
        messages = [*last.header.input_messages]
        ids = last.header.message_ids or [f"{last.header.turn_id}-{place}" for place in range(len(messages))]
        return NewMessages(self.make_request(messages), ids, retry_of=last.header.turn_id)

    def read_context(self) -> UserMessage | None:
        """Return the message with the context of the application; None if the model has this one already."""
        if not self.given.context:
            return None
        lines = [f"{item.description}: {item.value}" for item in self.given.context]
        text = "\n".join(["Context of the application:", *lines])
        for turn in reversed(self.turns):
            header = turn.header
            for message, name in zip(header.input_messages, header.message_ids or (), strict=False):
                if name == CONTEXT_ID and isinstance(message, UserMessage):
                    return None if text_of(message.content) == text else UserMessage(content=text)
        return UserMessage(content=text)

    def read_answers(self, last: StoredTurn, messages: Sequence[tuple[int, GivenMessage]]) -> TakenInput:
        """Return what a run takes while the last turn waits for its client. Raises InvalidRequest."""
        approvals = self.read_approvals(last)
        results = self.find_results(last)
        if not (approvals or results):
            return self.start(messages) if messages else NothingNew(last)
        if not messages:
            return self.resume(last, approvals, results)
        if last.unapproved:
            raise InvalidRequest(
                "The messages are not sent, because the agent waits for an approval. Send `resume` without new messages"
                " first, or the new messages without `resume`, which cancels the waiting calls.",
                code="approvals_mismatch",
                param="resume",
            )
        return self.start(messages, results)

    def resume(self, last: StoredTurn, approvals: list[ToolApproval], results: Mapping[str, PlacedResult]) -> Answers:
        responses: list[ToolResponse] = []
        for call_id, (index, result) in results.items():
            place = f"messages[{index}]"
            content = read_result(result, place)
            self.images += images_of(content, place)
            failed = {"error": True} if result.error else None
            responses.append(ToolResponse(call_id=call_id, tool_name="", content=content, metadata=failed))
        request = TurnResumeRequest(tool_responses=responses, approvals=approvals or None, stream=True)
        return Answers(last.header.turn_id, request, self.images, ids_of(results))

    def find_results(self, last: StoredTurn) -> dict[str, PlacedResult]:
        """Return the results of the calls that the last turn waits for, with their places; the last one of each."""
        given, waiting = self.given.messages, {call.call_id for call in unanswered_calls(last.steps)}
        asking = last_answer(last)
        place = last_place(given, lambda each: asking is not None and each.id == asking.step_id)
        if place < 0:
            place = last_place(given, lambda each: each.role == "assistant")
        found: dict[str, PlacedResult] = {}
        for index in range(place + 1, len(given)):
            message = given[index]
            if isinstance(message, GivenResult) and message.tool_call_id in waiting - {*(last.unapproved or ())}:
                found[message.tool_call_id] = (index, message)
        return found

    def read_approvals(self, last: StoredTurn) -> list[ToolApproval]:
        """Return the decisions about calls that wait for approval. Raises InvalidRequest."""
        waiting = {interrupt_id(last.steps, call_id): call_id for call_id in last.unapproved or ()}
        found: list[ToolApproval] = []
        for index, entry in enumerate(self.given.resume or ()):
            call_id = waiting.pop(entry.interrupt_id, None)
            if call_id is None:
                raise unknown_interrupt(index, entry)
            found.append(to_approval(index, entry, call_id))
        return found

    def check_resume(self, last: StoredTurn | None) -> None:
        """Raise InvalidRequest for an answer that belongs to no call of the last turn.

        A repeated request has answers that were taken before. They are not taken again, whatever they say.
        """
        asked = (
            {step.step_id for step in last.steps if isinstance(step, InferenceStep)} if last is not None else set[str]()
        )
        for index, entry in enumerate(self.given.resume or ()):
            if entry.interrupt_id.partition(":")[0] not in asked:
                raise unknown_interrupt(index, entry)


def last_place(messages: Sequence[RunMessage], accepts: Callable[[RunMessage], bool]) -> int:
    """Return the place of the last message of a kind; -1 without one."""
    return next((index for index in reversed(range(len(messages))) if accepts(messages[index])), -1)


def ids_of(results: Mapping[str, PlacedResult]) -> dict[str, str]:
    """Return the client's ids of results, by their calls."""
    return {call_id: message.id for call_id, (_, message) in results.items()}


def last_answer(turn: StoredTurn) -> InferenceStep | None:
    return next((step for step in reversed(turn.steps) if isinstance(step, InferenceStep)), None)


def unknown_interrupt(index: int, entry: ResumeEntry) -> InvalidRequest:
    name = f"resume[{index}].interruptId"
    return InvalidRequest(
        f"{name}: no interrupt {entry.interrupt_id[:100]!r} is pending. Answer those of the last run's outcome.",
        code="approvals_mismatch",
        param=name,
    )


def to_approval(index: int, entry: ResumeEntry, call_id: str) -> ToolApproval:
    """Return the decision of an entry. A cancelled one denies the call. Raises InvalidRequest."""
    if entry.status == "cancelled":
        return ToolApproval(call_id=call_id, approve=False, reason=DISMISSED)
    payload = {"approved": entry.payload} if isinstance(entry.payload, bool) else entry.payload
    approved = payload.get("approved") if isinstance(payload, dict) else None
    name = f"resume[{index}].payload"
    if not isinstance(payload, dict) or not isinstance(approved, bool):
        raise InvalidRequest(f"{name}: set approved to true or false.", code="approvals_mismatch", param=name)
    if "editedArgs" in payload:
        message = f"{name}.editedArgs: a call runs with the arguments that were shown. Deny it, and say why in reason."
        raise InvalidRequest(message, code="not_supported", param=f"{name}.editedArgs")
    filled = payload.get("input")
    if filled is not None and not isinstance(filled, dict):
        message = f"{name}.input: what is filled into a form must be an object."
        raise InvalidRequest(message, code="input_mismatch", param=f"{name}.input")
    reason = payload.get("reason")
    said = reason if isinstance(reason, str) else None
    return ToolApproval(call_id=call_id, approve=approved, reason=said, input=filled)


def to_tool(tool: FrontendTool) -> ToolDef:
    """Return a frontend tool as a client tool of the turn."""
    return ToolDef(name=tool.name, description=tool.description, input_schema=tool.parameters or NO_ARGUMENTS)
