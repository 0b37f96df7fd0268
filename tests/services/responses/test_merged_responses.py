"""Requests that the running response of a conversation takes before its next model call."""

import asyncio
import json
import time
from functools import partial
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import Script, called, deadline, said, script, until, words_of
from tests.services.deaths import counting, die_at
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import FUNCTION, MCP_TOOL, WorkerFixture
from tests.store.conftest import Cloud

from stint.caller import NO_ATTEMPT, RequestAttempt, acting_as, set_end_user
from stint.domain.errors import InvalidRequest
from stint.domain.ids import name_of
from stint.domain.openai.items import Item, Message
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import Response
from stint.domain.principals import Budgets, Principal
from stint.domain.waiting_messages import WaitingPlace
from stint.services.responses.response_run import ResponseRun
from stint.services.runs.admission import Admission, StartedRun
from stint.services.runs.run_handle import RequestContext
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

LEASE = 30.0
TOOLS: dict[str, Any] = {"model": "test/m", "tools": [MCP_TOOL]}


class Merging:
    """A response in a conversation whose tool runs while requests are accepted: before the next model call."""

    def __init__(self, cloud: Cloud, tenant: str, *bodies: dict[str, Any]) -> None:
        self.model: Script = script(called("buy"), said("Done"), said("Again"))
        self.bodies = bodies or ({"input": "and two"},)
        self.fixture = WorkerFixture(cloud, tenant, self.model)
        self.responder = Responder(self.fixture)
        self.fixture.fake_mcp.invoke = self.invoke  # type: ignore[method-assign]
        self.ids: list[str] = []

    async def open(self) -> "Merging":
        self.conversation = await self.fixture.conversation()
        return self

    async def invoke(self, _group: Toolgroup, _invocation: Invocation, /) -> ToolOutcome:
        for body in self.bodies:
            self.ids.append(await self.accept(**body))
        return ToolOutcome("bought")

    def request(self, **fields: Any) -> CreateResponse:
        base = {"model": "test/m", "conversation": self.conversation, "when_busy": "merge"}
        return CreateResponse.model_validate(base | fields)

    @property
    def admission(self) -> Admission[CreateResponse, ResponseRun]:
        return self.fixture.services.response_requests.make_admission(self.conversation)

    async def accept(self, **fields: Any) -> str:
        return await self.admission.accept(self.request(**fields), self.responder.attempt)

    async def respond(self, **fields: Any) -> Response:
        answered = await self.responder.respond("one", conversation=self.conversation, **(TOOLS | fields))
        return answered.response

    async def finish(self, message_id: str) -> Response:
        """Run a message if no response has it, and return its response."""
        run = await self.admission.start(message_id, self.request(**self.bodies[0]), RequestContext(deadline(600)))
        if not isinstance(run, StartedRun):
            await self.responder.play(run)
        return await self.read(message_id)

    async def read(self, message_id: str) -> Response:
        return await self.fixture.services.response_requests.get(name_of("resp", message_id), ())

    async def places(self) -> list[WaitingPlace]:
        return await self.admission.line.read()

    async def items(self) -> list[Item]:
        page = await self.fixture.services.conversations.list_items(self.conversation, None, 50, "asc")
        return page.data

    def sent(self, number: int) -> list[str]:
        """Return the texts of a model call."""
        return [words_of(message) for message in self.model.requests[number].messages]


def shown(items: list[Item]) -> list[str]:
    """Return the texts of messages, and the types of other items."""
    return [item.content[0].text if isinstance(item, Message) else item.type for item in items]  # type: ignore[union-attr]


async def test_the_running_response_gets_a_message_before_its_next_model_call(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant, {"input": "and two"}, {"input": "and three"}).open()

    response = await merging.respond()

    assert merging.sent(1) == ["one", "", "bought", "and two", "and three"]
    order = ["one", "mcp_list_tools", "mcp_call", "and two", "and three", "Done"]
    assert shown(await merging.items()) == order
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert await merging.places() == []
    for message_id in merging.ids:
        assert (await merging.read(message_id)) == await merging.fixture.get(response.id)

    merging.model.answers.append(said())
    await merging.responder.respond("four", conversation=merging.conversation)
    assert merging.sent(2) == ["one", "", "bought", "and two", "and three", "Done", "four"]


async def test_input_items_and_the_next_response_have_the_message_in_its_place(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    response = await merging.respond()
    reader, asked = merging.fixture.services.stored_responses, (None, None, 20, "asc")
    own = (await reader.input_items(response.id, *asked)).data  # type: ignore[arg-type]
    merging.model.answers.append(said())

    other = Responder(merging.fixture.other_process(merging.model))
    for process in (merging.responder, merging.responder, other):  # the second time from the cache of links
        merging.model.answers.append(said())
        continued = (await process.respond("three", previous_response_id=response.id)).response
        assert merging.sent(-1) == ["one", "", "bought", "and two", "Done", "three"]

    assert shown(own) == ["one", "and two"]
    all_items = (await reader.input_items(continued.id, *asked)).data  # type: ignore[arg-type]
    assert shown(all_items) == ["one", "mcp_list_tools", "mcp_call", "and two", "Done", "three"]
    listed = (await reader.list(None, 20, None, "asc")).data[0]
    assert shown(listed.input) == ["one", "and two"]
    merging.model.answers.append(said())
    await merging.responder.respond([{"type": "item_reference", "id": own[1].id}])
    assert merging.sent(-1) == ["and two"]


@pytest.mark.parametrize(
    "fields",
    [
        {"instructions": "Be brief."},
        {"model": "scripted/demo"},
        {"tools": [FUNCTION]},
        {"temperature": 0.0},
        {"metadata": {"a": "b"}},
        {"expires_after": {"anchor": "created_at", "seconds": 3600}},
        {"when_busy": "enqueue"},
        {"input": []},
        {"input": [{"type": "function_call_output", "call_id": "c1", "output": "1"}]},
        {"input": [{"role": "assistant", "content": "I said"}]},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_data": "aGk=", "filename": "a.txt"}]}]},
    ],
    ids=lambda fields: next(iter(fields)),
)
async def test_other_requests_get_a_response_of_their_own(cloud: Cloud, tenant: str, fields: dict[str, Any]) -> None:
    merging = await Merging(cloud, tenant, {"input": "and two"} | fields, {"input": "and three"}).open()

    await merging.respond()

    assert [place.message_id for place in await merging.places()] == merging.ids[:1]
    assert merging.sent(1) == ["one", "", "bought", "and three"]


async def test_a_request_with_the_same_settings_is_merged(cloud: Cloud, tenant: str) -> None:
    settings = TOOLS | {"instructions": "Be brief.", "temperature": 0.5, "include": ["reasoning.encrypted_content"]}
    merging = await Merging(cloud, tenant, settings | {"input": "and two", "stream": True}).open()

    await merging.respond(**settings)

    assert merging.sent(1)[-1] == "and two"


async def test_only_requests_of_the_same_caller_and_end_user_are_merged(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    with acting_as(Principal(tenant, "someone", frozenset({"use"}), key_id="k1")):
        waiting = [await merging.accept(input="of another key")]
    set_end_user("mia")
    waiting.append(await merging.accept(input="of an end user"))
    set_end_user(None)

    await merging.respond()

    assert [place.message_id for place in await merging.places()] == waiting
    assert merging.sent(1) == ["one", "", "bought", "and two"]


async def test_requests_over_the_budget_of_a_minute_are_not_merged(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant, {"input": "and two"}, {"input": "and three"}).open()

    budgets = Budgets(requests_per_minute=2)
    with CLOCK.stop(), acting_as(Principal(tenant, "s", frozenset({"use"}), "k1", budgets=budgets)):
        CLOCK.move(60 - time.time() % 60 + 0.01)
        await merging.respond()

    assert merging.sent(1) == ["one", "", "bought", "and two"]
    assert [place.message_id for place in await merging.places()] == merging.ids[1:]


async def test_a_request_that_cannot_be_stored_is_refused(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()

    with pytest.raises(InvalidRequest, match="store"):
        await merging.accept(input="and two", store=False)
    image = {"type": "input_image", "image_url": "ftp://example.com/a.png"}
    with pytest.raises(InvalidRequest, match="image_url"):
        await merging.accept(input=[{"role": "user", "content": [image]}])

    assert await merging.places() == []


async def test_a_message_after_the_last_model_call_gets_a_response_of_its_own(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    silence = asyncio.Event()
    merging.model.answers[:] = [[silence, *said("Done")], said("Again")]
    running = asyncio.create_task(merging.respond())
    await merging.model.opened.wait()

    waiting = await merging.accept(input="and two")
    silence.set()
    await running
    run = await merging.admission.start(waiting, merging.request(input="and two"), RequestContext(deadline(600)))

    assert not isinstance(run, StartedRun)
    assert (await merging.responder.play(run)).response.id == name_of("resp", waiting)
    assert shown(await merging.items()) == ["one", "mcp_list_tools", "Done", "and two", "Again"]


async def test_a_request_of_another_process_gets_the_events_of_the_running_response(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    services = merging.fixture.other_process(script()).services
    waiting = services.response_requests.make_admission(merging.conversation)
    requests: list[asyncio.Task[Any]] = []
    start = partial(waiting.start, context=RequestContext(deadline(600)))

    async def accept(_group: Toolgroup, _invocation: Invocation, /) -> ToolOutcome:
        request = merging.request(input="and two")
        requests.append(asyncio.create_task(start(await waiting.accept(request), request)))
        return ToolOutcome("bought")

    merging.fixture.fake_mcp.invoke = accept  # type: ignore[method-assign]

    answered = await merging.responder.respond("one", conversation=merging.conversation, **TOOLS)

    started = await asyncio.wait_for(requests[0], 30)
    assert isinstance(started, StartedRun)
    assert name_of("resp", started.run_id) == answered.response.id
    events = await services.tail.read_events(answered.response.id, -1, deadline(30))
    assert [text async for text in events] == [event.model_dump_json() for event in answered.events]


async def test_a_message_that_is_taken_before_any_output_is_the_first_of_it(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    silence = asyncio.Event()
    merging.model.answers[:] = [[silence, *called("unknown")], said("Done")]
    running = asyncio.create_task(merging.responder.respond("one", conversation=merging.conversation))
    await merging.model.opened.wait()

    await merging.accept(input="and two")
    silence.set()
    await running

    assert merging.sent(1)[-1] == "and two"
    assert shown(await merging.items()) == ["one", "and two", "Done"]


async def test_a_message_waits_for_a_response_that_calls_its_client(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    merging.model.answers[:] = [called("buy", "ask_user"), said("Again")]

    response = await merging.respond(tools=[MCP_TOOL, FUNCTION])

    assert [item.type for item in response.output][1:] == ["mcp_call", "function_call"]
    [place] = await merging.places()
    with pytest.raises(InvalidRequest, match="No tool output found"):
        await merging.admission.start(place.message_id, merging.request(input="and two"), RequestContext(deadline(600)))
    failed = await merging.read(place.message_id)
    assert (failed.status, failed.error and failed.error.code) == ("failed", "missing_tool_output")


async def test_a_cancelled_message_is_not_merged(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    accept = merging.invoke

    async def accept_and_cancel(group: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        outcome = await accept(group, invocation)
        await merging.fixture.services.response_requests.cancel(name_of("resp", merging.ids[0]))
        return outcome

    merging.fixture.fake_mcp.invoke = accept_and_cancel  # type: ignore[method-assign]

    await merging.respond()

    assert merging.sent(1) == ["one", "", "bought"]
    assert (await merging.read(merging.ids[0])).status == "cancelled"


async def test_the_id_of_a_merged_message_leads_to_the_running_response(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    silence = asyncio.Event()
    merging.model.answers[1] = [silence, *said("Done")]
    running = asyncio.create_task(merging.respond())
    await until(lambda: len(merging.model.requests) == 2)

    services, own = merging.fixture.services, name_of("resp", merging.ids[0])
    found = await merging.read(merging.ids[0])
    events = await services.response_requests.use_found(
        own, lambda one: services.tail.read_events(one, -1, deadline(30))
    )
    first = json.loads(await anext(events))
    await events.aclose()
    cancelled = await services.response_requests.cancel(own)
    await running

    assert (found.status, first["response"]["id"], cancelled.id) == ("in_progress", found.id, found.id)
    assert cancelled.status == "cancelled"


async def test_a_retry_finds_the_response_that_has_its_message(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    merging.responder.attempt = RequestAttempt("f" * 32)
    await merging.respond()
    merging.responder.attempt = NO_ATTEMPT
    waiting = merging.fixture.services.response_requests.make_waiting()

    async def find(fingerprint: str, count: int) -> str | None:
        return await waiting.find_merged(RequestAttempt(fingerprint, count), merging.conversation)

    assert await find("e" * 32, 1) is None
    assert [await find("f" * 32, 1), await find("f" * 32, 1), await find("f" * 32, 2)] == [
        merging.ids[0],
        None,
        merging.ids[0],
    ]


async def test_a_response_in_the_background_takes_messages_of_its_end_user(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    set_end_user("mia")
    response_id = await merging.fixture.create("one", conversation=merging.conversation, stream=True, **TOOLS)
    await merging.accept(input="and two")
    set_end_user(None)
    merging.bodies = ({"input": "of nobody"},)

    await merging.fixture.run(response_id)

    assert merging.sent(1) == ["one", "", "bought", "and two"]
    assert [place.message_id for place in await merging.places()] == merging.ids
    assert shown(await merging.items())[3:] == ["and two", "Done"]
    await merging.fixture.follow(response_id)


async def test_a_worker_that_continues_a_response_has_its_merged_messages(own_cloud: Cloud, tenant: str) -> None:
    merging = await Merging(own_cloud, tenant).open()
    merging.model.answers[1] = [asyncio.Event()]
    response_id = await merging.fixture.create("one", conversation=merging.conversation, stream=True, **TOOLS)
    async with merging.fixture.dying(response_id):
        await until(lambda: len(merging.model.requests) == 2)

    await merging.fixture.run(response_id)

    assert merging.sent(2) == merging.sent(1) == ["one", "", "bought", "and two"]
    assert shown(await merging.items())[3:] == ["and two", "Again"]
    assert (await merging.read(merging.ids[0])).status == "completed"
    await merging.fixture.follow(response_id)


@pytest.mark.parametrize(
    ("operation", "marker", "lost"),
    [
        ("PutItem", "message_id", True),
        ("DeleteItem", "waiting_conversation", True),
        ("DeleteItem", "waiting_conversation", False),
    ],
)
async def test_a_response_that_has_a_message_goes_on_after_errors(
    own_cloud: Cloud, tenant: str, operation: str, marker: str, lost: bool
) -> None:
    merging = await Merging(own_cloud, tenant).open()

    with own_cloud.proxy.failing(operation, marker, lost=lost, times=1 if lost else 99):
        response = await merging.respond()
    followed = await merging.finish(merging.ids[0])

    assert (response.status, followed) == ("completed", response)
    assert shown(await merging.items()) == ["one", "mcp_list_tools", "mcp_call", "and two", "Done"]
    assert await merging.places() == []


@pytest.mark.parametrize("lost", [False, True])
async def test_a_message_that_cannot_be_claimed_gets_a_response_of_its_own(
    own_cloud: Cloud, tenant: str, lost: bool
) -> None:
    merging = await Merging(own_cloud, tenant).open()

    with own_cloud.proxy.failing("UpdateItem", "merged_into", lost=lost):
        response = await merging.respond()
    own = await merging.finish(merging.ids[0])

    assert (response.status, own.status, own.id) == ("completed", "completed", name_of("resp", merging.ids[0]))
    assert shown(await merging.items())[3:] == ["Done", "and two", "Again"]
    assert await merging.places() == []


async def test_a_response_that_dies_at_any_call_loses_and_doubles_no_message(own_cloud: Cloud, tenant: str) -> None:
    merging = await Merging(own_cloud, tenant).open()
    with counting(own_cloud) as calls:
        await merging.respond()
    points = [(name, n) for name in ("PutItem", "UpdateItem", "DeleteItem") for n in range(calls.count(name))]
    assert len(points) >= 9

    merged = own = 0
    for operation, number in points:
        merging = await Merging(own_cloud, tenant).open()
        await die_at(own_cloud, operation, number, merging.respond)
        CLOCK.move(LEASE + 1)
        merging.model.answers[:] = [said() for _ in range(9)]
        results = [await merging.finish(message_id) for message_id in merging.ids]

        await merging.fixture.services.responses.contexts.conversations.reconcile(merging.conversation)
        texts = shown(await merging.items())
        for result in results:
            assert texts.count("and two") == (result.status == "completed"), (operation, number, texts)
            assert result.status in ("completed", "failed")
        assert await merging.places() == []
        own += any(result.id == name_of("resp", one) for result, one in zip(results, merging.ids, strict=True))
        merged += any(result.id != name_of("resp", one) for result, one in zip(results, merging.ids, strict=True))
    assert merged
    assert own
