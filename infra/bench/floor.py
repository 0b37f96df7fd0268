"""The floor of `make bench`: a function that runs one kind of turn, written by hand, to compare the product with.

It speaks Lambda's Runtime API. A turn is streamed, has one message and no tools, in a session that exists and whose
messages this process remembers. It makes the calls to DynamoDB, with the same client, the model call, the events and
the lines of log that the product makes for such a turn:

    1    the tenant's stops, the agent and the session's lease, at once
    2    the turn's header, while the model call is opened
    3    the turn's record, before the event that its step is complete
    4    the release of the lease, before the last event

All else is left out: validation, failures, retries, renewal of the lease, and every other kind of turn.
`tests/system/test_bench_floor.py` checks that it does the same as the product.
"""

import asyncio
import hashlib
import json
import os
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from stint.aws.dynamodb import DynamoDBClient
from stint.aws.environment import read_environment

Document = dict[str, Any]

RUNTIME = "/2018-06-01/runtime/invocation"
ROUTE = "/v1/agents/{agent_id}/session/{session_id}/turn"
INSTRUCTIONS = "Answer briefly."
MODEL_SECONDS, LEASE_SECONDS = 60, 30
WRITE_PRICE, READ_PRICE, GIGABYTE_SECOND_PRICE = 0.625e-6, 0.125e-6, 0.0000133334
ENDING_UNITS = 2
"""Write units of a turn's record and of its release, which are not known when the record is written."""
RELEASE = (
    "SET last_turn = :set_last_turn, last_records = :set_last_records, used_tokens = :set_used_tokens"
    " REMOVE lease_id, lease_turn, lease_until, lease_seconds, lease_records, cancelled_turn, heartbeat_turn,"
    " heartbeat_at"
)
LEASE = (
    "SET lease_id = :set_lease_id, lease_until = :set_lease_until, lease_seconds = :set_lease_seconds,"
    " lease_turn = :set_lease_turn"
)
IS_FREE = (
    "attribute_not_exists(deleted_at) AND (attribute_not_exists(expires_at) OR expires_at > :now)"
    " AND attribute_not_exists(lease_id) AND attribute_exists(pk)"
    " AND (attribute_not_exists(last_turn) OR last_turn < :set_lease_turn)"
)
NOT_USED = ("tool_calls", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens", "reasoning_tokens")


class Table:
    """The table of the stack. `units` counts the capacity units of reads and writes."""

    def __init__(self) -> None:
        self._client = DynamoDBClient(read_environment())
        self._name = os.environ["STINT_TABLE"]
        self.units: Counter[str] = Counter()

    async def get(self, pk: str, sk: str, *, consistent: bool) -> Document:
        found: Document = (await self._call("GetItem", Key=key(pk, sk), ConsistentRead=consistent)).get("Item", {})
        return found

    async def put(self, pk: str, sk: str, document: Document, more: Document) -> None:
        """Write a record that does not exist."""
        text = dump(document)
        size = {"N": str(len(text) + len(pk) + len(sk))}
        item = {"nonce": {"B": os.urandom(6)}, **key(pk, sk), **more, "size": size, "doc": {"S": text}}
        await self._write("PutItem", Item=item, ConditionExpression="attribute_not_exists(pk)")

    async def update(self, pk: str, sk: str, change: str, condition: str, values: Document) -> Document:
        changes = {"UpdateExpression": change, "ConditionExpression": condition, "ExpressionAttributeValues": values}
        item: Document = (await self._write("UpdateItem", Key=key(pk, sk), ReturnValues="ALL_NEW", **changes))[
            "Attributes"
        ]
        return item

    async def _write(self, operation: str, **request: Any) -> Document:
        return await self._call(operation, ReturnValuesOnConditionCheckFailure="ALL_OLD", **request)

    async def _call(self, operation: str, **request: Any) -> Document:
        sent = {"TableName": self._name, **request, "ReturnConsumedCapacity": "TOTAL"}
        answer = await self._client.call(operation, sent)
        self.units["reads" if operation == "GetItem" else "writes"] += answer["ConsumedCapacity"]["CapacityUnits"]
        return answer


class Model:
    """A connection to a server of chat completions that is kept."""

    def __init__(self, url: str) -> None:
        self._host, _, path = url.removeprefix("http://").partition("/")
        self._head = (
            f"POST /{path}/chat/completions HTTP/1.1\r\nHost: {self._host}\r\nAccept: text/event-stream\r\n"
            f"Content-Type: application/json\r\nAuthorization: Bearer {os.environ['OPENAI_API_KEY']}\r\n"
        )
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self, messages: list[Document]) -> asyncio.StreamReader:
        """Send a request, and return the reader after the head of its answer."""
        reader, writer = self._streams = self._streams or await connect(self._host)
        settings = {"model": "bench", "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.0}
        content = dump({**settings, "messages": [{"role": "system", "content": INSTRUCTIONS}, *messages]}).encode()
        writer.write(f"{self._head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise OSError(f"The model server answered {head!r}.")
        return reader


async def read_chunks(reader: asyncio.StreamReader) -> AsyncIterator[Document]:
    """Yield the chunks of the model's answer."""
    received = b""
    while size := int(await reader.readline(), 16):
        *events, received = (received + (await reader.readexactly(size + 2))[:-2]).split(b"\n\n")
        for event in events:
            if event != b"data: [DONE]":
                yield json.loads(event.removeprefix(b"data: "))
    await reader.readline()


class Response:
    """A streamed response to the Runtime API. Nothing is sent before the first event."""

    def __init__(self, address: str, request_id: str, trace_id: str) -> None:
        self._address, self._number = address, 0
        headers = {
            "x-accel-buffering": "no",
            "content-type": "text/event-stream; charset=utf-8",
            "x-content-type-options": "nosniff",
            "cache-control": "no-store",
            "x-request-id": request_id,
            "x-trace-id": trace_id,
        }
        self._prelude = dump({"statusCode": 200, "headers": headers}).encode() + bytes(8)
        self._head = (
            f"POST {RUNTIME}/{request_id}/response HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n"
            "Content-Type: application/vnd.awslambda.http-integration-response\r\n"
            "Lambda-Runtime-Function-Response-Mode: streaming\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()

    async def open(self) -> None:
        self._reader, self._writer = await connect(self._address)

    async def send(self, kind: str, payload: Document) -> None:
        """Send an event as a chunk."""
        event = dump({"event": {"payload": {"event_type": kind, **payload}}})
        data = self._prelude + f"id: {self._number}\ndata: {event}\n\n".encode()
        self._writer.write(b"%b%x\r\n%b\r\n" % (self._head, len(data), data))
        self._head, self._prelude, self._number = b"", b"", self._number + 1
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._reader.read()
        self._writer.close()


class Turn:
    """A turn, from the lease of its session to the release. `last` is the last turn of the session."""

    def __init__(self, table: Table, event: Document, last: str) -> None:
        self._table, self._last, self._began = table, last, time.monotonic()
        self.ids = {name: event["pathParameters"][name] for name in ("agent_id", "session_id")}
        self.ids["turn_id"] = new_id()
        self.fingerprint = hashlib.sha256(event["body"].encode()).hexdigest()[:32]
        self.input: list[Document] = json.loads(event["body"])["messages"]
        self.step = {"step_id": "", "started_at": "", "completed_at": "", "step_type": "inference"}
        self.started_at, self.first_event = now(), 0.0
        self.asked_at, self.first_token_ms = 0.0, 0
        self._lease_id = os.urandom(8).hex()
        self._log = f"default#session:{self.ids['agent_id']}:{self.ids['session_id']}"
        self._session = self._log, "state"
        table.units.clear()

    def elapsed(self) -> float:
        return round((time.monotonic() - self._began) * 1000, 1)

    async def lease(self) -> None:
        """Read the agent, and lease the session."""
        values = {
            ":set_lease_id": {"S": self._lease_id},
            ":set_lease_until": {"N": str(int((time.time() + LEASE_SECONDS) * 1000))},
            ":set_lease_seconds": {"N": str(LEASE_SECONDS)},
            ":set_lease_turn": {"S": self.ids["turn_id"]},
            ":now": {"N": str(int(time.time()))},
        }
        stops, agent, session = await asyncio.gather(
            self._table.get(f"default#stop:{os.urandom(1)[0] % 8}", "all", consistent=False),
            self._table.get("default#agent", self.ids["agent_id"], consistent=True),
            self._table.update(*self._session, LEASE, IS_FREE, values),
        )
        if stops or not agent or session.get("last_turn", {"S": ""})["S"] != self._last:
            raise ValueError("The floor runs turns of sessions whose turns it has all run.")
        self._more = {"expires_at": session["expires_at"]}
        self._used = [int(count) for count in session.get("used_tokens", {"S": "0 0 0 0 0"})["S"].split()]

    async def put_header(self) -> None:
        messages = [{"content": each["content"]} for each in self.input]
        header = {"input_messages": messages, "started_at": self.started_at, "fingerprint": self.fingerprint}
        await self._table.put(self._log, self.ids["turn_id"], header, self._more)

    async def stream(self, reader: asyncio.StreamReader, response: Response) -> None:
        """Send the text of the model as it comes."""
        self.step |= {"step_id": new_id(), "started_at": now()}
        self.text, common = "", {"step_type": "inference", "step_id": self.step["step_id"]}
        await response.send("step_start", {**common, "metadata": {}})
        async for chunk in read_chunks(reader):
            self._usage: Document = chunk.get("usage", {})
            for choice in chunk["choices"]:
                if part := choice["delta"].get("content"):
                    self.first_token_ms = self.first_token_ms or round((time.monotonic() - self.asked_at) * 1000)
                    self.text += part
                    await response.send("step_progress", {**common, "delta": {"type": "text", "text": part}})

    async def put_record(self) -> None:
        """Store the step and the ending."""
        self.completed_at = self.step["completed_at"] = now()
        names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "total_tokens": "total_tokens"}
        self.usage: Document = {name: self._usage[theirs] for name, theirs in names.items()}
        self.consumption = self._consumption()
        ending = {"status": "completed", "completed_at": self.completed_at, "usage": self.usage}
        record = {
            "step": {**self.step, "model_response": {"content": self.text}, **self._measured()},
            "ending": {**ending, "consumption": self.consumption},
        }
        await self._table.put(
            self._log, f"{self.ids['turn_id']}:0000", record, {**self._more, "ended_as": {"S": "completed"}}
        )

    async def release(self) -> None:
        values = {":set_last_turn": {"S": self.ids["turn_id"]}, ":set_last_records": {"N": "1"}}
        counts = [*(self.usage[name] for name in ("input_tokens", "output_tokens", "total_tokens")), 0, 0]
        used = " ".join(str(before + count) for before, count in zip(self._used, counts, strict=True))
        values[":set_used_tokens"] = {"S": used}
        values[":held"] = {"S": self._lease_id}
        await self._table.update(*self._session, RELEASE, "lease_id = :held", values)

    def answer(self) -> Document:
        return {"role": "assistant", "content": self.text, "stop_reason": "end_of_turn", "tool_calls": []}

    def step_details(self) -> Document:
        step = {"turn_id": self.ids["turn_id"], **self.step, "model_response": self.answer()}
        return step | self._measured()

    def _measured(self) -> Document:
        """Return the time and the tokens of the model call. It has no price."""
        used = {name: self.usage[name] for name in ("input_tokens", "output_tokens")}
        return {"first_token_ms": self.first_token_ms, "usage": used}

    def document(self) -> Document:
        used = dict.fromkeys(NOT_USED, 0) | {"sandbox_milliseconds": 0, "model_dollars": None, "dollars": None}
        return {
            "turn_id": self.ids["turn_id"],
            "session_id": self.ids["session_id"],
            "input_messages": [{**each, "context": None} for each in self.input],
            "steps": [self.step_details()],
            "output_message": self.answer(),
            "output_attachments": [],
            "started_at": self.started_at,
            "completed_at": self.completed_at,
            "status": "completed",
            "usage": {**self.usage, "cached_tokens": 0, "reasoning_tokens": 0},
            "error": None,
            "receipt": {**used, **self.consumption},
        }

    def _consumption(self) -> Document:
        reads, writes = self._table.units["reads"], self._table.units["writes"] + ENDING_UNITS
        duration, memory = self.elapsed(), int(os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"])
        dollars = writes * WRITE_PRICE + reads * READ_PRICE + duration * memory * GIGABYTE_SECOND_PRICE / 1_024_000
        return {
            "model_calls": 1,
            "input_tokens": self.usage["input_tokens"],
            "output_tokens": self.usage["output_tokens"],
            "write_units": int(writes),
            "read_units": int(reads),
            "milliseconds": int(duration),
            "memory_mb": memory,
            "infrastructure_dollars": round(dollars, 9),
        }


class Function:
    """The function. Its `sessions` have the messages and the last turn of each session."""

    def __init__(self, address: str) -> None:
        self._address, self._table, self._model = address, Table(), Model(os.environ["OPENAI_BASE_URL"])
        self.sessions: dict[str, tuple[list[Document], str]] = {}

    async def run(self) -> None:
        """Serve events, one at a time."""
        request = f"GET {RUNTIME}/next HTTP/1.1\r\nHost: {self._address}\r\nConnection: close\r\n\r\n".encode()
        while True:
            reader, writer = await connect(self._address)
            writer.write(request)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:-2]
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            event = json.loads(await reader.readexactly(int(headers["content-length"])))
            writer.close()
            trace_id = headers["lambda-runtime-trace-id"].partition(";")[0].removeprefix("Root=")
            await self._serve(event, headers["lambda-runtime-aws-request-id"], trace_id)

    async def _serve(self, event: Document, request_id: str, trace_id: str) -> None:
        root: str = event["headers"]["X-Amzn-Trace-Id"]
        response = Response(self._address, request_id, root.removeprefix("Root=1-").replace("-", ""))
        messages, last = self.sessions.get(event["pathParameters"]["session_id"], ([], ""))
        turn = Turn(self._table, event, last)
        await turn.lease()
        messages = [*messages, *({"role": "user", "content": each["content"]} for each in turn.input)]
        turn.asked_at = time.monotonic()
        _, reader = await asyncio.gather(turn.put_header(), self._model.open(messages))
        await response.open()
        turn.first_event = turn.elapsed()
        await response.send("turn_start", {"turn_id": turn.ids["turn_id"]})
        async with asyncio.timeout(MODEL_SECONDS):
            await turn.stream(reader, response)
        await turn.put_record()
        step = {name: turn.step[name] for name in ("step_type", "step_id")}
        await response.send("step_complete", {**step, "step_details": turn.step_details()})
        await turn.release()
        await response.send("turn_complete", {"turn": turn.document()})
        await response.close()
        self.sessions[turn.ids["session_id"]] = (
            [*messages, {"role": "assistant", "content": turn.text}],
            turn.ids["turn_id"],
        )
        write_lines(turn, {"request_id": request_id, "cold_start": last == "", "xray_trace_id": trace_id})


def write_lines(turn: Turn, request: Document) -> None:
    """Write the line of the request, and that of its metrics."""
    milliseconds = time.time_ns() // 1_000_000
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(milliseconds // 1000))
    keys = {**request, "tenant": "default", "subject": "anonymous", **turn.ids}
    line = {
        "level": "INFO",
        "location": "write_lines:1",
        "message": "Request",
        "timestamp": f"{at},{milliseconds % 1000:03}+0000",
        "service": "stint",
        "method": "POST",
        "route": ROUTE,
        "status": 200,
        "duration_ms": turn.elapsed(),
    }
    print(dump({**line, **keys}), flush=True)
    values = {
        "TimeToFirstEvent": turn.first_event,
        "Turns": 1.0,
        "TurnErrors": 0.0,
        "InputTokens": float(turn.usage["input_tokens"]),
        "OutputTokens": float(turn.usage["output_tokens"]),
        "Errors": 0.0,
        "Dollars": turn.consumption["infrastructure_dollars"],
    }
    names = [{"Name": name, "Unit": "Milliseconds" if name.startswith("Time") else "Count"} for name in values]
    metrics = {"Namespace": "Stint/stint", "Dimensions": [["service"]], "Metrics": names}
    head = {"_aws": {"Timestamp": milliseconds, "CloudWatchMetrics": [metrics]}, "service": "turns"}
    print(dump({**head, **keys, **{name: [value] for name, value in values.items()}}), flush=True)


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.partition(":")
    return await asyncio.open_connection(host, int(port))


def dump(document: Document) -> str:
    return json.dumps(document, separators=(",", ":"))


def key(pk: str, sk: str) -> Document:
    return {"pk": {"S": pk}, "sk": {"S": sk}}


def new_id() -> str:
    """Make a UUID of version 7."""
    random = int.from_bytes(os.urandom(8)) >> 2
    return str(uuid.UUID(int=time.time_ns() // 1_000_000 << 80 | 0x7 << 76 | 0b10 << 62 | random))


def now() -> str:
    """Return the time as in records, with microseconds."""
    seconds, rest = divmod(time.time_ns() // 1000, 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:06}Z"


if __name__ == "__main__":
    asyncio.run(Function(os.environ["AWS_LAMBDA_RUNTIME_API"]).run())
