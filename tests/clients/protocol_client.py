# mypy: ignore-errors
# The packages are in another environment.
"""Send one message to an agent by a protocol, with its SDK, and print what came back as JSON.

python protocol_client.py PROTOCOL AGENT_ID < {"text": ..., "session_id": ..., "messages": [...]}
"""

import asyncio
import json
import os
import sys
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

THREAD = "1"
Given = dict[str, Any]
Answer = dict[str, Any]
HEADERS = {"Authorization": f"Bearer {os.environ['STINT_API_KEY']}"}
URL = os.environ["STINT_URL"]


async def call_by_mcp(agent_id: str, given: Given) -> Answer:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as http:
        transport = streamable_http_client(f"{URL}/v1/agents/{agent_id}/mcp", http_client=http)
        async with Client(transport) as client:
            [tool] = (await client.list_tools()).tools
            arguments = {"message": given["text"], "session_id": given["session_id"]}
            result = await client.call_tool(tool.name, arguments)
            return {"text": result.content[0].text, **result.structured_content}


async def call_by_a2a(agent_id: str, given: Given) -> Answer:
    from a2a.client import ClientConfig, create_client
    from a2a.helpers import get_artifact_text, new_text_message
    from a2a.types import ListTasksRequest, Role, SendMessageRequest

    async with httpx.AsyncClient(headers=HEADERS, timeout=60) as http:
        config = ClientConfig(httpx_client=http, streaming=False)
        client = await create_client(f"{URL}/v1/agents/{agent_id}/a2a", config)
        message = new_text_message(given["text"], role=Role.ROLE_USER, context_id=given["session_id"])
        [answer] = [event async for event in client.send_message(SendMessageRequest(message=message))]
        text = "".join(get_artifact_text(artifact) for artifact in answer.task.artifacts)
        tasks = await client.list_tasks(ListTasksRequest(context_id=given["session_id"], include_artifacts=True))
        outputs = [get_artifact_text(artifact) for task in tasks.tasks for artifact in task.artifacts]
        return {"text": text, "session_id": answer.task.context_id, "outputs": outputs}


async def call_by_ag_ui(agent_id: str, given: Given) -> Answer:
    from ag_ui.core import Event, EventType, Message, RunAgentInput, UserMessage
    from pydantic import TypeAdapter

    messages = TypeAdapter(list[Message]).validate_python(given["messages"])
    messages.append(UserMessage(id=str(uuid.uuid4()), role="user", content=given["text"]))
    run = RunAgentInput(thread_id=THREAD, run_id=str(uuid.uuid4()), messages=messages)
    body = run.model_dump(mode="json", by_alias=True, exclude_none=True)
    async with httpx.AsyncClient(headers=HEADERS, timeout=60) as http:
        answer = await http.post(f"{URL}/v1/agents/{agent_id}/ag-ui", json=body)
    answer.raise_for_status()
    lines = [line.removeprefix("data:") for line in answer.text.splitlines() if line.startswith("data:")]
    events = [TypeAdapter(Event).validate_json(line) for line in lines]
    snapshot = [event for event in events if event.type == EventType.MESSAGES_SNAPSHOT][-1]
    return {
        "text": "".join(event.delta for event in events if event.type == EventType.TEXT_MESSAGE_CONTENT),
        "session_id": answer.headers["stint-session-id"],
        "messages": [message.model_dump(mode="json", by_alias=True) for message in snapshot.messages],
    }


CALLS: dict[str, Callable[[str, Given], Awaitable[Answer]]] = {
    "mcp": call_by_mcp,
    "a2a": call_by_a2a,
    "ag-ui": call_by_ag_ui,
}


async def main(protocol: str, agent_id: str) -> None:
    print(json.dumps(await CALLS[protocol](agent_id, json.load(sys.stdin))))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
