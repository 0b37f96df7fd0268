"""Lists of the responses with a status.

Nothing is stored for it: the status of a response that has ended is that of its newest record, and the status of any
other one depends on whether its process lives. So a request looks at EXAMINED responses at most, and then returns what
it has found. `last_id` is then the id of the last one that it has looked at, after which the next request goes on.
"""

from collections.abc import Awaitable, Callable

from stint.domain.openai.response_resource import ListedResponse, ResponseList
from stint.domain.openai.stored_responses import ResponseStatus, StoredResponse
from stint.domain.paging import MAX_BYTES
from stint.store.responses import Order, ResponseStore

ToListed = Callable[[StoredResponse], Awaitable[ListedResponse]]

EXAMINED = 500
"""Maximum responses of one list whose status is looked up."""

ROUND = 100
"""Responses to look up before it is decided whether more are needed."""


class StatusSearch:
    """Finds the responses of a tenant with a status."""

    def __init__(
        self, tenant: str, store: ResponseStore, to_listed: ToListed, *, status: ResponseStatus, limit: int
    ) -> None:
        self._tenant = tenant
        self._store = store
        self._to_listed = to_listed
        self._status = status
        self._limit = limit
        self._found: list[ListedResponse] = []
        self._left = MAX_BYTES

    async def read_page(self, after: str | None, model: str | None, order: Order) -> ResponseList:
        """List responses by creation, starting after `after`. Raises NotFound if it does not exist."""
        more, examined = True, 0
        while more and examined < EXAMINED and len(self._found) < self._limit:
            page = await self._store.find_ids(
                self._tenant, after=after, limit=ROUND, model=model, order=order, status=self._status
            )
            examined += len(page.ids)
            stopped = await self._read(page.candidates)
            if stopped is not None:
                more, after = page.more or stopped != page.ids[-1], stopped
                break
            more, after = page.more, page.ids[-1] if page.ids else after
        listed = ResponseList.of(self._found, more)
        return listed.model_copy(update={"last_id": after}) if more and after else listed

    async def _read(self, ids: list[str]) -> str | None:
        """Add those responses that have the status, and return the one at which the page is full; None if it is not."""
        stored, cut = await self._store.find_many(self._tenant, ids, self._left) if ids else ([], False)
        for each in stored:
            await self._add(each)
            if len(self._found) == self._limit:
                return each.header.response_id
        return stored[-1].header.response_id if cut else None

    async def _add(self, stored: StoredResponse) -> None:
        listed = await self._to_listed(stored)
        self._left -= stored.size
        if listed.status == self._status:
            self._found.append(listed)
