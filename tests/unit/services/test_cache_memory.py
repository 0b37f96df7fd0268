"""The caches of a warm process take the memory that they count, whatever they keep."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.services.responses.item_fixture import INPUT, asks, encode

from stint.dataclasses import replace
from stint.domain.content import Content, TextContentItem
from stint.domain.ids import new_id, new_name
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnHeader, TurnRecord
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import UserMessage
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.domain.steps import CompletionMessage, InferenceStep, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponse
from stint.loop.transcript import Transcript
from stint.services.responses.conversation_reader import link_of, note_items, nothing_known
from stint.services.responses.items_to_messages import MessageBuilder
from stint.services.responses.link_cache import CachedConversation, CachedLink, LinkCache
from stint.services.responses.links import Context, add_link
from stint.services.turns.session_transcript import SessionTranscript, TranscriptCache
from stint.store.sessions import LastTurn
from stint.store.turns import History

BOUND = 400_000
MOST_TIMES = 1.5
NOW = datetime(2026, 1, 1, tzinfo=UTC)

TEXTS: dict[str, Content] = {
    "short": "Where is my parcel?",
    "long": "Where is my parcel? " * 50,
    "wide": "Where is my parcel? " * 50 + "\N{PARTY POPPER}",
    "parts": [TextContentItem(text="")] * 50,
}


@pytest.mark.parametrize("turns", [1, 8])
@pytest.mark.parametrize("kind", TEXTS)
def test_transcripts_take_no_more_memory_than_their_bound(kind: str, turns: int) -> None:
    cache = TranscriptCache(BOUND)

    def add() -> bool:
        count = len(cache._entries)
        cache.put((new_id(), new_id(), new_id()), transcript_of(TEXTS[kind], turns))
        return len(cache._entries) > count

    transcript_of(TEXTS[kind], turns)  # builds the validators
    assert grown_by(add) <= MOST_TIMES * BOUND
    assert cache.bytes > BOUND / 2


@pytest.mark.parametrize("kind", ["short", "long", "wide"])
def test_links_take_no_more_memory_than_their_bound(kind: str) -> None:
    cache = LinkCache(BOUND)

    def add() -> bool:
        count = len(cache._entries)
        cache.put("t", f"resp_{new_id()}", make_link(TEXTS[kind]))
        return len(cache._entries) > count

    make_link(TEXTS[kind])  # builds the validators
    assert grown_by(add) <= MOST_TIMES * BOUND
    assert cache.bytes > BOUND / 2


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("kind", ["short", "long", "wide"])
def test_conversations_take_no_more_memory_than_their_bound(kind: str, settled: bool) -> None:
    cache = LinkCache(BOUND)

    def add() -> bool:
        count = len(cache._entries)
        cache.put_conversation("t", new_name("conv"), make_conversation(TEXTS[kind], settled=settled))
        return len(cache._entries) > count

    make_conversation(TEXTS[kind], settled=settled)  # builds the validators
    assert grown_by(add) <= MOST_TIMES * BOUND
    assert cache.bytes > BOUND / 2


def grown_by(add: Callable[[], bool]) -> int:
    """Return the bytes that a cache takes after entries are added until it drops one."""
    gc.collect()
    tracemalloc.start()
    try:
        while add():
            pass
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def transcript_of(content: Content, turns: int) -> SessionTranscript:
    """Return a session as it is after these turns, each of which called a tool."""
    transcript = SessionTranscript()
    for _ in range(turns):
        turn = take_turn(content)
        transcript = transcript.extended(History([turn], True, LastTurn(turn.header.turn_id, len(turn.records))))
    return transcript


def take_turn(content: Content) -> StoredTurn:
    turn_id = new_id()
    header = TurnHeader(
        turn_id=turn_id,
        session_id=new_id(),
        input_messages=[UserMessage(content=content)],
        started_at=NOW,
        overrides=TurnOverrides(),
    )
    records = [TurnRecord(step=step) for step in steps_of(turn_id, content)]
    records.append(TurnRecord(ending=RunOutcome(status=RunStatus.completed, completed_at=NOW)))
    texts = [each.to_json(exclude_none=True) for each in (header, *records)]
    log = [TurnRecord.model_validate_json(text) for text in texts[1:]]
    return StoredTurn(TurnHeader.model_validate_json(texts[0]), log, sum(map(len, texts)))


def make_link(content: Content) -> CachedLink:
    """Return what a response with a call of a tool adds to a context."""
    context = Context(MessageBuilder(Transcript(), lenient=True))
    return add_link(context, respond(content), encode, f"resp_{new_id()}")


def make_conversation(content: Content, *, settled: bool) -> CachedConversation:
    """Return a conversation of ten messages, as messages for the model if it is `settled`, otherwise as records."""
    asked = INPUT.validate_python([asks(str(content)) | {"id": new_name("msg")} for _ in range(10)])
    texts = [StoredItem(item=item).to_json(exclude_none=True) for item in asked]
    records = {f"item:{new_id()}": text for text in texts}
    if not settled:
        later = {
            sk: {"pk": f"t#conversation:{new_id()}", "sk": sk, "doc": text.decode()} for sk, text in records.items()
        }
        return replace(nothing_known(), later=later)
    context = Context(MessageBuilder(Transcript(), lenient=True))
    stored = [StoredItem.model_validate_json(text) for text in texts]
    context.reader.append_items(dict(enumerate(stored)))
    note_items(context, stored)
    context.size = sum(map(len, texts))
    return CachedConversation(link_of(context), keys=tuple(records))


def respond(content: Content) -> StoredResponse:
    asked = INPUT.validate_python([asks(str(content))])
    header = ResponseHeader(response_id=f"resp_{new_id()}", created_at=1, model="m", input=asked)
    records = [ResponseRecord(step=step) for step in steps_of(new_id(), content)]
    texts = [each.to_json(exclude_none=True) for each in (header, *records)]
    log = [ResponseRecord.model_validate_json(text) for text in texts[1:]]
    return StoredResponse(ResponseHeader.model_validate_json(texts[0]), log, sum(map(len, texts)))


def steps_of(turn_id: str, content: Content) -> Iterator[InferenceStep | ToolExecutionStep]:
    """Yield the steps of a run that calls a tool and answers with the text of the question."""
    call = ToolCall(call_id=new_id(), tool_name="find", arguments='{"number": 1}')
    text = content if isinstance(content, str) else ""
    yield answer(turn_id, "", [call])
    result = ToolResponse(call_id=call.call_id, tool_name="find", content=text)
    yield ToolExecutionStep(**stamps(turn_id), tool_calls=[call], tool_responses=[result])
    yield answer(turn_id, text, [])


def answer(turn_id: str, text: str, calls: Sequence[ToolCall]) -> InferenceStep:
    return InferenceStep(**stamps(turn_id), model_response=CompletionMessage(content=text, tool_calls=list(calls)))


def stamps(turn_id: str) -> dict[str, Any]:
    return {"turn_id": turn_id, "step_id": new_id(), "started_at": NOW, "completed_at": NOW}
