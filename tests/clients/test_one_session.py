"""One session by all protocols and APIs, each with its own client."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from infra.local.engine import ROOT
from tests.clients.environments import run_client
from tests.clients.snippets import PROTOCOLS
from tests.system.test_auth_clients import AuthorizedRun

from stint.models.scripted.model import INTRODUCTION

ENVIRONMENT = ROOT / f".venv-{PROTOCOLS}"
SCRIPT = Path(__file__).with_name("protocol_client.py")
SAID = ["I am Ada", "by MCP", "by A2A", "by Llama Stack", "by the Agents API", "by AG-UI again"]
"""What the user says in each turn. The model introduces itself only in the first answer of a conversation."""

Send = Callable[..., dict[str, Any]]


def sender(stint: AuthorizedRun, agent_id: str, folder: Path) -> Send:
    """Return a function that sends a message by a protocol."""

    def send(protocol: str, text: str, session_id: str = "", messages: Sequence[Any] = ()) -> dict[str, Any]:
        command = [str(ENVIRONMENT / "bin" / "python"), str(SCRIPT), protocol, agent_id]
        given = json.dumps({"text": text, "session_id": session_id, "messages": messages})
        done = run_client(ENVIRONMENT, command, stint, folder, given=given)
        assert done.returncode == 0, done.stderr[-3000:]
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return send


def test_a_session_is_continued_by_every_protocol_and_api(stint: AuthorizedRun, tmp_path: Path) -> None:
    with stint.llama(stint.key) as llama, stint.openai(stint.key) as openai:
        config: Any = {"model": "scripted/demo", "instructions": "Answer briefly.", "name": "Shared"}
        agent_id = llama.agents.create(agent_config=config).agent_id
        send = sender(stint, agent_id, tmp_path)

        begun = send("ag-ui", SAID[0])
        session_id = begun["session_id"]
        by_mcp = send("mcp", SAID[1], session_id)
        by_a2a = send("a2a", SAID[2], session_id)
        messages: Any = [{"role": "user", "content": SAID[3]}]
        turn: Any = llama.agents.turn.create(session_id, agent_id=agent_id, messages=messages, stream=False)
        with openai.beta.agents.sessions.stream(session_id, input=SAID[4]) as stream:
            by_agents_api = stream.get_final_result().output_text
        ended = send("ag-ui", SAID[5], messages=begun["messages"])

        answers = [by_mcp["text"], by_a2a["text"], turn.output_message.content, by_agents_api, ended["text"]]
        assert INTRODUCTION in begun["text"]
        assert [answer for answer in answers if INTRODUCTION in answer or not answer] == []
        assert {each["session_id"] for each in (by_mcp, by_a2a, ended)} == {session_id}
        assert len(by_a2a["outputs"]) == 3
        assert [each["content"] for each in ended["messages"] if each["role"] == "user"] == SAID
        stored: Any = llama.agents.session.retrieve(session_id, agent_id=agent_id)
        assert [each.input_messages[0].content for each in stored.turns] == SAID
        items = list(openai.beta.agents.sessions.items.list(session_id, order="asc"))
        assert [text for item in items if (text := said_in(item))] == SAID


def said_in(item: Any) -> str:
    """Return the text of an item that is a message of the user."""
    if item.type != "message" or item.role != "user":
        return ""
    return "".join(part.text for part in item.content)
