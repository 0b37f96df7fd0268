"""Reading of a running step's parts for one reader that rejoined a stream."""

from stint.domain.partial_steps import PartialStep
from stint.store.keys import PartialPlace
from stint.store.partial_steps import PartialStepStore


class PartialReader:
    """Reads the unfinished step of a run, each part once."""

    def __init__(self, store: PartialStepStore, place: PartialPlace) -> None:
        self.store = store
        self.place = place
        self.partial: PartialStep | None = None
        self.since = ""

    async def read(self, last_step: str | None) -> PartialStep | None:
        """Return the step after the last stored one as far as it is known; None if no part of it is stored."""
        earliest = self.place.after_step(last_step)
        if self.since < earliest:
            self.since, self.partial = earliest, None
        for sk, part in await self.store.read(self.place, self.since):
            if self.partial is None or self.partial.step_id != part.step_id:
                self.partial = part
            else:
                self.partial = self.partial.extended(part)
            self.since = f"{sk}~"
        return self.partial
