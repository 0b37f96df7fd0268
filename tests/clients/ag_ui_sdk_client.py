"""A program with the models of AG-UI's Python package: two turns with a frontend tool. It prints what it has seen.

Run by test_ag_ui_sdk.py in an environment of its own, with the id of the agent as its argument.
"""

import json
import os
import sys
from typing import Any

import httpx
from ag_ui.core import (
    PROTOCOL_VERSION,
    Context,
    Event,
    RunAgentInput,
    Tool,
    ToolMessage,
    UserMessage,
)
from pydantic import TypeAdapter

URL = f"{os.environ['STINT_URL']}/v1/agents/{sys.argv[1]}/ag-ui"
HEADERS = {"Authorization": f"Bearer {os.environ['STINT_API_KEY']}"}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool(name="get_weather", description="The weather of a city.", parameters=CITY)
EVENTS: Any = TypeAdapter(Event)


def run(messages: list[Any], number: int) -> list[Any]:
    """Run the agent, and return its events. One with a field that the models do not have is an error."""
    given = RunAgentInput(
        thread_id="1",
        run_id=f"run-{number}",
        protocol_version=PROTOCOL_VERSION,
        messages=messages,
        tools=[WEATHER],
        context=[Context(description="page", value="Orders")],
        state={"count": 1},
    )
    body = given.model_dump(mode="json", by_alias=True)
    events: list[Any] = []
    with httpx.stream("POST", URL, json=body, headers=HEADERS, timeout=60) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if line.startswith("data: "):
                sent = json.loads(line.removeprefix("data: "))
                event = EVENTS.validate_python(sent)
                written = event.model_dump(mode="json", by_alias=True)
                assert written == sent, (written, sent)
                assert_known(event)
                events.append(event)
    return events


def assert_known(model: Any) -> None:
    """Check that a model, and all models in it, have no fields that the package does not know."""
    if isinstance(model, list):
        for each in model:
            assert_known(each)
    elif hasattr(model, "model_extra"):
        assert not model.model_extra, model
        assert_known([getattr(model, name) for name in type(model).model_fields])


def main() -> None:
    messages: list[Any] = [UserMessage(id="u1", role="user", content='call: get_weather {"city": "Rome"}')]
    first = run(messages, 1)
    [snapshot] = [event for event in first if event.type == "MESSAGES_SNAPSHOT"]
    [call] = [event for event in first if event.type == "TOOL_CALL_START"]
    messages = [*snapshot.messages, ToolMessage(id="t1", role="tool", tool_call_id=call.tool_call_id, content="sunny")]
    second = run(messages, 2)
    [snapshot] = [event for event in second if event.type == "MESSAGES_SNAPSHOT"]
    text = "".join(event.delta for event in second if event.type == "TEXT_MESSAGE_CONTENT")
    shown = {
        "types": sorted({str(event.type.value) for event in (*first, *second)}),
        "version": first[0].protocol_version,
        "pending": first[-1].outcome.pending_tool_call_ids == [call.tool_call_id],
        "roles": [message.role for message in snapshot.messages],
        "text": text,
        "outcome": second[-1].outcome.type,
    }
    print(json.dumps(shown))


main()
