"""The messages of a conversation as a model sees them.

They are derived from stored steps in one way, whoever derives them, so that each model call begins with the messages of
the one before, and its provider finds them in its cache. Only what is documented (docs/models.md, "Prompt caching")
removes or replaces earlier messages.
"""

import re
from collections.abc import Sequence, Set

from stint.dataclasses import replace
from stint.domain.content import text_of
from stint.domain.ids import item_name
from stint.domain.inference import AnswerDetails, AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.steps import InferenceStep, MemoryRetrievalStep, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.stored_messages import CompactedHistory
from stint.domain.tools import ToolCall, ToolResponse
from stint.shields.port import REFUSAL

NO_RESULT = "There is no result for this call."


SENT = "This call was sent and may have taken effect, but its result is not known."


BLOCKED = "[A shield blocked this.]"


NOT_TAKEN = "[The tool ran. Its result is omitted, because the model could not accept it.]"


REFUSED = "[A message is omitted, because the model could not accept it.]"


CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""The form of call ids that every provider accepts: OpenAI's have up to 40 characters, Anthropic's only these."""


class Transcript:
    """The growing list of a conversation's messages.

    Providers require the results of calls directly after their answer, so the next message closes open calls with a
    result that says that there is none. `answered`: the model's message is the last one, so a shield blocks the answer.
    The messages of the current run begin at the place `own`. The first `compacted` ones are the summary of all before.
    """

    def __init__(self) -> None:
        self.messages: list[ModelMessage] = []
        self.open: dict[str, ToolCall] = {}
        self.call_ids: set[str] = set()
        self.answered = False
        self.own = self.compacted = 0

    def copy(self) -> "Transcript":
        """Return a transcript with the same messages, to which others can be appended."""
        other = Transcript()
        other.messages, other.open = self.messages.copy(), self.open.copy()
        other.call_ids, other.answered = self.call_ids.copy(), self.answered
        other.own, other.compacted = self.own, self.compacted
        return other

    def append_message(self, message: ModelMessage) -> None:
        """Append a message. A result is assigned to its open call."""
        if isinstance(message, ToolResult):
            self.open.pop(message.call_id, None)
        else:
            self.close()
        if isinstance(message, AssistantAnswer):
            self.open = {call.call_id: call for call in message.tool_calls}
            self.call_ids.update(self.open)
        self.messages.append(message)

    def close(self) -> None:
        """Answer every open call."""
        for call in list(self.open.values()):
            self.append_message(ToolResult(call.call_id, call.tool_name, NO_RESULT))

    def close_sent(self, sent: Set[str]) -> None:
        """Answer the open calls that were sent, and put the results after the last answer into the order of its calls.

        `sent` has the calls' ids.
        """
        for call in [call for call_id, call in self.open.items() if call_id in sent]:
            self.append_message(ToolResult(call.call_id, call.tool_name, SENT))
        place = len(self.messages)
        while place and isinstance(self.messages[place - 1], ToolResult):
            place -= 1
        # The answers above come after the results that are known, whatever the order of their calls.
        answer = self.messages[place - 1] if place else None
        order = [call.call_id for call in answer.tool_calls] if isinstance(answer, AssistantAnswer) else []
        if not sent.isdisjoint(order):
            results = {each.call_id: each for each in self.messages[place:] if isinstance(each, ToolResult)}
            self.messages[place:] = [results[call_id] for call_id in order if call_id in results]

    def begin_run(self) -> None:
        """Count the messages that follow as those of the current run."""
        self.own = len(self.messages)

    def begin_run_after_answer(self) -> None:
        """Count the messages that no answer follows as those of the current run."""
        places = reversed(range(self.compacted, len(self.messages)))
        self.own = next((at + 1 for at in places if self.calls_at(at) is not None), self.compacted)

    @property
    def older_messages(self) -> Sequence[ModelMessage]:
        """Return the messages before the newest, which a compaction replaces; none if no answer is among them.

        The newest are the last answer of the run with its calls and what follows it, or else all messages of the run.
        """
        answers = [at for at in range(self.own, len(self.messages)) if self.calls_at(at) is not None]
        place = self.own
        if answers:
            place = answers[-1] if self.calls_at(answers[-1]) else answers[-1] + 1
        while self.compacted < place < len(self.messages) and isinstance(self.messages[place], ToolResult):
            place -= 1
        return (
            self.messages[:place] if any(self.calls_at(at) is not None for at in range(self.compacted, place)) else ()
        )

    def calls_at(self, place: int) -> tuple[ToolCall, ...] | None:
        """Return the calls of the answer at a place; None if there is another message."""
        message = self.messages[place]
        return message.tool_calls if isinstance(message, AssistantAnswer) else None

    def compact(self, compaction: CompactedHistory, *, follows: bool = True) -> None:
        """Replace all messages by a summary, and unless it is left out, by what `follows` it."""
        self.messages = [*map(SystemText, compaction.instructions), UserInput(compaction.text)]
        self.open, self.answered = {}, False
        self.own = self.compacted = len(self.messages)
        for message in compaction.messages if follows else ():
            self.append_message(message.to_message())

    def shorten(self) -> int | None:
        """Drop at least the older half of the messages, up to a user message, and return the place of the first kept.

        None means that this was not possible.

        Instructions and the newest exchange are kept. The place is a multiple of a large power of two, so that it is
        the same in the next runs, whose requests then begin alike.
        """
        places = range(self.compacted, len(self.messages))
        starts = [place for place in places if isinstance(self.messages[place], UserInput)]
        # A cut that moves with each message would change the beginning of each request, which providers cache.
        step = 1 << max(len(self.messages) // 4, 1).bit_length() - 1
        least = -(-len(self.messages) // (2 * step)) * step
        cut = next((place for place in starts[1:] if place >= least), starts[-1] if starts else 0)
        return cut if self.drop_before(cut) else None

    def drop_before(self, cut: int) -> bool:
        """Drop the messages before a place but instructions and a summary, and return whether there were any."""
        summary, older = self.messages[: self.compacted], self.messages[self.compacted : cut]
        kept = [*summary, *(message for message in older if isinstance(message, SystemText))]
        if len(kept) >= cut:
            return False
        self.messages = [*kept, *self.messages[cut:]]
        self.own = max(self.own - cut + len(kept), self.compacted)
        return True

    def add_step(self, step: Step, details: AnswerDetails | None = None) -> None:
        """Append the messages of a step."""
        match step:
            case InferenceStep(model_response=answer):
                self.answered = True
                text = text_of(answer.content)
                if text or answer.tool_calls:
                    reasoning = details.reasoning if details else None
                    self.append_message(AssistantAnswer(text, tuple(answer.tool_calls), reasoning))
            case ToolExecutionStep(tool_responses=responses):
                self.answered = False
                # Some clients read calls out of the model's text: such a call was never open.
                parsed = [response for response in responses if response.call_id not in self.open]
                for response in responses:
                    if call := self.open.get(response.call_id):
                        self.append_message(ToolResult(response.call_id, call.tool_name, response.content_for_model))
                if parsed:
                    self.add_parsed_calls(step.step_id, parsed)
            case MemoryRetrievalStep(inserted_context=context) if context:
                self.append_message(UserInput(context))
            case ShieldCallStep(violation=violation, metadata=None) if violation is not None:
                if not self.answered:
                    self.remove_input()
                self.append_message(AssistantAnswer(violation.user_message or REFUSAL))
            case _:
                pass

    def add_parsed_calls(self, step_id: str, responses: Sequence[ToolResponse]) -> None:
        """Append the results of calls that the client parsed from the last answer's text.

        Providers refuse a result without a call, so the answer gets calls of these tools, without arguments, which only
        the client knows.
        """
        self.close()
        calls = tuple(self.parsed_call(step_id, place, response) for place, response in enumerate(responses))
        last = self.messages[-1] if self.messages else None
        if isinstance(last, AssistantAnswer) and not last.tool_calls:
            self.messages.pop()
            self.append_message(replace(last, tool_calls=calls))
        else:
            self.append_message(AssistantAnswer("", calls))
        for call, response in zip(calls, responses, strict=True):
            self.append_message(ToolResult(call.call_id, call.tool_name, response.content_for_model))

    def parsed_call(self, step_id: str, place: int, response: ToolResponse) -> ToolCall:
        """Return the call of a result, with the client's id unless a provider could refuse it."""
        given = response.call_id
        usable = CALL_ID.fullmatch(given) is not None and given not in self.call_ids
        call_id = given if usable else item_name("call", step_id, place)
        return ToolCall(call_id=call_id, tool_name=response.tool_name, arguments={}, arguments_json="{}")

    def remove_results(self) -> None:
        """Remove what follows the last answer from the messages, but keep the fact that its tools ran."""
        for place in reversed(range(self.compacted, len(self.messages))):
            match self.messages[place]:
                case ToolResult(call_id=call_id, tool_name=name):
                    self.messages[place] = ToolResult(call_id, name, NOT_TAKEN)
                case UserInput():
                    self.messages[place] = UserInput(REFUSED)
                case _:
                    return

    def remove_input(self) -> None:
        """Remove the messages after the last answer, because an input shield blocked them."""
        self.close()
        for place in reversed(range(self.compacted, len(self.messages))):
            match self.messages[place]:
                case AssistantAnswer():
                    return
                case ToolResult(call_id=call_id, tool_name=name):
                    self.messages[place] = ToolResult(call_id, name, BLOCKED)
                case UserInput():
                    self.messages[place] = UserInput(BLOCKED)
                case _:
                    pass
