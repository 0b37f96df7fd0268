"""Events for others, put on an EventBridge bus."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypedDict

from stint.domain.errors import StintError, StoreUnavailable
from stint.domain.schema import Schema
from stint.store.failures import translated

TEMPORARY = ("InternalFailure", "ThrottlingException")
"""The codes of entries that may be sent again.

https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html
"""


class Entry(TypedDict):
    Source: str
    DetailType: str
    Detail: str
    EventBusName: str


class EventsClient(Protocol):
    """What is used of botocore's client of EventBridge."""

    def put_events(self, *, Entries: Sequence[Entry]) -> dict[str, Any]: ...  # noqa: N803 - botocore's name


class Bus:
    """One event bus by its name; the client is made at first use."""

    def __init__(self, connect: Callable[[], EventsClient], name: str) -> None:
        self._connect = connect
        self._name = name

    def put(self, source: str, detail_type: str, detail: Schema) -> None:
        """Put one event on the bus; its detail is the JSON of a document.

        Raises StoreUnavailable when EventBridge does not take it now, StintError when it never will.
        """
        entry = Entry(Source=source, DetailType=detail_type, Detail=detail.model_dump_json(), EventBusName=self._name)
        with translated("event bus"):
            answer = self._client.put_events(Entries=[entry])
        # The call succeeds although its entry failed.
        if answer["FailedEntryCount"]:
            [refused] = answer["Entries"]
            code = str(refused.get("ErrorCode"))
            if code in TEMPORARY:
                raise StoreUnavailable(f"The event bus did not take event {detail_type!r} ({code}): try again.")
            raise StintError(f"The event bus refused event {detail_type!r} ({code}): {refused.get('ErrorMessage')}.")

    @cached_property
    def _client(self) -> EventsClient:
        return self._connect()
