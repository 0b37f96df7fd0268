from typing import Any

import pytest
from tests.script_model import called, said, script, words_of
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import FUNCTION, MCP_TOOL

from stint.domain.errors import Conflict, ContextLengthExceeded, InvalidRequest, NotFound
from stint.domain.inference import AssistantAnswer, ModelMessage
from stint.domain.openai.items import FunctionCallOutput
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.responses.context import Contexts
from stint.services.responses.input_items import owner_of
from stint.services.responses.link_cache import LinkCache
from stint.services.responses.links import Context

UNKNOWN = f"resp_{'0' * 32}"


def contexts_of(responder: Responder, history_bytes: int = 1_000_000) -> Contexts:
    worker_fixture = responder.worker_fixture
    opaque = OpaqueTexts(worker_fixture.tenant, worker_fixture.store.signing_keys)
    return Contexts(
        worker_fixture.tenant,
        worker_fixture.store,
        worker_fixture.services.background.recovery,
        opaque,
        30,
        history_bytes,
        LinkCache(),
    )


def words(context: Context) -> list[str]:
    return [words_of(message) for message in context.reader.transcript.messages]


def calls(message: ModelMessage) -> list[str]:
    assert isinstance(message, AssistantAnswer)
    return [call.call_id for call in message.tool_calls]


async def test_a_chain_is_the_messages_of_all_its_links(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said("one"), said("two"))))
    first = (await responder.respond("first")).response.id
    second = (await responder.respond("second", previous_response_id=first)).response.id

    context = await contexts_of(responder).from_response(second, shortens=False)

    assert words(context) == ["first", "one", "second", "two"]
    assert (context.depth, len(context.ancestors)) == (2, 2)
    assert len(context.known) == 4


async def test_steps_of_a_link_are_told_as_they_were(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(called("buy"), called("ask_user"))))
    last = (await responder.respond("go", tools=[MCP_TOOL, FUNCTION])).response

    context = await contexts_of(responder).from_response(last.id, shortens=False)

    assert words(context) == ["go", "", "buy is done", ""]
    assert list(context.reader.transcript.open) == ["c0"]


async def test_a_call_that_waits_for_consent_is_known_by_the_item_that_asks(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    responder = Responder(make_worker_fixture(script(called("buy"))))
    asked = (await responder.respond("go", tools=[MCP_TOOL | {"require_approval": "always"}])).response

    context = await contexts_of(responder).from_response(asked.id, shortens=False)

    assert calls(context.reader.transcript.messages[-1]) == [asked.output[-1].id]


async def test_the_newest_links_that_fit_are_told_where_the_rest_may_go(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(*(said(f"re {n}") for n in range(4)))))
    last: dict[str, Any] = {}
    for number in range(4):
        response = (await responder.respond(f"{number} {'x' * 1000}", **last)).response
        last = {"previous_response_id": response.id}
    contexts = contexts_of(responder, 4_000)

    context = await contexts.from_response(response.id, shortens=True)

    assert words(context)[-2:] == [f"3 {'x' * 1000}", "re 3"]
    assert len(words(context)) < 8
    with pytest.raises(ContextLengthExceeded, match="truncation"):
        await contexts.from_response(response.id, shortens=False)


async def test_a_result_of_a_call_that_is_left_out_is_left_out_too(make_worker_fixture: MakeWorkerFixture) -> None:
    long = '{"words": "' + "x" * 5000 + '"}'
    responder = Responder(make_worker_fixture(script(called("buy", arguments=long), said("Bought"))))
    tools = [MCP_TOOL | {"require_approval": "always"}]
    asked = (await responder.respond("go", tools=tools)).response
    consent = {"type": "mcp_approval_response", "approval_request_id": asked.output[-1].id, "approve": True}
    done = (await responder.respond([consent], previous_response_id=asked.id, tools=tools)).response

    context = await contexts_of(responder, 4_000).from_response(done.id, shortens=True)

    assert words(context) == ["Bought"]
    with pytest.raises(InvalidRequest):
        context.reader.read([FunctionCallOutput(call_id="c9", output="?")])


async def test_a_missing_link_is_named(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said(), said())))
    first = (await responder.respond()).response.id
    second = (await responder.respond(previous_response_id=first)).response.id
    await responder.worker_fixture.services.stored_responses.delete(first)

    with pytest.raises(InvalidRequest, match=first) as refused:
        await contexts_of(responder).from_response(second, shortens=False)

    assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")
    assert second in refused.value.message


async def test_a_response_that_runs_or_waits_is_not_continued(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said())))
    queued = await responder.worker_fixture.create()
    running = await responder.start()

    for response_id, status in ((queued, "queued"), (running.response_id, "in_progress")):
        with pytest.raises(Conflict, match=status) as refused:
            await contexts_of(responder).from_response(response_id, shortens=False)
        assert refused.value.code == "response_in_progress"
    await responder.play(running)


async def test_a_conversation_is_held_while_it_is_continued(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said("one"))))
    conversation = await responder.conversation()
    await responder.respond("first", conversation=conversation)
    contexts = contexts_of(responder)

    context = await contexts.from_conversation(conversation, UNKNOWN, 10_000_000_000, shortens=False)
    with pytest.raises(Conflict) as refused:
        await contexts.from_conversation(conversation, UNKNOWN, 10_000_000_000, shortens=False)

    assert words(context) == ["first", "one"]
    assert refused.value.code == "conversation_locked"
    assert context.keeper is not None
    await context.keeper.release()


async def test_a_conversation_that_is_too_long_is_let_go_again(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said("x" * 3000), said("one"))))
    conversation = await responder.conversation()
    await responder.respond("y" * 3000, conversation=conversation)

    with pytest.raises(ContextLengthExceeded):
        await contexts_of(responder, 2_000).from_conversation(conversation, UNKNOWN, 10_000_000_000, shortens=False)

    context = await contexts_of(responder, 2_000).from_conversation(
        conversation, UNKNOWN, 10_000_000_000, shortens=True
    )
    assert context.keeper is not None
    await context.keeper.release()
    with pytest.raises(NotFound):
        await contexts_of(responder).from_conversation("conv_x", UNKNOWN, 10_000_000_000, shortens=False)


async def test_a_conversation_whose_older_part_is_left_out_may_begin_with_an_output(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    long = '{"words": "' + "x" * 5000 + '"}'
    responder = Responder(make_worker_fixture(script(called("ask_user", arguments=long), said("Fine"))))
    conversation = await responder.conversation()
    await responder.respond("go", conversation=conversation, tools=[FUNCTION])
    output = {"type": "function_call_output", "call_id": "c0", "output": "sunny"}
    await responder.respond([output], conversation=conversation, tools=[FUNCTION])

    context = await contexts_of(responder, 3_000).peek(conversation, shortens=True)

    assert words(context) == ["Fine"]


@pytest.mark.parametrize(
    ("item", "owner"),
    [
        (f"msg_{'0' * 32}07", UNKNOWN),
        (f"fc_{'0' * 32}123", UNKNOWN),
        (f"msg_{'0' * 32}", None),
        ("msg_1", None),
        ("nonsense", None),
    ],
)
def test_an_items_id_tells_whose_output_it_is(item: str, owner: str | None) -> None:
    assert owner_of(item) == owner
