"""Fake embeddings server. It validates requests as strictly as OpenAI, and its responses can be scripted.

Without a script, a vector is that of `hashed/words-N`, in the encoding that is requested, and in reverse order.
"""

import base64
import json
import struct
from typing import Any

from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.retrieval.embedders.hashed import embed_words

DIMENSION = 8
LONGEST = 1000


class EmbeddingsServer(ScriptedHTTPServer):
    """Server of `POST /v1/embeddings` and `GET /v1/models`."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(answer, port)

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"


def answer(received: Received) -> Reply:
    if (received.method, received.path) == ("GET", "/v1/models"):
        return document({"object": "list", "data": [{"id": "words", "object": "model"}]})
    if (received.method, received.path) != ("POST", "/v1/embeddings"):
        return error(404, f"Unknown request URL: {received.method} {received.path}")
    body = received.json()
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    if fault := find_fault(body, texts):
        return error(400, fault)
    vectors = embed_words(texts, body.get("dimensions", DIMENSION)).vectors
    return embeddings([list(vector) for vector in vectors], encoding=body.get("encoding_format", "float"))


def find_fault(body: dict[str, Any], texts: list[Any]) -> str | None:
    """Return why OpenAI would refuse a request, or None."""
    if unknown := set(body) - {"model", "input", "encoding_format", "dimensions", "user"}:
        return f"Unrecognized request argument supplied: {', '.join(sorted(unknown))}"
    if not 1 <= len(texts) <= 2048 or not all(isinstance(text, str) and text for text in texts):
        return "'$.input' is invalid. Please check the API reference."
    if any(len(text.split()) > LONGEST for text in texts):
        return f"This model's maximum context length is {LONGEST} tokens. Please reduce your prompt."
    return None


def embeddings(vectors: list[list[float]], encoding: str = "float", tokens: int = 7) -> Reply:
    """Return an answer with vectors, the last one first."""
    data = [
        {"object": "embedding", "index": index, "embedding": encode(vector) if encoding == "base64" else vector}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return document({"object": "list", "data": data[::-1], "model": "words", "usage": usage})


def encode(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def document(body: Any, status: int = 200) -> Reply:
    return Reply((json.dumps(body).encode(),), status)


def error(status: int, message: str, **fields: str) -> Reply:
    return document({"error": {"message": message, "type": "invalid_request_error", **fields}}, status)
