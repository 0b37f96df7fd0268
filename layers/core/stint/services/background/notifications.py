"""Completion events on the event bus."""

import logging
from typing import Protocol

from stint.dataclasses import dataclass
from stint.domain.errors import StintError, StoreUnavailable
from stint.domain.notifications.completion_events import SOURCE, CompletionEvent
from stint.domain.schema import Schema

logger = logging.getLogger(__name__)


class EventBus(Protocol):
    """A bus that others subscribe to."""

    async def put(self, source: str, detail_type: str, detail: Schema) -> None:
        """Put one event on the bus.

        Raises:
            StoreUnavailable: the bus does not accept it now.
            StintError: the bus will never accept it.
        """
        ...


@dataclass(frozen=True, slots=True)
class CompletionEvents:
    """Publishes completion events, each at least once."""

    bus: EventBus

    async def publish(self, event: CompletionEvent) -> None:
        """Publish an event. One that the bus will never accept is only logged.

        Raises:
            StoreUnavailable: the bus does not accept it now.
        """
        try:
            await self.bus.put(SOURCE, event.detail_type, event)
        except StoreUnavailable:
            raise
        except StintError as error:
            logger.error("The event bus refused a completion event", extra={"error": error.message})
