"""The order in which a model gets the results of its calls.

Clients send the outputs of calls, and the approvals of calls, anywhere in an input, such as after a new user message. A
provider accepts them only directly after the calls of one answer, before any other message.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from stint.dataclasses import dataclass, field
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import FunctionCall, FunctionCallOutput, Item, Message
from stint.domain.openai.mcp_items import McpApprovalRequest, McpApprovalResponse

NOT_OF_THE_ASSISTANT = ("compaction", "mcp_list_tools")


def order_answers(items: Mapping[int, StoredItem], open_calls: Collection[str]) -> dict[int, StoredItem]:
    """Return items in the order for models, by their places: answers directly follow their calls.

    Answers to `open_calls`, which wait when the input begins, come first, and a repetition of such a call is left out.
    An answer belongs to the last call before it with its id, or else to the next one. Answers without a call stay.
    """
    answered = pair_answers(items, open_calls)
    if not answered.places:
        return dict(items)
    return {place: items[place] for place in AnswerOrder(items, answered).places()}


@dataclass(frozen=True, slots=True)
class PairedAnswers:
    """The places of answers: `first` of those to open calls, `of_call` by the places of other calls.

    `repeated` has the places of repetitions of open calls.
    """

    first: list[int] = field(default_factory=list)
    of_call: dict[int, int] = field(default_factory=dict)
    repeated: set[int] = field(default_factory=set)

    @property
    def places(self) -> set[int]:
        """Return the places of all answers that have calls."""
        return {*self.first, *self.of_call.values()}


def pair_answers(items: Mapping[int, StoredItem], open_calls: Collection[str]) -> PairedAnswers:
    """Find the call of each answer."""
    paired, waiting = PairedAnswers(), set(open_calls)
    calls: dict[str, list[int]] = {}
    early: dict[str, list[int]] = {}
    for place, stored in items.items():
        if (call_id := id_of_call(stored.item)) is not None:
            if early.get(call_id):
                paired.of_call[place] = early[call_id].pop(0)
            else:
                calls.setdefault(call_id, []).append(place)
        elif (call_id := id_of_answered(stored.item)) is None:
            continue
        elif call_id in waiting:
            waiting.remove(call_id)
            paired.first.append(place)
            paired.repeated.update(calls.pop(call_id, ()))
        elif calls.get(call_id):
            paired.of_call[calls[call_id].pop()] = place
        else:
            early.setdefault(call_id, []).append(place)
    return paired


def are_paired(items: Sequence[StoredItem]) -> bool:
    """Return whether each call that waits for its client has an answer among the items, and each answer a call."""
    calls = sum(id_of_call(stored.item) is not None for stored in items)
    answers = sum(id_of_answered(stored.item) is not None for stored in items)
    return calls == answers == len(pair_answers(dict(enumerate(items)), ()).of_call)


class AnswerOrder:
    """Walks through items. `due` has the places of answers to the calls of the current answer of the model."""

    def __init__(self, items: Mapping[int, StoredItem], answered: PairedAnswers) -> None:
        self.items = items
        self.answered = answered
        self.due: dict[int, None] = {}

    def places(self) -> Iterator[int]:
        """Yield the places of the items in the order for models."""
        yield from self.answered.first
        paired, left, grows = self.answered.places, {*self.answered.first, *self.answered.repeated}, False
        for place, stored in self.items.items():
            if place in left:
                continue
            if place in paired:
                if place in self.due:  # otherwise its call follows, or it was moved
                    del self.due[place]
                    grows = False
                    yield place
                continue
            if not (grows and is_of_assistant(stored.item)):
                yield from self.flush()
            grows = is_of_assistant(stored.item)
            yield place
            if (answer := self.answered.of_call.get(place)) is not None:
                self.due[answer] = None
        yield from self.flush()

    def flush(self) -> list[int]:
        """Return the places of the answers that are due."""
        due, self.due = [*self.due], {}
        return due


def id_of_call(item: Item) -> str | None:
    """Return the id of a call that waits for its client."""
    match item:
        case FunctionCall(call_id=call_id) | McpApprovalRequest(id=call_id):
            return call_id
    return None


def id_of_answered(item: Item) -> str | None:
    """Return the id of the call that an item answers."""
    match item:
        case FunctionCallOutput(call_id=call_id) | McpApprovalResponse(approval_request_id=call_id):
            return call_id
    return None


def is_of_assistant(item: Item) -> bool:
    """Return whether an item is a part of an answer of the model."""
    if isinstance(item, Message):
        return item.role == "assistant"
    return id_of_answered(item) is None and item.type not in NOT_OF_THE_ASSISTANT
