"""Calls of the MCP server, which are repeated with their key and another id of the JSON-RPC request."""

from typing import ClassVar

from tests.faults.api import Api, Body, Reply
from tests.faults.creation_scenarios import KEY, CreationScenario
from tests.faults.scenario import Finding, Findings, Scenario

from stint.mcp_server.tool_names import tool_name

PATH = "/v1/mcp"
LABEL = "mcp"


class McpCall(CreationScenario):
    """A call that begins a session, whose agent calls a tool of its own."""

    name = "mcp-call"
    path, records = PATH, r"#session:[^:|]+\|"
    message: ClassVar[str] = f'call: book_room {{"label": "{LABEL}"}}'

    def prepare(self, api: Api) -> None:
        config = {"model": "scripted/demo", "instructions": "", "toolgroups": ["desk"]}
        self.agent = api.make("/v1/agents", {"agent_config": config})["agent_id"]
        self.sent = 0

    def send(self, api: Api) -> Reply:
        self.sent += 1
        return api.post(self.path, self.call(self.sent), headers=KEY)

    def call(self, number: int) -> Body:
        params = {"name": tool_name(self.agent, None), "arguments": self.arguments()}
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}

    def arguments(self) -> Body:
        return {"message": self.message}

    def check(self, api: Api) -> Findings:
        again = self.send(api)
        result = again.body.get("result")
        if result is None:
            yield Finding("stuck", f"the repeated call: {again.status} {again.text[:200]}")
            return
        if again.body["id"] != self.sent:
            yield Finding("stuck", f"the answer to another request: {again.body['id']}")
        earlier = self.reply.body.get("result")
        if earlier is not None and not earlier["isError"] and earlier != result:
            yield Finding("doubled", f"the repeated call has another result: {result} instead of {earlier}")
        sessions = api.read(f"/v1/agents/{self.agent}/sessions")["data"]
        paths = [f"/v1/agents/{self.agent}/session/{each['session_id']}" for each in sessions]
        turns = [turn for path in paths for turn in api.read(path)["turns"]]
        succeeded = [turn for turn in turns if turn["status"] == "completed"]
        if len(succeeded) != 1 and not result["isError"]:
            yield Finding("doubled" if succeeded else "lost", f"{len(succeeded)} turns that succeeded")
        ran = [each for each in turns for step in each["steps"] if step["step_type"] == "tool_execution"]
        if len(ran) > 1:
            yield Finding("doubled", f"the tool ran in {len(ran)} steps")


class McpCallInSession(McpCall):
    """A call that continues a session."""

    name = "mcp-call-in-session"

    def prepare(self, api: Api) -> None:
        super().prepare(api)
        self.session = api.make(f"/v1/agents/{self.agent}/session", {"session_name": "s"})["session_id"]

    def arguments(self) -> Body:
        return super().arguments() | {"session_id": self.session}


MCP: list[type[Scenario]] = [McpCall, McpCallInSession]
