"""Fake of all servers that are called for a request: model provider, MCP servers, documents and tools by URL."""

import json
from collections.abc import Callable

from tests.servers.chat_completions import stream
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

PEER = b"http://peer"
"""Placeholder in the cases for the address of this server, which is replaced by its real address."""

ANSWERS: dict[str, Callable[[Received], Reply]] = {}
MODELS: dict[str, Callable[[Received], Reply]] = {}


def serves(path: str) -> Callable[[Callable[[Received], Reply]], Callable[[Received], Reply]]:
    """Register a handler of a path."""

    def register(answer: Callable[[Received], Reply]) -> Callable[[Received], Reply]:
        ANSWERS[path] = answer
        return answer

    return register


def serves_model(prefix: str) -> Callable[[Callable[[Received], Reply]], Callable[[Received], Reply]]:
    """Register a handler of the models whose ids begin with a word and a hyphen."""

    def register(answer: Callable[[Received], Reply]) -> Callable[[Received], Reply]:
        MODELS[prefix] = answer
        return answer

    return register


def answer(received: Received) -> Reply:
    found = ANSWERS.get(received.path.partition("?")[0])
    return found(received) if found else Reply((b"not here",), 404)


def start_peer() -> ScriptedHTTPServer:
    return ScriptedHTTPServer(answer)


@serves("/v1/chat/completions")
def complete(received: Received) -> Reply:
    found = MODELS.get(str(received.json()["model"]).partition("-")[0])
    if found:
        return found(received)
    return stream({"content": "ok"}, usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})


def json_reply(value: object) -> Reply:
    return Reply((json.dumps(value).encode(),), 200, {"Content-Type": "application/json"})
