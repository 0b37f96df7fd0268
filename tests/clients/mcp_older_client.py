# mypy: ignore-errors
# The package is in another environment.
"""Calls of agents with the SDK of MCP before the stateless revision: `python mcp_older_client.py AGENT_ID`."""

import asyncio
import os
import sys

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client

URL, KEY = os.environ["STINT_URL"], os.environ["STINT_API_KEY"]
HEADERS = {"Authorization": f"Bearer {KEY}"}


async def main(agent_id):
    async with (
        streamablehttp_client(f"{URL}/v1/agents/{agent_id}/mcp", headers=HEADERS) as (
            reader,
            writer,
            session_id,
        ),
        ClientSession(reader, writer) as session,
    ):
        made = await session.initialize()
        print("initialize", made.protocolVersion, made.serverInfo.name, session_id())
        await session.send_ping()
        [tool] = (await session.list_tools()).tools
        seen = []

        async def note(progress, _total, message):
            seen.append(message)

        first = await session.call_tool(tool.name, {"message": "say: Hello"}, progress_callback=note)
        print("call", first.content[0].text, seen[0])
        arguments = {"message": "say: Again", "session_id": first.structuredContent["session_id"]}
        second = await session.call_tool(tool.name, arguments)
        same = second.structuredContent["session_id"] == first.structuredContent["session_id"]
        print("session", second.content[0].text, same)
        failed = await session.call_tool(tool.name, {"message": "fail: before"})
        print("failed", failed.isError)
        try:
            await session.call_tool("other", {"message": "Hello"})
        except McpError as error:
            print("tool", error.error.code)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
