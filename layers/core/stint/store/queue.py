"""The queue of work that the worker takes up: SQS keeps a message until it is done, and counts its deliveries."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from stint.domain.schema import Schema
from stint.store.failures import translated

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class Queue:
    """One SQS queue by its URL; the client is made at first use."""

    def __init__(self, connect: "Callable[[], SQSClient]", url: str) -> None:
        self._connect = connect
        self._url = url

    def send(self, task: Schema) -> None:
        """Send a task as its JSON; it may arrive more than once. Raises StoreUnavailable when SQS does not take it."""
        with translated("queue"):
            self._client.send_message(QueueUrl=self._url, MessageBody=task.model_dump_json())

    def deliver_again_in(self, receipt_handle: str, seconds: int) -> None:
        """Let a received message become visible again after some seconds, if nobody deletes it before.

        Raise StoreUnavailable when SQS does not answer: the message then returns after the queue's own timeout.
        """
        with translated("queue"):
            self._client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt_handle, VisibilityTimeout=seconds
            )

    @cached_property
    def _client(self) -> "SQSClient":
        return self._connect()
