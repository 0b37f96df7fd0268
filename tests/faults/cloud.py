"""The product in forked processes: engine, proxy, tool server, queue, and all that is stored."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from infra.local.engine import Engine
from infra.local.queue_event import failed_messages, queue_event
from tests.faults.api import Api
from tests.faults.fault_proxy import FaultProxy, kill_process, stop_process
from tests.faults.forked_processes import ForkedProcess, ForkServerClient
from tests.faults.model_requests import FILE, ModelRequests
from tests.faults.tool_server import RecordingToolServer

LEASE = 30.0
"""The lease time of all runs, in seconds. Tests move the clock instead of waiting for it."""
SETTINGS = {
    "STINT_DEFAULT_MODEL": "scripted/demo",
    "STINT_SCRIPTED_MODELS": "true",
    "STINT_SCRIPTED_WORD_SECONDS": "0",
    "STINT_EMBEDDING_MODEL": "hashed/words-384",
    "STINT_VECTOR_INDEX": "packed",
    "STINT_ALLOWED_HOSTS": "127.0.0.0/8",
    "STINT_HEARTBEAT_SECONDS": "0.2",
    "STINT_EVENT_BUS": "default",
}
SIGNING_KEY = "#signing_key"
MOST_ROUNDS = 50
"""Maximum receptions of messages until the queue is empty."""
Message = dict[str, Any]
Item = dict[str, dict[str, Any]]


class FaultyCloud:
    """Context manager of all parts but the engine. One test uses it at a time."""

    def __init__(self, engine: Engine, lease: float = LEASE) -> None:
        self.engine, self.lease = engine, lease
        self.stop_seconds = 60.0
        """Time that a server has to complete what it runs, before it is killed."""
        self.proxy = FaultProxy(engine.endpoint)
        self.tools = RecordingToolServer()
        self.processes = ForkServerClient()
        self.model_requests = ModelRequests(Path(tempfile.mkdtemp(prefix="stint-models-")) / "requests.jsonl")
        self.undelivered: list[Message] = []
        """Messages whose worker died or failed. They are delivered again when a test asks for it."""
        self.delayed: list[Message] = []
        """Messages that start a response if nothing else has. They wait until the clock is moved."""
        self.counted: dict[str, list[str]] = {}
        """The calls of each scenario without a fault."""
        self._stack = ExitStack()
        self._apis: dict[float, Api] = {}
        self.credentials_key = engine.running.hold_credentials_key()
        self._dynamodb, self._s3, self._sqs = (engine.running.client(name) for name in ("dynamodb", "s3", "sqs"))
        self._tables = engine.outputs["TableName"], engine.outputs["KeysTableName"]
        self._bucket = engine.outputs["BucketName"]
        self._queue = engine.outputs["WorkQueueUrl"]

    def __enter__(self) -> Self:
        for part in (self.proxy, self.tools, self.processes):
            self._stack.enter_context(part)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        for client in (self._dynamodb, self._s3, self._sqs):
            client.close()

    @contextmanager
    def serve(self) -> Iterator[Api]:
        """Run a server whose calls the proxy observes. At the end, it completes what it runs, unless it was killed."""
        with self._fork("serve", 0.0) as process, Api(process.url) as api:
            yield api

    def api(self, ahead: float = 0.0) -> Api:
        """Return the API of a server that lives as long as this object, whose clock is `ahead` in seconds."""
        if ahead not in self._apis:
            process = self._stack.enter_context(self._fork("serve", ahead, observed=False))
            self._apis[ahead] = self._stack.enter_context(Api(process.url))
        return self._apis[ahead]

    @contextmanager
    def warm(self) -> Iterator[Api]:
        """Serve requests once for all processes that are started later, and then the messages that they sent."""
        port = self.proxy.open_port(lambda: None, observed=False)
        environment = self._environment(port.url)
        with self.processes.warm(environment) as process, Api(process.url) as api:
            yield api
        for message in self._receive():
            self.processes.work_here(environment, self._event(message))
        self.proxy.close_port(port)

    def work_off(self, ahead: float = 0.0, *, redeliver: bool = False, observed: bool = False) -> None:
        """Process the messages of the queue until it is empty, each in a worker of its own.

        Those that start a response if nothing else has are processed once the clock is moved: a worker would wait for
        the lease of one that died.
        With `redeliver`, also those whose worker died or failed, whose visibility timeout is then over. The proxy
        injects faults into the calls of an `observed` worker.
        """
        for _ in range(MOST_ROUNDS):
            if redeliver:
                self._make_visible()
            messages = self._receive()
            if ahead:
                messages, self.delayed = messages + self.delayed, []
            if not messages:
                return
            for message in messages:
                if starts_late(message) and not ahead:
                    self.delayed.append(message)
                else:
                    self._work(message, ahead, observed)
        raise RuntimeError("The queue is not empty: its messages are sent again, or fail, without end.")

    def records(self) -> dict[tuple[str, str], Item]:
        """Return everything in the tables by partition and sort key, in DynamoDB's form."""
        return {key: item for table in self._tables for key, item in self._read(table).items()}

    def _read(self, table: str) -> dict[tuple[str, str], Item]:
        pages = self._dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        return {(item["pk"]["S"], item["sk"]["S"]): item for page in pages for item in page["Items"]}

    def blobs(self) -> list[str]:
        """List the keys of all objects in the bucket."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def purge(self) -> None:
        """Remove everything that is stored and queued, except for the key that processes keep in memory."""
        for table in self._tables:
            for pk, sk in self._read(table):
                if not pk.endswith(SIGNING_KEY):
                    self._dynamodb.delete_item(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": sk}})
        for key in self.blobs():
            self._s3.delete_object(Bucket=self._bucket, Key=key)
        while messages := [*self._receive(), *self.undelivered, *self.delayed]:
            self.undelivered, self.delayed = [], []
            for message in messages:
                self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])
        self.tools.effects.clear()
        self.model_requests.forget()

    @contextmanager
    def _fork(self, run: str, ahead: float, event: Any = None, *, observed: bool = True) -> Iterator[ForkedProcess]:
        pids: list[int] = []
        port = self.proxy.open_port(lambda: kill_process(*pids), observed=observed)
        environment = self._environment(port.url)
        process = self.processes.fork(run, environment, ahead, event)
        pids.append(process.pid)
        try:
            yield process
        finally:
            if not process.ended:
                stop_process(process.pid)
                self.processes.wait(process, self.stop_seconds)
            self.proxy.close_port(port)

    def _environment(self, proxy: str) -> dict[str, str]:
        own = {name: proxy for name in self.engine.environment() if name.startswith("AWS_ENDPOINT_URL_")}
        ours = {
            "STINT_LEASE_SECONDS": str(self.lease),
            "STINT_REGISTRY": self.tools.registry(),
            "STINT_CREDENTIALS_KEY_ARN": self.credentials_key,
            FILE: str(self.model_requests.path),
        }
        return {**self.engine.running.variables(), **own, **SETTINGS, **ours}

    def _work(self, message: Message, ahead: float, observed: bool) -> None:
        with self._fork("work", ahead, self._event(message), observed=observed) as process:
            answer = self.processes.wait(process)
        if answer is None or failed_messages(json.dumps(answer).encode(), [message]):
            self.undelivered.append(message)
        else:
            self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])

    def _event(self, message: Message) -> Message:
        event: Message = json.loads(queue_event([message], self.engine.outputs["WorkQueueArn"]))
        return event

    def _make_visible(self) -> None:
        for message in self.undelivered:
            self._sqs.change_message_visibility(
                QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
            )
        self.undelivered = []

    def _receive(self) -> list[Message]:
        received: list[Message] = self._sqs.receive_message(
            QueueUrl=self._queue, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"]
        ).get("Messages", [])
        return received


def starts_late(message: Message) -> bool:
    """Return whether a message is delayed, and starts a response only if nothing else has."""
    return bool(json.loads(message["Body"]).get("unstarted_only"))
