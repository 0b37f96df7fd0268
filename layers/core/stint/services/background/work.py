"""The work of the worker on a response that is stored."""

from dataclasses import dataclass

from stint.domain.notifications.completion_events import ResponseEnded
from stint.domain.openai.stored_responses import StoredResponse
from stint.services.background.notifications import Announcements
from stint.services.background.worker import BackgroundRuns


@dataclass(frozen=True, slots=True)
class Work:
    """Runs a tenant's responses, and announces how they end."""

    runs: BackgroundRuns
    announcements: Announcements

    async def run(
        self, response_id: str, deadline: float, *, last: bool = False, event_id: str | None = None
    ) -> StoredResponse | None:
        """Run a response to its end, see `BackgroundRuns.work`, and announce that.

        A response that ended before is announced again: whoever ended it may have died before telling it.

        Raises:
            Exception: the attempt failed, or its end could not be announced.
        """
        try:
            stored = await self.runs.work(response_id, deadline, last=last)
        except Exception:
            given_up = await self.runs.read(response_id)
            if given_up is not None and given_up.ending is not None:
                await self.announcements.announce(ResponseEnded.of(given_up, event_id))
            raise
        if stored is not None:
            await self.announcements.announce(ResponseEnded.of(stored, event_id))
        return stored
