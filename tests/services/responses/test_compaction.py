from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.script_model import STOP, Script, called, deadline, said, script, words_of
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.store.conftest import Cloud

from stint.domain.errors import DeadlineExceeded, InvalidRequest, ModelError
from stint.domain.inference import Finished, FinishReason, TextChunk, Usage
from stint.domain.limits import MAX_MESSAGES
from stint.domain.openai.items import CompactionItem, Message
from stint.domain.openai.opaque import CompactedContext, OpaqueReader
from stint.domain.openai.response_requests import CompactRequest, InputTokensRequest
from stint.domain.openai.response_resource import CompactedResponse
from stint.loop.summaries import TASK
from stint.services.responses.compaction import REST, newest

COMPACT: TypeAdapter[CompactRequest] = TypeAdapter(CompactRequest)
COUNT: TypeAdapter[InputTokensRequest] = TypeAdapter(InputTokensRequest)
TALK: list[Any] = [
    {"role": "developer", "content": "Answer in French."},
    {"role": "user", "content": "I like plums."},
    {"role": "assistant", "content": "Bien."},
]


async def compact(responder: Responder, seconds: float = 30, **fields: Any) -> CompactedResponse:
    request = COMPACT.validate_python({"model": "test/m"} | fields)
    return await responder.worker_fixture.services.compaction.compact(request, deadline(seconds))


async def count(responder: Responder, **fields: Any) -> int:
    request = COUNT.validate_python({"model": "test/m"} | fields)
    return (await responder.worker_fixture.services.token_counts.count(request)).input_tokens


def context_of(compacted: CompactedResponse) -> CompactedContext:
    item = compacted.output[-1]
    assert isinstance(item, CompactionItem)
    return OpaqueReader().read(item.encrypted_content, CompactedContext)


def spoken(compacted: CompactedResponse) -> list[str]:
    """Return the texts of the user's messages before the summary."""
    *messages, _ = compacted.output
    assert all(isinstance(message, Message) and message.role == "user" for message in messages)
    return ["".join(part["text"] for part in message.model_dump()["content"]) for message in messages]


def dumped(compacted: CompactedResponse) -> list[Any]:
    return [item.model_dump(mode="json") for item in compacted.output]


def told(model: Script) -> list[str]:
    return [words_of(message) for message in model.requests[-1].messages]


async def test_a_model_writes_the_summary_and_the_systems_words_stay(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(said("They like plums."))

    compacted = await compact(Responder(make_worker_fixture(model)), input=TALK, instructions="Be exact.")

    assert told(model) == ["Be exact.", "Answer in French.", "I like plums.", "Bien.", TASK.format(rest=REST)]
    assert context_of(compacted) == CompactedContext(summary="They like plums.", instructions=["Answer in French."])
    assert compacted.object == "response.compaction"
    assert spoken(compacted) == ["I like plums."]


async def test_a_chain_is_compacted_with_what_is_said_behind_it(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(said("one"), said("Short."))
    responder = Responder(make_worker_fixture(model))
    first = (await responder.respond("first")).response.id

    compacted = await compact(responder, previous_response_id=first, input="second")

    assert told(model) == ["first", "one", "second", TASK.format(rest=REST)]
    assert spoken(compacted) == ["first", "second"]


async def test_the_users_messages_of_links_that_the_process_remembers_are_kept(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script(said("one"), said("two"), said("Short."))
    responder = Responder(make_worker_fixture(model))
    first = (await responder.respond("first")).response.id
    second = (await responder.respond("second", previous_response_id=first)).response.id

    compacted = await compact(responder, previous_response_id=second)

    assert spoken(compacted) == ["first", "second"]


async def test_the_newest_messages_of_the_user_are_kept_if_not_all_fit() -> None:
    messages = [
        Message.model_validate({"role": "user", "content": f"{number:03d}" + "x" * 1_000}) for number in range(100)
    ]
    size = len(messages[0].to_json())

    assert newest(messages, 100 * size) == messages
    assert newest(messages, 10 * size + 1) == messages[-10:]
    assert newest(messages, 10) == []
    assert len(newest(messages * 100, 10_000 * size)) == MAX_MESSAGES // 2


async def test_what_was_compacted_goes_on_as_input(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(said("They like plums."), said("Yes."))
    responder = Responder(make_worker_fixture(model))
    compacted = await compact(responder, input=TALK)

    await responder.respond([*dumped(compacted), {"role": "user", "content": "And pears?"}])

    assert told(model) == [
        "I like plums.",
        "Answer in French.",
        "Summary of the conversation so far:\nThey like plums.",
        "And pears?",
    ]


async def test_what_was_compacted_is_compacted_again(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(said("They like plums."), said("Plums."))
    responder = Responder(make_worker_fixture(model))
    compacted = await compact(responder, input=TALK)

    again = await compact(responder, input=[*dumped(compacted), {"role": "user", "content": "And pears."}])

    assert spoken(again) == ["I like plums.", "And pears."]
    assert context_of(again) == CompactedContext(summary="Plums.", instructions=["Answer in French."])


async def test_calls_that_are_open_are_closed(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(said("Short."))

    await compact(
        Responder(make_worker_fixture(model)),
        input=[{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}],
    )

    assert told(model)[1] == "There is no result for this call."


async def test_nothing_but_the_key_is_stored_and_what_the_summary_took_is_counted(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud, tenant: str
) -> None:
    usage = Usage(input_tokens=3, output_tokens=2, total_tokens=5)

    compacted = await compact(
        Responder(make_worker_fixture(script([TextChunk("Short."), Finished(FinishReason.stop, usage)]))), input="Hello"
    )

    assert (compacted.usage.input_tokens, compacted.usage.total_tokens) == (3, 5)
    assert [item["pk"]["S"] for item in cloud.items(tenant)] == [f"{tenant}#signing_key"]


async def test_a_model_that_writes_nothing_or_fails_makes_no_summary(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script([STOP], [ModelError("Busy.")], called("f"))
    responder = Responder(make_worker_fixture(model))

    for _ in range(3):
        with pytest.raises(ModelError):
            await compact(responder, input="Hello")

    assert model.closed == 3


async def test_a_summary_has_to_be_there_in_time(make_worker_fixture: MakeWorkerFixture) -> None:
    with pytest.raises(DeadlineExceeded):
        await compact(Responder(make_worker_fixture(script(said()))), seconds=0, input="Hello")


@pytest.mark.parametrize(
    ("fields", "param"), [({}, "input"), ({"model": "nobody/m", "input": "Hi"}, "model"), ({"input": []}, "input")]
)
async def test_what_cannot_be_compacted_is_refused(
    make_worker_fixture: MakeWorkerFixture, fields: Any, param: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await compact(Responder(make_worker_fixture(script())), **fields)

    assert refused.value.param == param


async def test_tokens_are_counted_as_a_response_would_send_them(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said("one"))))
    first = (await responder.respond("first")).response.id

    counted = await count(responder, previous_response_id=first, input="second", instructions="Be brief.")

    assert counted == 4  # these models count messages


async def test_a_conversation_is_counted_without_taking_it(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said("one"))))
    conversation = await responder.conversation()
    run = await responder.start("first", conversation=conversation)

    assert await count(responder, conversation=conversation, input="second") == 1
    await responder.play(run)
    assert await count(responder, conversation=conversation, input="second") == 3


async def test_tools_of_servers_are_counted(make_worker_fixture: MakeWorkerFixture) -> None:
    tool = {"type": "mcp", "server_label": "shop", "server_url": "http://127.0.0.1:9/mcp"}
    responder = Responder(make_worker_fixture(script()))

    assert await count(responder, input="Hello", tools=[tool], tool_choice={"type": "mcp", "server_label": "shop"}) == 1


async def test_a_summary_has_no_markers_of_files(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(said(f"Llamas live in Peru <|file-{'a' * 32}|>."))

    compacted = await compact(Responder(make_worker_fixture(model)), input=TALK)

    assert context_of(compacted).summary == "Llamas live in Peru."
