"""Queues of the engine, polled as Lambda polls the queues of event source mappings.

A message is invisible while it is processed, and visible again if nobody deletes it in time. So a function that dies
needs no handling here: its messages come back. The visibility timeout of the template would be a long wait for a
developer. A shorter one is renewed during the processing, so that a message does not come back while a function still
has it.

When the cloud stops, messages that are in process or were just received are made visible at once, so that the next
start need not wait for them. The receiving runs in a thread that cannot be cancelled, so a stop awaits its end
(`shield`).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from infra.local.engine import RunningEngine
from infra.local.errors import LocalCloudError
from infra.local.intrinsics import ACCOUNT
from infra.local.queue_event import Message

Log = Callable[[str, str], None]
# Processes messages and returns those that failed.
Deliver = Callable[[list[Message]], Awaitable[list[Message]]]

# Long polling. The engine does not notice if its caller disconnects, so a stop waits for the end of the last poll.
WAIT_SECONDS = 1
_RETRY_SECONDS = 1.0


class Queues:
    """The queues of an engine; `log` gets (subject, line)."""

    def __init__(self, engine: RunningEngine, log: Log) -> None:
        self._engine = engine
        self._log = log

    def open(self, arn: str, visibility: int | None = None) -> "Queue":
        """Return the queue with this ARN. Raises LocalCloudError if there is none."""
        return Queue(self._client, arn, visibility)

    def make(self, name: str) -> "Queue":
        """Return the queue with this name. It is created if it does not exist."""
        self._client.create_queue(QueueName=name)
        return self.open(f"arn:aws:sqs:{self._engine.region}:{ACCOUNT}:{name}")

    async def send_failure(self, arn: str, record: str) -> None:
        """Send the record of an event whose last attempt failed. Errors are logged."""
        try:
            await asyncio.to_thread(lambda: self.open(arn).send(record))
        except (BotoCoreError, ClientError, LocalCloudError) as error:
            self._log("api", f"The record of a failed event cannot be stored: {error}")

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()

    @cached_property
    def _client(self) -> Any:
        return self._engine.client("sqs")


class Queue:
    """A queue with its ARN; `visibility`, in seconds, replaces its own visibility timeout.

    The queue's own timeout is longer than a function can run. A shorter one is extended while a message is processed,
    so that it counts from the moment at which the processing ends.

    Raises LocalCloudError if the engine has no such queue.
    """

    def __init__(self, client: Any, arn: str, visibility: int | None = None) -> None:
        self.arn = arn
        self._client = client
        self.visibility = visibility
        try:
            self._url = client.get_queue_url(QueueName=arn.split(":")[-1])["QueueUrl"]
        except client.exceptions.QueueDoesNotExist as error:
            raise LocalCloudError(f"there is no queue {arn}: infra/aws/data.yaml must create it") from error

    def send(self, body: str) -> None:
        """Send a message."""
        self._client.send_message(QueueUrl=self._url, MessageBody=body)

    def receive(self, most: int) -> list[Message]:
        """Receive at most `most` messages. Waits for one second at most."""
        answer = self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=min(most, 10),
            WaitTimeSeconds=WAIT_SECONDS,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
            **({} if self.visibility is None else {"VisibilityTimeout": self.visibility}),
        )
        return list(answer.get("Messages", []))

    def delete(self, messages: list[Message]) -> None:
        """Delete messages. One that cannot be deleted, or was received again since, will be delivered again."""
        for message in messages:
            with contextlib.suppress(BotoCoreError, ClientError):
                self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])

    def make_visible(self, messages: list[Message]) -> None:
        """Make messages visible at once, unless they were deleted."""
        self._change_visibility(messages, 0)

    def extend_visibility(self, messages: list[Message]) -> None:
        """Restart a shortened visibility timeout."""
        self._change_visibility(messages, self.visibility or 0)

    def _change_visibility(self, messages: list[Message], seconds: int) -> None:
        for message in messages:
            with contextlib.suppress(BotoCoreError, ClientError):
                self._client.change_message_visibility(
                    QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
                )


class Poller:
    """Poller that receives up to `batch` messages at a time and delivers at most `concurrency` batches in parallel.

    Delivered messages are deleted. Failed messages stay in the queue and become visible again.
    """

    def __init__(self, queue: Queue, deliver: Deliver, *, batch: int, concurrency: int) -> None:
        self._queue = queue
        self._deliver = deliver
        self._batch = batch
        self._slots = asyncio.Semaphore(concurrency)
        self._deliveries: set[asyncio.Task[None]] = set()
        self._receiving: asyncio.Task[list[Message]] | None = None
        self._polling = asyncio.create_task(self._poll())

    async def stop(self) -> None:
        """Stop polling, and return messages that are in process or still arrive to the queue."""
        tasks = {self._polling, *self._deliveries}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        if self._receiving:
            await asyncio.to_thread(self._queue.make_visible, await self._receiving)

    async def _poll(self) -> None:
        while True:
            await self._slots.acquire()
            self._receiving = asyncio.create_task(self._receive())
            # A cancelled receive would lose messages: the engine has made them invisible, and `stop` makes them visible
            # again.
            messages = await asyncio.shield(self._receiving)
            self._receiving = None
            if not messages:
                self._slots.release()
                continue
            delivery = asyncio.create_task(self._work(messages))
            self._deliveries.add(delivery)
            delivery.add_done_callback(self._deliveries.discard)

    async def _receive(self) -> list[Message]:
        try:
            return await asyncio.to_thread(self._queue.receive, self._batch)
        except (BotoCoreError, ClientError):
            # The engine has died, which `make run` detects, or is too busy to respond.
            await asyncio.sleep(_RETRY_SECONDS)
            return []

    async def _work(self, messages: list[Message]) -> None:
        try:
            async with self._extending_visibility(messages):
                failed = await self._deliver(messages)
            await asyncio.to_thread(self._queue.delete, [message for message in messages if message not in failed])
        except asyncio.CancelledError:
            await asyncio.to_thread(self._queue.make_visible, messages)
            raise
        finally:
            self._slots.release()

    @contextlib.asynccontextmanager
    async def _extending_visibility(self, messages: list[Message]) -> AsyncIterator[None]:
        """Keep messages invisible while they are processed."""
        extension = asyncio.create_task(self._keep_invisible(messages))
        try:
            yield
        finally:
            extension.cancel()
            await asyncio.wait({extension})

    async def _keep_invisible(self, messages: list[Message]) -> None:
        while self._queue.visibility is not None:
            await asyncio.sleep(self._queue.visibility / 3)
            await asyncio.to_thread(self._queue.extend_visibility, messages)
