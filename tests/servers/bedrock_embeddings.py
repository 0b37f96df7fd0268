"""Fake Bedrock runtime with the embedding models of InvokeModel. It validates requests strictly, and can be scripted.

Without a script, a vector is that of `hashed/words-N`.
"""

import json
import re
from typing import Any
from urllib.parse import unquote

from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.retrieval.embedders.hashed import embed_words

PATH = re.compile(r"/model/([^/]+)/invoke")
TITAN = {"inputText", "dimensions", "normalize"}
COHERE = {"texts", "input_type", "truncate"}


class BedrockEmbeddingsServer(ScriptedHTTPServer):
    """Server of `POST /model/{modelId}/invoke`."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(answer, port)


def model_of(received: Received) -> str:
    match = PATH.fullmatch(received.path)
    return unquote(match[1]) if match else ""


def answer(received: Received) -> Reply:
    model, body = model_of(received), received.json()
    if "titan-embed" in model:
        return titan(model, body)
    if "cohere.embed" in model:
        return cohere(model, body)
    return error(400, "ValidationException", "The provided model identifier is invalid.")


def titan(model: str, body: dict[str, Any]) -> Reply:
    allowed = TITAN if "v2" in model else {"inputText"}
    if set(body) - allowed or not body["inputText"] or body.get("dimensions", 1024) not in (1024, 512, 256):
        return error(400, "ValidationException", f"Malformed input request: {sorted(body)}")
    if len(body["inputText"].split()) > 8192:
        return error(400, "ValidationException", "Too many input tokens. Max input tokens: 8192")
    found = embed_words([body["inputText"]], body.get("dimensions", 1024) if "v2" in model else 1536)
    return document({"embedding": found.vectors[0], "inputTextTokenCount": found.tokens})


def cohere(model: str, body: dict[str, Any]) -> Reply:
    allowed = COHERE | ({"output_dimension"} if "v4" in model else set())
    if set(body) - allowed or body["input_type"] not in ("search_document", "search_query"):
        return error(400, "ValidationException", f"Malformed input request: {sorted(body)}")
    if not 1 <= len(body["texts"]) <= 96:
        return error(400, "ValidationException", "expected maxItems 96")
    found = embed_words(body["texts"], body.get("output_dimension", 1536) if "v4" in model else 1024)
    headers = {"X-Amzn-Bedrock-Input-Token-Count": str(found.tokens)}
    vectors = {"float": found.vectors} if "v4" in model else found.vectors
    return document({"embeddings": vectors, "id": "x", "texts": body["texts"]}, headers)


def document(body: Any, headers: dict[str, str] | None = None) -> Reply:
    return Reply((json.dumps(body).encode(),), headers=headers or {})


def error(status: int, code: str, message: str) -> Reply:
    return Reply((json.dumps({"message": message}).encode(),), status, {"x-amzn-ErrorType": code})
