"""The inputs of model calls of responses, rebuilt afterwards, are those that the model got."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.script_model import Script, called, said
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.responses.test_prefix_of_responses import STEPS, Talk
from tests.services.test_cut_histories import SmallModel
from tests.services.worker_fixture import FUNCTION, MCP_TOOL, WorkerFixture
from tests.store.conftest import Cloud

from stint.domain.errors import InvalidRequest, ModelError, NotFound
from stint.domain.inference import Finished, FinishReason, InferenceRequest, TextChunk, Usage
from stint.domain.model_inputs import ModelInput
from stint.domain.openai.response_resource import Response
from stint.services.runs.shown_inputs import RebuiltCall
from stint.tools.port import NO_PROVIDER_DATA


async def model_calls(process: WorkerFixture, response_id: str) -> list[str]:
    """Return the ids of the steps of a response that called the model."""
    steps = (await process.services.stored_responses.steps(response_id)).data
    return [step.id for step in steps if step.type == "model_call"]


async def rebuild(process: WorkerFixture, response_id: str) -> list[RebuiltCall]:
    """Return the model calls of a response."""
    again = process.services.response_inputs.rebuild
    ids = await model_calls(process, response_id)
    return [await again(response_id, step_id, NO_PROVIDER_DATA) for step_id in ids]


async def rebuild_all(process: WorkerFixture) -> list[RebuiltCall]:
    """Return the model calls of all responses, in the order of their creation."""
    page = await process.services.stored_responses.list(None, 1000, None, "asc")
    return [call for response in page.data for call in await rebuild(process, response.id)]


async def read(process: WorkerFixture, response_id: str, place: int = 0, start_index: int = 0) -> ModelInput:
    step_id = (await model_calls(process, response_id))[place]
    return await process.services.response_inputs.read(response_id, step_id, start_index, NO_PROVIDER_DATA)


def assert_sent(rebuilt: Sequence[RebuiltCall], sent: Sequence[InferenceRequest]) -> None:
    assert [call.request for call in rebuilt] == [*sent]


@pytest.mark.parametrize("seed", range(12))
async def test_the_calls_of_a_chain_or_conversation_are_rebuilt_as_they_were_sent(
    cloud: Cloud, tenant: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Responses in the foreground and the background, with images, reasoning, MCP tools and functions."""
    monkeypatch.setattr(WorkerFixture, "with_cache_keys", frozenset({"test"}))
    talk = Talk(cloud, tenant, seed)
    await talk.open()
    acts = [talk.say_something, talk.show_picture, talk.think, talk.think_of_tools, talk.run_tools, talk.call_functions]
    for _ in range(STEPS):
        await talk.random.choice(acts)()

    assert_sent(await rebuild_all(talk.process), talk.model.requests)


@pytest.mark.parametrize("in_conversation", [False, True])
async def test_the_calls_after_a_long_history_have_its_cuts(cloud: Cloud, tenant: str, in_conversation: bool) -> None:
    model = Script([said("Fine") for _ in range(30)])
    process = WorkerFixture(cloud, tenant, model, history=7_000 if in_conversation else 14_000)
    before: dict[str, Any] = {"conversation": await process.conversation()} if in_conversation else {}
    for number in range(30):
        answered = await Responder(process).respond(f"Question {number} " + "x" * 200, truncation="auto", **before)
        before = before if in_conversation else {"previous_response_id": answered.response.id}

    rebuilt = await rebuild_all(process)

    assert_sent(rebuilt, model.requests)
    assert [call.is_history_cut for call in (rebuilt[0], rebuilt[-1])] == [False, True]


async def test_a_history_that_the_model_refused_is_rebuilt_as_it_accepted_it(cloud: Cloud, tenant: str) -> None:
    model = SmallModel([])
    process, last = WorkerFixture(cloud, tenant, model), None
    for number in range(30):
        fields: dict[str, Any] = {"truncation": "auto", "previous_response_id": last}
        last = (await Responder(process).respond(f"Question {number}", **fields)).response.id

    rebuilt = await rebuild_all(process)

    assert_sent(rebuilt, model.requests)
    assert rebuilt[-1].is_history_cut


async def test_calls_after_a_compaction_are_rebuilt(make_worker_fixture: MakeWorkerFixture) -> None:
    model = Script([said("x" * 8000), said("a summary"), called("buy"), said("Fine"), said("Well")])
    process = make_worker_fixture(model)
    fields: dict[str, Any] = {
        "tools": [MCP_TOOL],
        "context_management": [{"type": "compaction", "compact_threshold": 1000}],
    }
    last: str | None = None
    for text in ("y" * 8000, "And?", "And then?"):
        last = (await Responder(process).respond(text, previous_response_id=last, **fields)).response.id

    rebuilt = await rebuild_all(process)

    summary = model.requests[1]
    assert_sent(rebuilt, [request for request in model.requests if request is not summary])


async def test_approved_calls_are_rebuilt(make_worker_fixture: MakeWorkerFixture) -> None:
    model = Script([called("buy"), said("Bought")])
    process = make_worker_fixture(model)
    tools = [{**MCP_TOOL, "require_approval": "always"}]
    first = (await Responder(process).respond("Buy.", tools=tools)).response
    [asked] = [item for item in first.output if item.type == "mcp_approval_request"]
    said_yes = {"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": True}
    also = {"role": "user", "content": "And thanks."}
    await Responder(process).respond([said_yes, also], tools=tools, previous_response_id=first.id)

    assert_sent(await rebuild_all(process), model.requests)


async def test_a_forced_tool_and_a_limit_of_calls_are_rebuilt(make_worker_fixture: MakeWorkerFixture) -> None:
    model = Script([called("sell", "buy"), called("buy"), said("Fine")])
    process = make_worker_fixture(model)
    choice = {"type": "mcp", "server_label": "shop", "name": "buy"}
    await Responder(process).respond("Buy.", tools=[MCP_TOOL], tool_choice=choice, parallel_tool_calls=True)

    assert_sent(await rebuild_all(process), model.requests)


async def test_the_call_in_which_a_response_failed_is_rebuilt(make_worker_fixture: MakeWorkerFixture) -> None:
    model = Script([called("buy"), [TextChunk("Hi"), ModelError("Broken.")]])
    process = make_worker_fixture(model)
    await Responder(process).respond(tools=[MCP_TOOL])

    rebuilt = await rebuild_all(process)

    assert len(rebuilt) == 2
    assert_sent(rebuilt, model.requests)


async def limited(process: WorkerFixture, *, background: bool) -> Response:
    fields: dict[str, Any] = {"tools": [MCP_TOOL], "max_output_tokens": 50}
    if background:
        return await process.finished("Buy.", **fields)
    return (await Responder(process).respond("Buy.", **fields)).response


@pytest.mark.parametrize("background", [False, True])
async def test_what_is_left_of_a_limit_of_tokens_is_that_of_each_call(
    make_worker_fixture: MakeWorkerFixture, background: bool
) -> None:
    used = Usage(input_tokens=1, output_tokens=8, total_tokens=9)
    calls = [*called("buy")[:-1], Finished(FinishReason.tool_calls, used)]
    model = Script([calls, said("Fine")])
    process = make_worker_fixture(model)
    response = await limited(process, background=background)

    first, second = await read(process, response.id), await read(process, response.id, 1)

    assert model.requests[1].decoding.max_tokens == 42
    assert first.parameters == {"max_tokens": 50}
    assert second.parameters == {"max_tokens": 42}


async def test_a_previous_response_that_was_deleted_is_said_to_be_missing(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    process = make_worker_fixture(Script([called(str(FUNCTION["name"])), said("Fine")]))
    first = (await Responder(process).respond("One", tools=[FUNCTION])).response
    output = {"type": "function_call_output", "call_id": "c0", "output": "sunny"}
    second = (await Responder(process).respond([output], tools=[FUNCTION], previous_response_id=first.id)).response
    await process.services.stored_responses.delete(first.id)

    shown = await read(process, second.id)

    [told] = shown.unknown
    assert told.startswith("The messages before the input, which are left out: ")
    assert first.id in told
    assert not any("One" in str(message) for message in shown.messages)


async def test_a_conversation_that_was_deleted_is_said_to_be_missing(make_worker_fixture: MakeWorkerFixture) -> None:
    process = make_worker_fixture(Script([said("Fine"), said("Fine")]))
    conversation = await process.conversation()
    await Responder(process).respond("One", conversation=conversation)
    second = (await Responder(process).respond("Two", conversation=conversation)).response
    await process.services.conversations.delete(conversation)

    shown = await read(process, second.id)

    assert [message["content"] for message in shown.messages] == ["Two"]
    assert "Conversation" in shown.unknown[0]


async def test_later_items_of_a_conversation_are_not_shown(make_worker_fixture: MakeWorkerFixture) -> None:
    process = make_worker_fixture(Script([said("Fine"), said("Well"), said("Sure")]))
    conversation = await process.conversation()
    for text in ("One", "Two", "Three"):
        second = (await Responder(process).respond(text, conversation=conversation)).response
    response_id = second.id

    shown = await read(process, response_id)

    assert [message["content"] for message in shown.messages] == ["One", "Fine", "Two", "Well", "Three"]
    [told] = shown.unknown
    assert "by hand" in told


async def test_reading_an_input_leaves_what_a_process_remembers_of_a_conversation(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = Script([said("Fine"), said("Well"), said("Sure")])
    process = make_worker_fixture(model)
    conversation = await process.conversation()
    first = (await Responder(process).respond("One", conversation=conversation)).response
    await Responder(process).respond("Two", conversation=conversation)

    await read(process, first.id)
    await Responder(process).respond("Three", conversation=conversation)

    assert len(model.requests[-1].messages) == 5


async def test_a_tool_call_has_no_input(make_worker_fixture: MakeWorkerFixture) -> None:
    process = make_worker_fixture(Script([called("buy"), said()]))
    response = (await Responder(process).respond(tools=[MCP_TOOL])).response
    [step] = [each for each in (await process.services.stored_responses.steps(response.id)).data if each.tool_name]

    with pytest.raises(InvalidRequest, match="is no model_call"):
        await process.services.response_inputs.rebuild(response.id, step.id, NO_PROVIDER_DATA)


async def test_an_unknown_step_is_not_found(make_worker_fixture: MakeWorkerFixture) -> None:
    process = make_worker_fixture(Script([said()]))
    response = (await Responder(process).respond()).response

    with pytest.raises(NotFound, match="Step"):
        await process.services.response_inputs.rebuild(response.id, "nothing", NO_PROVIDER_DATA)
