"""Responses: streamed, in a conversation, with a tool."""

from typing import ClassVar

from tests.faults.api import Api, Body, Reply
from tests.faults.scenario import Finding, FindingKind, Findings, Scenario

RESPONSES = "/v1/responses"
ENDED = ("completed", "incomplete", "failed", "cancelled")
CALL = 'call: book_room {"label": "a"}'


def text_of(item: Body) -> str:
    return "".join(part.get("text", "") for part in item.get("content") or [])


def could_not_store(announced: Body) -> bool:
    return bool((announced["error"] or {}).get("code") == "store_unavailable")


def check_announced(events: list[Body], stored: Body) -> Findings:
    """Compare the events that a client received with the stored response."""
    for event in events:
        match event.get("type"):
            case "response.output_item.done" if event["item"] not in stored["output"]:
                yield Finding("lost", f"an announced item of type {event['item']['type']}")
            case "response.failed" if could_not_store(event["response"]) and stored["status"] == "cancelled":
                pass  # the request that cancels it stored the ending afterwards
            case "response.completed" | "response.incomplete" | "response.failed":
                announced = event["response"]
                if (announced["status"], announced["output"]) != (stored["status"], stored["output"]):
                    yield Finding("lost", f"{event['type']}: the response is {stored['status']}")
            case "error" if stored["status"] == "completed":
                yield Finding("lost", "the success of a response that was announced as failed")


class ResponseScenario(Scenario):
    """A streamed response outside of a conversation."""

    text: ClassVar[str] = "say: one two"
    stream: ClassVar[bool] = True
    conversation = ""

    def request(self, **fields: object) -> Body:
        body = {"model": "scripted/demo", "input": self.text, "tools": [self.cloud.tools.mcp_tool]}
        return body | ({"conversation": self.conversation} if self.conversation else {}) | fields

    def act(self, api: Api) -> None:
        self.reply = api.post(RESPONSES, self.request(stream=self.stream))

    def announced(self) -> list[Body]:
        """Return the responses that the client knows about."""
        if not self.stream:
            return [self.reply.body] if self.reply.ok else []
        return [event["response"] for event in self.reply.events if "response" in event]

    def check(self, api: Api) -> Findings:
        listed = api.read(f"{RESPONSES}?limit=100")["data"]
        if len(listed) > 1:
            yield Finding("doubled", f"{len(listed)} responses")
        for response_id in {response["id"] for response in (*self.announced(), *listed)}:
            yield from self.check_response(api, response_id)
        if (
            self.reply.ok
            and not self.stream
            and api.get(f"{RESPONSES}/{self.reply.body['id']}").body != self.reply.body
        ):
            yield Finding("lost", "the answer of a response")

    def check_response(self, api: Api, response_id: str) -> Findings:
        stored = api.get(f"{RESPONSES}/{response_id}")
        if not stored.ok:
            yield Finding("lost", f"an announced response: {stored.status}")
        elif stored.body["status"] not in ENDED:
            yield Finding("stuck", f"a response that is {stored.body['status']}")
        else:
            yield from check_announced(self.reply.events if self.stream else [], stored.body)


class StreamedResponse(ResponseScenario):
    name = "response"


class UnstreamedResponse(ResponseScenario):
    name = "response-unstreamed"
    stream = False


class ResponseWithTool(ResponseScenario):
    name = "response-with-tool"
    text = CALL


class ResponseInConversation(ResponseScenario):
    """A streamed response with a tool in a conversation, and then another one."""

    name = "response-in-conversation"
    text = CALL

    def prepare(self, api: Api) -> None:
        self.conversation = api.make("/v1/conversations", {})["id"]

    def check(self, api: Api) -> Findings:
        yield from super().check(api)
        before = api.read(f"{RESPONSES}?limit=100")["data"]
        following = api.post(RESPONSES, self.request(input="say: again"))
        if not following.ok or following.body["status"] != "completed":
            yield Finding("stuck", f"the conversation: {following.status} {following.text[:200]}")
            return
        items = api.read(f"/v1/conversations/{self.conversation}/items?limit=100&order=asc")["data"]
        yield from self._check_items(items, [each for each in before if each["status"] == "completed"])

    def _check_items(self, items: list[Body], completed: list[Body]) -> Findings:
        """The items of completed responses are there once, those of failed ones are not."""
        texts = [text_of(item) for item in items]
        expected = len(completed)
        for text in (self.text, "say: again", "again"):
            wanted = expected if text == self.text else 1
            if texts.count(text) != wanted:
                kind: FindingKind = "lost" if texts.count(text) < wanted else "doubled"
                yield Finding(kind, f"{text!r} is {texts.count(text)} times in the conversation, not {wanted}")
        for item in (item for response in completed for item in response["output"]):
            count = [each["id"] for each in items].count(item["id"])
            if count != 1:
                yield Finding("doubled" if count else "lost", f"an item of type {item['type']} in the conversation")


class StoredChat(Scenario):
    """A chat completion that is stored."""

    name = "stored-chat"

    def act(self, api: Api) -> None:
        body = {"model": "scripted/demo", "messages": [{"role": "user", "content": "say: one"}], "store": True}
        self.reply: Reply = api.post("/v1/chat/completions", body)

    def check(self, api: Api) -> Findings:
        listed = api.read("/v1/chat/completions")["data"]
        for found in listed:
            if not api.get(f"/v1/chat/completions/{found['id']}").ok:
                yield Finding("stuck", "a listed chat completion that cannot be read")
        # An answer whose heartbeats have begun has the status 200, also if its document is an error.
        announced = self.reply.ok and not self.reply.body.get("error")
        if announced and self.reply.body["id"] not in [found["id"] for found in listed]:
            yield Finding("lost", "an announced chat completion")


FOREGROUND: list[type[Scenario]] = [
    StreamedResponse,
    UnstreamedResponse,
    ResponseWithTool,
    ResponseInConversation,
    StoredChat,
]
