"""Agents and sessions of OpenAI's Agents API using only OpenAI's SDK.

pip install openai
python docs/examples/agents_api.py http://127.0.0.1:8321
"""

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from openai import OpenAI
from pydantic import BaseModel

MODEL = os.environ.get("MODEL", "scripted/demo")
NONE: Any = {"type": "none"}
LIQUID = {"type": "object", "properties": {"liquid": {"type": "string"}}, "required": ["liquid"]}
BOILING_POINT: Any = {
    "type": "function",
    "name": "get_boiling_point",
    "description": "Return the boiling point of a liquid.",
    "parameters": LIQUID,
}


class Sum(BaseModel):
    a: int
    b: int


def say(text: str) -> Any:
    """Return an event with a message: it starts a turn, or steers the running one."""
    content = [{"type": "input_text", "text": text}]
    return {"type": "agent.session.input.message", "input": [{"role": "user", "content": content}]}


def read_until(events: Iterable[Any], kind: str) -> list[Any]:
    """Read a stream up to an event of a type, and return what was read."""
    read: list[Any] = []
    for event in events:
        read.append(event)
        if event.type == f"agent.session.{kind}":
            return read
    raise RuntimeError(f"The stream ended before {kind}. Open it again.")


def text_of(events: Iterable[Any]) -> str:
    return "".join(event.delta for event in events if event.type.endswith("output_text.delta"))


def stream_first_turn(client: OpenAI, agent_id: str) -> str:
    """Create a session, and stream its first turn. The event of its creation has its id."""
    session_id = ""
    with client.beta.agents.sessions.create(
        environment=NONE, agent_id=agent_id, input="say: Hello, Ada.", stream=True
    ) as stream:
        for event in stream:
            if event.type == "agent.session.created":
                session_id = event.session.id
            elif event.type == "agent.session.turn.output_text.delta":
                print("text:", event.delta)
    return session_id


def call_function(client: OpenAI, session_id: str) -> None:
    """Send a message, and let the SDK answer the model's function call."""

    def get_boiling_point(arguments: dict[str, Any]) -> str:
        print("call: get_boiling_point", arguments)
        return "-100"

    question = 'Ask get_boiling_point {"liquid": "polyjuice"}'
    with client.beta.agents.sessions.stream(
        session_id, input=question, tool_handlers={"get_boiling_point": get_boiling_point}
    ) as stream:
        print("answer:", stream.get_final_result().output_text)


def parse_answer(client: OpenAI) -> str:
    """Create a session with an agent of its own, whose answers are JSON of a class."""
    with client.beta.agents.sessions.create(
        environment=NONE, agent={"model": MODEL}, input="Add 3 and 4", stream=True, output_type=Sum
    ) as stream:
        result = stream.get_final_result()
    print("parsed:", result.output_parsed)
    return result.session_id


def approve_call(client: OpenAI, mcp_url: str) -> str:
    """Let a call of an MCP server's tool wait until it is approved. `require_approval` is an extension of Stint."""
    server: Any = {
        "type": "mcp",
        "server_label": "demo",
        "transport": {"type": "http", "server_url": mcp_url},
        "require_approval": "always",
    }
    session = client.beta.agents.sessions.create(
        environment=NONE, agent={"model": MODEL, "tools": [server]}, input="say: Ready."
    )
    events = client.beta.agents.sessions.events
    with events.stream(session.id) as stream:
        read_until(stream, "idle")
        events.create(session.id, events=[say('Ask add {"a": 3, "b": 4}')])
        [action] = read_until(stream, "requires_action")[-1].session.required_actions
        print("approve:", action.request.name, action.request.arguments)
        decision: Any = {
            "type": "agent.session.input.mcp_approval_request_result",
            "request_id": action.request_id,
            "response": {"type": "mcp_tool_call", "decision": "approve"},
        }
        events.create(session.id, events=[decision])
        print("answer:", text_of(read_until(stream, "idle")))
    return session.id


def steer_turn(client: OpenAI) -> str:
    """Send a message while a turn runs. The model reads it with the result of its call."""
    code: Any = {"type": "code_interpreter"}
    session = client.beta.agents.sessions.create(
        environment=NONE, agent={"model": MODEL, "tools": [code]}, input="say: Ready."
    )
    events = client.beta.agents.sessions.events
    with events.stream(session.id) as stream:
        read_until(stream, "idle")
        events.create(session.id, events=[say('slow: 2\ncall: code_interpreter {"code": "print(3 + 4)"}')])
        read_until(stream, "turn.in_progress")
        events.create(session.id, events=[say("say: The sum is 7, and nothing else.")])
        print("answer:", text_of(read_until(stream, "idle")))
    turns = client.beta.agents.sessions.turns.list(session.id, order="asc").data
    print("turns:", [turn.status for turn in turns])
    return session.id


def cancel_turn(client: OpenAI, session_id: str) -> None:
    """Cancel a turn. The session stays usable."""
    events = client.beta.agents.sessions.events
    with events.stream(session_id) as stream:
        events.create(session_id, events=[say("slow: 60")])
        read_until(stream, "turn.in_progress")
        events.create(session_id, events=[{"type": "agent.session.input.cancel"}])
        ended = read_until(stream, "idle")
    print("ended:", [event.type for event in ended if ".turn." in event.type][-1])


def join_late(connect: Callable[[], OpenAI], session_id: str) -> None:
    """Read the turn of one client with another one that joins while it runs."""
    first, second = connect(), connect()
    with first.beta.agents.sessions.events.stream(session_id) as stream:
        first.beta.agents.sessions.events.create(session_id, events=[say("slow: 1\nsay: One, two, three.")])
        seen = read_until(stream, "turn.in_progress")
        with second.beta.agents.sessions.events.stream(session_id) as other:
            joined = read_until(other, "idle")
        seen += read_until(stream, "idle")
    print("late:", text_of(joined))
    print("same events:", [event.event_id for event in joined] == [event.event_id for event in seen])


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8321"
    mcp_url = sys.argv[2] if len(sys.argv) > 2 else None

    def connect() -> OpenAI:
        return OpenAI(base_url=f"{url}/v1", api_key=os.environ.get("STINT_API_KEY", "none"))

    client = connect()
    agent = client.beta.agents.create(model=MODEL, name="chemist", instructions="Be brief.", tools=[BOILING_POINT])

    print("-- a new session")
    session_id = stream_first_turn(client, agent.id)
    print("-- a function")
    call_function(client, session_id)
    print("-- an answer of a type")
    others = [parse_answer(client)]
    if mcp_url is not None:
        print("-- an approval")
        others.append(approve_call(client, mcp_url))
    print("-- a message to a running turn")
    others.append(steer_turn(client))
    print("-- a cancellation")
    cancel_turn(client, session_id)
    print("-- another client")
    join_late(connect, session_id)

    print("-- what is stored")
    items = client.beta.agents.sessions.items.list(session_id, order="asc")
    print("items:", [item.type for item in items][:6])
    print("usage:", client.beta.agents.sessions.retrieve(session_id).usage is not None)
    for each in others:
        client.beta.agents.sessions.delete(each)
    print("deleted:", client.beta.agents.delete(agent.id).deleted)  # its sessions, too


if __name__ == "__main__":
    main()
