"""Requests of tests to AG-UI, and a client that keeps the messages of a thread as frontends do."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx

Body = dict[str, Any]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Body = {"name": "get_weather", "description": "The weather of a city.", "parameters": CITY}
CALL = 'call: get_weather {"city": "Rome"}'


def send_run(http: httpx.Client, agent: str, thread: str, messages: list[Body], **body: Any) -> httpx.Response:
    """Send a run. `headers` are those of the request, all others fields of its body."""
    headers = body.pop("headers", None)
    given = {"threadId": thread, "runId": "run", "messages": messages, "tools": [], "context": []} | body
    return http.post(f"/v1/agents/{agent}/ag-ui", json=given, headers=headers)


def events_of(response: httpx.Response) -> list[Body]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    frames = [frame for frame in response.text.split("\n\n") if frame.startswith("data: ")]
    events: list[Body] = [json.loads(frame.removeprefix("data: ")) for frame in frames]
    check_order(events)
    return events


def check_order(events: list[Body]) -> None:
    """Check what clients of the protocol refuse: events outside of a run, and a run that ends with open parts."""
    assert (events[0]["type"], events[0]["protocolVersion"]) == ("RUN_STARTED", "1.0")
    assert events[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR")
    pairs = {
        "STEP_STARTED": ("STEP_FINISHED", "stepName"),
        "TEXT_MESSAGE_START": ("TEXT_MESSAGE_END", "messageId"),
        "TOOL_CALL_START": ("TOOL_CALL_END", "toolCallId"),
        "REASONING_START": ("REASONING_END", "messageId"),
        "REASONING_MESSAGE_START": ("REASONING_MESSAGE_END", "messageId"),
    }
    opened: set[tuple[str, str]] = set()
    for event in events:
        for start, (end, name) in pairs.items():
            if event["type"] == start:
                assert (start, event[name]) not in opened
                opened.add((start, event[name]))
            elif event["type"] == end:
                opened.remove((start, event[name]))
        parts = {"TEXT_MESSAGE_CONTENT": "TEXT_MESSAGE_START", "REASONING_MESSAGE_CONTENT": "REASONING_MESSAGE_START"}
        if event["type"] in parts:
            assert (parts[event["type"]], event["messageId"]) in opened
    assert not opened


def types_of(events: list[Body]) -> list[str]:
    """Return the types of events, each once where it is repeated."""
    types = [event["type"] for event in events]
    return [kind for place, kind in enumerate(types) if not place or types[place - 1] != kind]


def find_event(events: list[Body], kind: str) -> Body:
    [found] = [event for event in events if event["type"] == kind]
    return found


def text_of(events: list[Body]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def said(name: str, content: Any) -> Body:
    return {"id": name, "role": "user", "content": content}


def result(name: str, call: str, content: Any = "sunny") -> Body:
    return {"id": name, "role": "tool", "toolCallId": call, "content": content}


@dataclass
class Frontend:
    """A client that sends its whole history with each run, and applies the events to it."""

    http: httpx.Client
    agent: str
    thread: str = "1"
    messages: list[Body] = field(default_factory=list)
    runs: int = 0

    def run(self, *messages: Body, **body: Any) -> list[Body]:
        """Add messages, run the agent, and return the events."""
        self.messages += messages
        self.runs += 1
        body = {"runId": f"run-{self.runs}"} | body
        events = events_of(send_run(self.http, self.agent, self.thread, self.messages, **body))
        for event in events:
            self.apply(event)
        return events

    def apply(self, event: Body) -> None:
        match event:
            case {"type": "MESSAGES_SNAPSHOT", "messages": messages}:
                self.messages = [*messages]
            case {"type": "TEXT_MESSAGE_START", "messageId": name}:
                self.find(name)["content"] = ""
            case {"type": "TEXT_MESSAGE_CONTENT", "messageId": name, "delta": delta}:
                self.find(name)["content"] += delta
            case {"type": "TOOL_CALL_START", "parentMessageId": name, "toolCallId": call, "toolCallName": tool}:
                function = {"name": tool, "arguments": ""}
                self.find(name).setdefault("toolCalls", []).append(
                    {"id": call, "type": "function", "function": function}
                )
            case {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": delta}:
                calls = [each for message in self.messages for each in message.get("toolCalls", [])]
                [found] = [each for each in calls if each["id"] == call][-1:]
                found["function"]["arguments"] += delta
            case {"type": "TOOL_CALL_RESULT", "messageId": name, "toolCallId": call, "content": content}:
                self.messages.append({"id": name, "role": "tool", "toolCallId": call, "content": content})

    def find(self, name: str) -> Body:
        for message in self.messages:
            if message["id"] == name:
                return message
        self.messages.append({"id": name, "role": "assistant"})
        return self.messages[-1]
