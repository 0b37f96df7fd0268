# mypy: ignore-errors
# The packages are in another environment.
"""Calls of agents with the newest SDK of MCP, which is not modified: `python mcp_sdk_client.py`.

It prints one line for each step, in each of the two revisions.
"""

import asyncio
import os
from contextlib import asynccontextmanager

import httpx
import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

URL, KEY = os.environ["STINT_URL"], os.environ["STINT_API_KEY"]
HEADERS = {"Authorization": f"Bearer {KEY}"}
WEATHER = {"name": "get_weather", "description": "Returns the weather.", "parameters": []}
ASKING = {"name": "builtin::photogen", "require_approval": "always"}
API = httpx.AsyncClient(base_url=URL, headers=HEADERS, timeout=60)


async def create_agent(name, **config):
    agent = {"model": "scripted/demo", "instructions": "A secret.", "name": name} | config
    created = await API.post("/v1/agents", json={"agent_config": agent})
    return created.json()["agent_id"]


async def answer_form(_context, params):
    print("asked", params.message)
    fields = params.requested_schema["properties"]
    return ElicitResult(action="accept", content={"approve": True} if "approve" in fields else {"result": "sunny"})


@asynccontextmanager
async def connect(path, mode="auto", **options):
    async with (
        httpx2.AsyncClient(headers=HEADERS, timeout=60) as http,
        Client(streamable_http_client(URL + path, http_client=http), mode=mode, **options) as client,
    ):
        yield client


async def list_all(client):
    page = await client.list_tools()
    tools = [*page.tools]
    while page.next_cursor:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


async def refusal_of(call):
    try:
        await call
    except MCPError as error:
        return error.error.code


async def use(client, name):
    """Call an agent twice in one session, with progress, and wrongly."""
    seen = []

    async def note(progress, _total, message):
        seen.append((progress, message))

    first = await client.call_tool(name, {"message": "say: Hello"}, progress_callback=note)
    outcome = first.structured_content
    print("call", first.content[0].text, sorted(outcome), outcome["usage"]["total_tokens"] > 0)
    print("progress", seen[0], [each for each, _ in seen] == sorted({each for each, _ in seen}))
    second = await client.call_tool(name, {"message": "say: Again", "session_id": outcome["session_id"]})
    print("session", second.content[0].text, second.structured_content["session_id"] == outcome["session_id"])
    failed = await client.call_tool(name, {"message": "fail: before"})
    print("failed", failed.is_error, "failed" in failed.content[0].text)
    print("arguments", await refusal_of(client.call_tool(name, {"message": ""})))
    print("tool", await refusal_of(client.call_tool("other", {"message": "Hello"})))
    print("unknown session", await refusal_of(client.call_tool(name, {"message": "x", "session_id": "0" * 36})))


async def cancel(client, name, agent):
    """Cancel a call that runs, and wait for the end of its turn."""
    started = asyncio.Event()

    async def note(*_):
        started.set()

    slow = asyncio.create_task(client.call_tool(name, {"message": "slow: 20"}, progress_callback=note))
    await started.wait()
    slow.cancel()
    for _ in range(200):
        sessions = (await API.get(f"/v1/agents/{agent}/sessions")).json()["data"]
        paths = [f"/v1/agents/{agent}/session/{each['session_id']}" for each in sessions]
        statuses = {turn["status"] for path in paths for turn in (await API.get(path)).json()["turns"]}
        if "in_progress" not in statuses:
            break
        await asyncio.sleep(0.1)
    print("cancelled", "cancelled" in statuses)


async def main():
    agent = await create_agent("Clock", metadata={"description": "Knows the time."})
    await create_agent("Asker", client_tools=[WEATHER], toolgroups=[ASKING])
    async with connect("/v1/mcp") as client:
        tools = {tool.title: tool for tool in await list_all(client)}
        clock, asker = tools["Clock"], tools["Asker"]
        print("newer", client.protocol_version, client.server_info.name, clock.description)
        await use(client, clock.name)
        waits = await client.call_tool(asker.name, {"message": "call: get_weather {}"})
        print("waits", waits.is_error, "waits for input" in waits.content[0].text)
    async with connect("/v1/mcp", elicitation_callback=answer_form) as client:
        for message in ("call: get_weather {}", 'call: photogen {"query": "a fox"}'):
            done = await client.call_tool(asker.name, {"message": message})
            print("answered", done.is_error, done.content[0].text)
    async with connect(f"/v1/agents/{agent}/mcp", mode="legacy") as client:
        [tool] = await list_all(client)
        print("older", client.protocol_version, client.server_info.name, tool.name == clock.name)
        await use(client, tool.name)
        await cancel(client, tool.name, agent)
    await API.aclose()


if __name__ == "__main__":
    asyncio.run(main())
