"""Telling others what has ended."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol

from stint.domain.errors import StintError, StoreUnavailable
from stint.domain.notifications.completion_events import SOURCE, Ended
from stint.domain.schema import Schema

logger = logging.getLogger(__name__)


class EventBus(Protocol):
    """A bus that others listen to."""

    def put(self, source: str, detail_type: str, detail: Schema) -> None:
        """Put one event on the bus.

        Raises:
            StoreUnavailable: it does not take it now.
            StintError: it never will.
        """
        ...


@dataclass(frozen=True, slots=True)
class Announcements:
    """Announces ends, each at least once."""

    bus: EventBus

    async def announce(self, ended: Ended) -> None:
        """Put an end on the bus; one that the bus will never take is only logged.

        Raises:
            StoreUnavailable: the bus does not take it now.
        """
        try:
            await asyncio.to_thread(self.bus.put, SOURCE, ended.detail_type, ended)
        except StoreUnavailable:
            raise
        except StintError as error:
            logger.error("The event bus refuses to hear of an end", extra={"error": error.message})
