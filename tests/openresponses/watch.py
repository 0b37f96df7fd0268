"""Check of all exchanges of tests with the Responses API; errors are collected."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import parse_qs

from tests.openresponses.schema import Json

PATH = re.compile(r"(?:^|/)v1/(?:openai/v1/)?((?:responses|conversations|chat/completions)(?:/[^?]*)?)(?:\?(.*))?$")
WORDS = (
    "responses",
    "conversations",
    "items",
    "input_items",
    "steps",
    "trace",
    "input",
    "cancel",
    "heartbeat",
    "compact",
    "input_tokens",
    "chat/completions",
    "messages",
)
COMPLAINTS: list[str] = []


def take_complaints() -> list[str]:
    """Return and remove the errors since the last call."""
    taken = COMPLAINTS[:]
    del COMPLAINTS[: len(taken)]
    return taken


@dataclass
class Exchange:
    """A request to the Responses API and its response."""

    method: str
    route: str
    after: int
    status: int = 0
    media_type: str = ""
    marked: bool = True
    request: bytearray = field(default_factory=bytearray)
    body: bytearray = field(default_factory=bytearray)

    @classmethod
    def of(cls, method: str, target: str) -> "Exchange | None":
        """Return a new exchange, or None for a request to another API."""
        match = PATH.search(target)
        if match is None or method in ("OPTIONS", "HEAD"):
            return None
        route = "/".join(part if part in WORDS else "{}" for part in re.split(r"(?<!chat)/", match[1].rstrip("/")))
        after = parse_qs(match[2] or "").get("starting_after", ["-1"])[0]
        return cls(method, route, int(after) if after.lstrip("-").isdecimal() else -1)

    def hear_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Read the request's headers: streams to Llama Stack's clients do not end with `[DONE]`."""
        sent = {name.lower(): value for name, value in headers}
        if (last := sent.get(b"last-event-id", b"")).isdigit():
            self.after = int(last)
        named = b"LlamaStackClient/" in sent.get(b"user-agent", b"")
        self.marked = not named and b"x-llamastack-client-version" not in sent

    def check_request(self) -> None:
        """Check the body of a request, which Stint sent as a client."""
        from tests.openresponses.bodies import check_request

        if f"{self.method} {self.route}" != "POST responses":
            return
        try:
            check_request(json.loads(self.request))
        except (AssertionError, ValueError) as error:
            self.note(f"The request is wrong: {error}")

    def note(self, complaint: str) -> None:
        """Record an error."""
        COMPLAINTS.append(f"{self.method} {self.route} -> {self.status}: {complaint}")

    def _mark(self, whole: bool) -> bytes:
        """Return the final `[DONE]` if the stream lacks it for this client."""
        return b"data: [DONE]\n\n" if whole and not self.marked else b""

    def finish(self, *, whole: bool = True) -> None:
        """Check the response against the contract; `whole` is false if either side cut it off."""
        if self.status == 0 or (not whole and self.media_type != "text/event-stream"):
            return
        try:
            self._check(whole)
        except AssertionError as error:
            self.note(str(error))
        except (LookupError, TypeError, ValueError) as error:
            self.note(f"{type(error).__name__} {error} in {bytes(self.body[-2000:])!r}")

    def _check(self, whole: bool) -> None:
        from tests.openresponses.bodies import check_error
        from tests.openresponses.frames import check_stream

        if self.media_type == "text/event-stream":
            streams = {"chat/completions": check_chunks}
            check = streams.get(self.route)
            if check is None:
                check_stream(bytes(self.body) + self._mark(whole), self.after, whole=whole)
            else:
                check(bytes(self.body) + self._mark(whole), whole)
            return
        body = json.loads(self.body)
        if self.status >= 400:
            check_error(body)
            return
        check_body = checks().get(f"{self.method} {self.route}")
        assert check_body is not None, "No such operation is known to the tests"
        check_body(body)


@cache
def checks() -> dict[str, Callable[[Json], None]]:
    """Return the check of each operation's response."""
    from tests.openresponses import bodies

    return {
        "POST responses": bodies.check_response,
        "GET responses": bodies.check_response_list,
        "GET responses/{}": bodies.check_response,
        "DELETE responses/{}": bodies.check_deleted_response,
        "GET responses/{}/input_items": bodies.check_item_list,
        "GET responses/{}/trace": bodies.check_trace,
        "GET responses/{}/steps": bodies.check_steps,
        "GET responses/{}/steps/{}/input": bodies.check_model_input,
        "POST responses/{}/cancel": bodies.check_response,
        "POST responses/{}/heartbeat": bodies.check_heartbeat,
        "POST responses/input_tokens": bodies.check_input_tokens,
        "POST responses/compact": bodies.check_compaction,
        "POST conversations": bodies.check_conversation,
        "GET conversations": bodies.check_conversation_list,
        "GET conversations/{}": bodies.check_conversation,
        "POST conversations/{}": bodies.check_conversation,
        "DELETE conversations/{}": bodies.check_deleted_conversation,
        "POST conversations/{}/items": bodies.check_item_list,
        "GET conversations/{}/items": bodies.check_item_list,
        "GET conversations/{}/items/{}": bodies.check_item,
        "DELETE conversations/{}/items/{}": bodies.check_conversation,
        "POST chat/completions": bodies.check_chat_completion,
        "GET chat/completions": bodies.check_chat_completion_list,
        "GET chat/completions/{}": bodies.check_chat_completion,
        "POST chat/completions/{}": bodies.check_chat_completion,
        "DELETE chat/completions/{}": bodies.check_deleted_chat_completion,
        "GET chat/completions/{}/messages": bodies.check_chat_message_list,
    }


def check_chunks(body: bytes, whole: bool) -> None:
    """Check a streamed chat completion: it has only data lines, and `[DONE]` at the end."""
    from tests.openresponses.types import check_openai_object

    assert b"\r" not in body, "A stream has carriage returns"
    *blocks, rest = body.decode().split("\n\n")
    assert not whole or rest == "", f"A stream ends in the middle of an event: {rest!r}"
    datas = [block.removeprefix("data: ") for block in blocks if not block.startswith(":")]
    assert not whole or datas[-1:] == ["[DONE]"], f"A stream of chunks ends with {datas[-1:]}"
    for data in datas:
        if data != "[DONE]" and "error" not in json.loads(data):
            check_openai_object("chat.completion.chunk", json.loads(data))
