# mypy: ignore-errors
# The packages are in another environment.
"""Tasks with the SDK of A2A, which is not modified: `python a2a_sdk_client.py`. It prints one line for each step."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Iterable
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.helpers import new_text_message
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from google.protobuf.json_format import MessageToDict, ParseDict

URL, KEY = os.environ["STINT_URL"], os.environ["STINT_API_KEY"]
TIME = {"name": "get_time", "description": "Tells the time.", "parameters": []}


def say(text: str, **fields: Any) -> Any:
    return SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER, **fields))


def texts(artifacts: Iterable[Any]) -> str:
    return "".join(part.text for artifact in artifacts for part in artifact.parts)


def state(status: Any) -> str:
    return str(TaskState.Name(status.state)).removeprefix("TASK_STATE_")


async def collect(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


async def refused(kind: type[Exception], work: Awaitable[Any] | AsyncIterator[Any]) -> str:
    try:
        await (collect(work) if isinstance(work, AsyncIterator) else work)
    except kind as error:
        return type(error).__name__
    raise AssertionError(f"{kind.__name__} was not raised")


async def create_agent(http: httpx.AsyncClient, **config: Any) -> str:
    config = {"model": "scripted/demo", "instructions": "Secret.", "name": "Clock"} | config
    config |= {"metadata": {"description": "Knows the time."}}
    answer = await http.post("/v1/agents", json={"agent_config": config})
    return f"{URL}/v1/agents/{answer.json()['agent_id']}/a2a"


async def show_cards(http: httpx.AsyncClient, agent: str) -> None:
    card = await A2ACardResolver(http, agent).get_agent_card()
    [interface] = card.supported_interfaces
    print("card", card.name, card.description, interface.protocol_binding, interface.protocol_version)
    print("url", interface.url == agent, card.capabilities.streaming, card.capabilities.push_notifications)
    assert "Secret" not in str(card)
    assert "scripted" not in str(card)
    async with httpx.AsyncClient() as stranger:
        shown = await A2ACardResolver(stranger, URL).get_agent_card()
    print("server card", shown.name, list(shown.security_schemes))


async def run_tasks(client: Any, polling: Any) -> None:
    stream = await collect(client.send_message(say("say: Hello you")))
    first, last = stream[0].task, stream[-1].status_update
    print("stream", state(first.status), texts(each.artifact_update.artifact for each in stream), state(last.status))
    context = first.context_id
    [answer] = await collect(polling.send_message(say("say: Again", context_id=context)))
    task = answer.task
    print("document", task.context_id == context, state(task.status), texts(task.artifacts))
    read = await client.get_task(GetTaskRequest(id=task.id, history_length=1))
    print("get", texts(read.artifacts), len(read.history), read.history[0].parts[0].text)
    page = await client.list_tasks(ListTasksRequest(context_id=context, page_size=1))
    rest = await client.list_tasks(
        ListTasksRequest(context_id=context, page_size=1, page_token=page.next_page_token, include_artifacts=True)
    )
    print("list", page.tasks[0].id == task.id, rest.tasks[0].id == first.id, repr(rest.next_page_token))
    print("cancel", await refused(TaskNotCancelableError, client.cancel_task(CancelTaskRequest(id=task.id))))
    print("ended", await refused(UnsupportedOperationError, client.send_message(say("More", task_id=task.id))))
    print("subscribe", await refused(UnsupportedOperationError, client.subscribe(SubscribeToTaskRequest(id=task.id))))
    print("unknown", await refused(TaskNotFoundError, client.get_task(GetTaskRequest(id="unknown"))))
    print("context", await refused(InvalidParamsError, client.send_message(say("Hi", context_id="unknown"))))
    config = TaskPushNotificationConfig(task_id=task.id, url="https://example.com")
    create = client.create_task_push_notification_config(config)
    print("push", await refused(PushNotificationNotSupportedError, create))
    old = ClientCallContext(service_parameters={"A2A-Version": "0.3"})
    read_old = client.get_task(GetTaskRequest(id=task.id), context=old)
    print("version", await refused(VersionNotSupportedError, read_old))


async def run_background(client: Any) -> None:
    request = say("slow: 0.2\nsay: One two three four five six seven eight")
    request.configuration.return_immediately = True
    transport = client._transport
    task = (await transport.send_message(request)).task
    print("immediately", state(task.status))
    events = await collect(client.subscribe(SubscribeToTaskRequest(id=task.id)))
    print("followed", events[0].HasField("task"), state(events[-1].status_update.status))
    done = await client.get_task(GetTaskRequest(id=task.id))
    print("worker", state(done.status), texts(done.artifacts))


async def answer_calls(client: Any) -> None:
    stream = await collect(client.send_message(say("call: get_time {}")))
    asked = stream[-1].status_update
    [call] = [MessageToDict(part)["data"] for part in asked.status.message.parts if part.HasField("data")]
    print("asked", state(asked.status), call["kind"], call["toolName"])
    answer = Part()
    ParseDict({"data": {"callId": call["callId"], "result": "noon"}}, answer)
    message = Message(message_id="m1", role=Role.ROLE_USER, task_id=asked.task_id, parts=[answer])
    rest = await collect(client.send_message(SendMessageRequest(message=message)))
    told = texts(each.artifact_update.artifact for each in rest)
    print("answered", rest[0].task.id == asked.task_id, told, state(rest[-1].status_update.status))
    stream = await collect(client.send_message(say("call: get_time {}", context_id=asked.context_id)))
    cancelled = await client.cancel_task(CancelTaskRequest(id=stream[-1].status_update.task_id))
    print("cancelled", state(cancelled.status))


async def main() -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(base_url=URL, headers=headers, timeout=60) as http:
        agent = await create_agent(http)
        await show_cards(http, agent)
        factory = ClientFactory(ClientConfig(httpx_client=http))
        polling = ClientFactory(ClientConfig(httpx_client=http, streaming=False))
        client = await factory.create_from_url(agent)
        await run_tasks(client, await polling.create_from_url(agent))
        await run_background(client)
        await answer_calls(await factory.create_from_url(await create_agent(http, client_tools=[TIME])))


asyncio.run(main())
