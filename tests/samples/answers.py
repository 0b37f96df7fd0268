"""Check of the functions' responses against the OpenAPI document."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from infra.local.invoke import EVENTS
from infra.local.proxy_response import Head
from jsonschema import Draft202012Validator
from tests.openresponses.watch import Exchange

FILES = sorted(EVENTS.glob("*/*.json"))
HTTP_FILES = [file for file in FILES if file.parent.name not in ("worker", "authorizer", "october", "sandbox")]
# All other events get 200.
STATUSES = {"query_spans": 501, "post_session_events": 202, "test_webhook_endpoint": 400, "get_mcp_resource": 404}
# The last data of a stream of OpenAI's API.
DONE = "[DONE]"


@dataclass(frozen=True)
class Operation:
    """An operation of the OpenAPI document."""

    name: str
    method: str
    path: str
    responses: dict[str, Any]

    @classmethod
    def all(cls, openapi: dict[str, Any]) -> dict[str, "Operation"]:
        return {
            operation["operationId"]: cls(operation["operationId"], method.upper(), path, operation["responses"])
            for path, operations in openapi["paths"].items()
            for method, operation in operations.items()
        }

    def schema(self, status: int, media_type: str) -> dict[str, Any]:
        """Return the schema of the responses with this status."""
        response = self.responses.get(str(status)) or self.responses[f"{status // 100}XX"]
        schema: dict[str, Any] = response["content"][media_type]["schema"]
        return schema


def operation_of(file: Path, operations: dict[str, Operation]) -> Operation:
    """Return the operation with the longest name that the file's name is equal to or begins with."""
    names = [name for name in operations if f"{file.stem}_".startswith(f"{name}_")]
    assert names, f"{file} bears no operation's name"
    return operations[max(names, key=len)]


def check_answer(
    openapi: dict[str, Any], operation: Operation, head: Head, body: bytes, query: Mapping[str, str] | None = None
) -> None:
    """Assert that a response matches the document, and the contract if it is one of the Responses API."""
    if head.status == 202 and not body:
        return
    media_type = dict(head.headers)["content-type"].split(";")[0]
    schema = operation.schema(head.status, media_type) | {"components": openapi["components"]}
    validator = Draft202012Validator(schema)
    for document in documents(media_type, body):
        validator.validate(document)
    exchange = Exchange.of(operation.method, f"{operation.path}?{urlencode(query or {})}")
    if exchange is not None:
        exchange.status, exchange.media_type, exchange.body = head.status, media_type, bytearray(body)
        exchange.finish()


def documents(media_type: str, body: bytes) -> list[Any]:
    """Return the JSON documents of a response: one, the bytes of a file, or one per server-sent event."""
    if media_type == "application/json":
        return [json.loads(body)]
    if media_type == "application/octet-stream":
        return [body.decode("latin-1")]
    if media_type == "application/jsonl":
        return [body.decode()]
    lines = [line for line in body.decode().split("\n") if not line.startswith(":")]
    *events, end = "\n".join(lines).split("\n\n")
    assert end == ""
    fields = [[line.partition(": ")[::2] for line in event.split("\n")] for event in events]
    data = [value for event in fields for name, value in event if name == "data"]
    assert len(data) == len(events)
    assert {name for event in fields for name, _ in event} <= {"data", "event", "id"}
    return [json.loads(value) for value in data if value != DONE]
