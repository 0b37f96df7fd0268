"""Calls of AWS clients: their services and operations, errors as each service sends them, and partial results."""

import json
import re
from typing import Any

from tests.faults.http_messages import HttpMessage, make_answer

SCOPE = re.compile(r"Credential=[^/]*/\d+/[^/]*/([a-z0-9-]+)/aws4_request")
JSON = {"content-type": "application/x-amz-json-1.0", "x-amzn-requestid": "PROXY"}
XML = {"content-type": "application/xml", "x-amz-request-id": "PROXY"}
BATCHES = {"dynamodb.BatchGetItem", "dynamodb.BatchWriteItem", "s3.DeleteObjects"}
"""The operations whose success may be partial."""
THROTTLED = {
    "dynamodb": "ThrottlingException",
    "sqs": "RequestThrottled",
    "events": "ThrottlingException",
    "kms": "ThrottlingException",
}
KEY = re.compile(rb"<Key>(.*?)</Key>")


class AwsCall:
    """An attempt of a call. The attempts of one call have the same `call_id`."""

    def __init__(self, request: HttpMessage) -> None:
        self.request = request
        found = SCOPE.search(request.headers.get("authorization", ""))
        self.service = found[1] if found else ""
        self.call_id = request.headers.get("amz-sdk-invocation-id", "")
        attempt = request.headers.get("amz-sdk-request", "attempt=1").split(";")[0]
        self.is_first = attempt == "attempt=1"

    @property
    def name(self) -> str:
        """Return service and operation, such as `dynamodb.PutItem`."""
        target = self.request.headers.get("x-amz-target", "").rpartition(".")[2]
        return f"{self.service}.{target or self._name_of_object_call()}"

    @property
    def can_split(self) -> bool:
        """Return whether a part of the call can fail: it is a batch of several entries."""
        if self.name == "s3.DeleteObjects":
            return len(KEY.findall(self.request.body)) > 1
        if self.name not in BATCHES:
            return False
        return all(len(_entries(part)) > 1 for part in json.loads(self.request.body)["RequestItems"].values())

    def refuse(self, status: int) -> HttpMessage:
        """Return an error of the service: 400 or 503 for throttling, 500 for a failure of its own."""
        throttled = status != 500
        if self.service == "s3":
            code, answered = ("SlowDown", 503) if throttled else ("InternalError", 500)
            body = f"<Error><Code>{code}</Code><Message>A fault of the test.</Message></Error>"
            return make_answer(answered, XML, body.encode())
        code = THROTTLED[self.service] if throttled else "InternalServerError"
        document = {"__type": f"com.amazonaws.{self.service}#{code}", "message": "A fault of the test."}
        return make_answer(400 if throttled else 500, JSON, json.dumps(document).encode())

    def split(self) -> bytes:
        """Remove the last half of a batch from the request, and return the answer's part about it."""
        if self.name == "s3.DeleteObjects":
            return self._split_objects()
        document = json.loads(self.request.body)
        rest = {table: _cut(entries) for table, entries in document["RequestItems"].items()}
        self.request.body = json.dumps(document).encode()
        return json.dumps({"UnprocessedItems" if "Write" in self.name else "UnprocessedKeys": rest}).encode()

    def add_rest(self, answer: HttpMessage, rest: bytes) -> None:
        """Add what was not processed to the answer of a batch."""
        if self.name == "s3.DeleteObjects":
            answer.body = answer.body.replace(b"</DeleteResult>", rest + b"</DeleteResult>")
            return
        answer.headers.pop("x-amz-crc32", None)
        answer.body = json.dumps(json.loads(answer.body) | json.loads(rest)).encode()

    def _split_objects(self) -> bytes:
        for name in [name for name in self.request.headers if name.startswith("x-amz-checksum") or "md5" in name]:
            del self.request.headers[name]
        keys = KEY.findall(self.request.body)
        left = keys[len(keys) // 2 :]
        for key in left:
            self.request.body = self.request.body.replace(b"<Object><Key>%b</Key></Object>" % key, b"")
        error = b"<Error><Key>%b</Key><Code>InternalError</Code><Message>A fault of the test.</Message></Error>"
        return b"".join(error % key for key in left)

    def _name_of_object_call(self) -> str:
        method, query = self.request.method, self.request.target.partition("?")[2]
        if method == "POST" and query.startswith("delete"):
            return "DeleteObjects"
        if method == "GET" and "list-type=2" in query:
            return "ListObjects"
        return f"{method.title()}Object"


def _entries(part: Any) -> list[Any]:
    """Return the entries of a table in a batch."""
    entries: list[Any] = part["Keys"] if isinstance(part, dict) else part
    return entries


def _cut(part: Any) -> Any:
    """Remove the last half of a table's entries, and return it."""
    entries = _entries(part)
    at = len(entries) // 2
    rest = entries[at:]
    del entries[at:]
    return part | {"Keys": rest} if isinstance(part, dict) else rest
