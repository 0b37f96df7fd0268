"""Messages to others: tasks for the worker on an SQS queue, and events on an EventBridge bus.

A task says that there may be something to do, never what its state is: that is in the table. So a task may arrive twice
or late, or for an object that is gone. Where a promise depends on a task, it is sent before the write that makes the
promise, and arrives later than that write (`delay_seconds`). A task whose write did not follow has no effect.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from stint.domain.errors import StintError, StoreUnavailable
from stint.domain.schema import Schema
from stint.store.failures import translated

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

TEMPORARY = ("InternalFailure", "ThrottlingException")
"""The codes of entries that may be retried.

https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html
"""


class SqsQueue:
    """One SQS queue by its URL. The client is made when first used, and each call waits in a thread.

    SQS keeps a message until it is deleted, and counts its deliveries.
    """

    def __init__(self, connect: "Callable[[], SQSClient]", url: str) -> None:
        self._connect = connect
        self._url = url

    async def send(self, task: Schema) -> None:
        """Send a task as JSON. It may arrive more than once. Raises StoreUnavailable if SQS does not accept it."""
        # Awaited: no caller may announce what only this task will finish before SQS has it.
        await asyncio.to_thread(self._send, task)

    def _send(self, task: Schema) -> None:
        with translated("queue"):
            # Not in the body: the worker has no use for it, and a redelivery has another delay.
            delay = getattr(task, "delay_seconds", 0)
            self._client.send_message(QueueUrl=self._url, MessageBody=task.model_dump_json(), DelaySeconds=delay)

    async def change_visibility_timeout(self, receipt_handle: str, seconds: int) -> None:
        """Make a received message visible again after some seconds, unless it is deleted before.

        Raises StoreUnavailable if SQS does not answer. The message then returns after the queue's own timeout.
        """
        await asyncio.to_thread(self._change_visibility, receipt_handle, seconds)

    def _change_visibility(self, receipt_handle: str, seconds: int) -> None:
        with translated("queue"):
            self._client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt_handle, VisibilityTimeout=seconds
            )

    @cached_property
    def _client(self) -> "SQSClient":
        return self._connect()


class BusEntry(TypedDict):
    """An event, as EventBridge takes it."""

    Source: str
    DetailType: str
    Detail: str
    EventBusName: str


class EventsClient(Protocol):
    """The part of botocore's EventBridge client that is used here."""

    def put_events(self, *, Entries: Sequence[BusEntry]) -> dict[str, Any]: ...  # noqa: N803 - botocore's name


class EventBridgeBus:
    """One event bus by its name; without a name, events are discarded.

    The client is made when first used, and each call waits in a thread.
    """

    def __init__(self, connect: Callable[[], EventsClient], name: str) -> None:
        self._connect = connect
        self._name = name

    async def put(self, source: str, detail_type: str, detail: Schema) -> None:
        """Put one event on the bus, with a document as its detail.

        Raises StoreUnavailable if EventBridge does not accept it now, StintError if it never will.
        """
        if not self._name:
            return
        entry = BusEntry(
            Source=source, DetailType=detail_type, Detail=detail.model_dump_json(), EventBusName=self._name
        )
        answer = await asyncio.to_thread(self._put, entry)
        # The call succeeds even if its entry failed.
        if answer["FailedEntryCount"]:
            [refused] = answer["Entries"]
            code = str(refused.get("ErrorCode"))
            if code in TEMPORARY:
                raise StoreUnavailable(f"The event bus did not accept event {detail_type!r} ({code}). Try again.")
            raise StintError(f"The event bus refused event {detail_type!r} ({code}): {refused.get('ErrorMessage')}.")

    def _put(self, entry: BusEntry) -> dict[str, Any]:
        with translated("event bus"):
            return self._client.put_events(Entries=[entry])

    @cached_property
    def _client(self) -> EventsClient:
        return self._connect()
