"""HTTP client of a forked server, which may die at any byte of an answer."""

import json
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

Body = dict[str, Any]


@dataclass
class Reply:
    """The part of an answer that arrived. Status 0: nothing. `complete`: the connection did not break."""

    status: int = 0
    text: str = ""
    complete: bool = False
    headers: httpx.Headers = field(default_factory=httpx.Headers)

    @property
    def ok(self) -> bool:
        """Return whether the whole answer of a successful request arrived."""
        return self.complete and 200 <= self.status < 300

    @property
    def body(self) -> Body:
        """Return the document; empty if it did not arrive."""
        try:
            parsed = json.loads(self.text) if self.complete else {}
        except ValueError:
            return {}
        return parsed if isinstance(parsed, dict) else {}

    @property
    def events(self) -> list[Body]:
        """Return the data of all events that arrived completely."""
        blocks = self.text.split("\n\n")[:-1]
        datas = [line[6:] for block in blocks for line in block.split("\n") if line.startswith("data: ")]
        return [json.loads(data) for data in datas if data != "[DONE]"]


class Api:
    """The API of a process. No request is repeated."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, trust_env=False, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def send(self, method: str, path: str, body: Any = None, reply: Reply | None = None, **options: Any) -> Reply:
        """Send a request, and return what arrives of the answer. It is added to `reply` as it arrives."""
        reply = Reply() if reply is None else reply
        try:
            with self.client.stream(method, path, json=body, **options) as answer:
                reply.status, reply.headers = answer.status_code, answer.headers
                for text in answer.iter_text():
                    reply.text += text
            reply.complete = True
        except httpx.TransportError:
            pass
        return reply

    def get(self, path: str) -> Reply:
        return self.send("GET", path)

    def post(self, path: str, body: Any = None, reply: Reply | None = None, **options: Any) -> Reply:
        return self.send("POST", path, body, reply, **options)

    def delete(self, path: str) -> Reply:
        return self.send("DELETE", path)

    def make(self, path: str, body: Any = None, **options: Any) -> Body:
        """Send a POST that must succeed, and return the document."""
        reply = self.post(path, body, **options)
        assert reply.ok, f"POST {path}: {reply.status} {reply.text}"
        return reply.body

    def read(self, path: str) -> Body:
        """Read a document, which must be there."""
        reply = self.get(path)
        assert reply.ok, f"GET {path}: {reply.status} {reply.text}"
        return reply.body
