"""Stored responses: read, list, delete.

A response that has not ended may have lost its process. So a reader reconciles what it reads: one whose process died is
stored as failed, or queued again in the background, before it is shown.
"""

from collections.abc import Sequence
from functools import partial

from stint.dataclasses import dataclass, replace
from stint.domain.errors import NotFound
from stint.domain.ids import order_of, place_digits
from stint.domain.openai.items import Item
from stint.domain.openai.response_options import Include
from stint.domain.openai.response_resource import (
    DeletedResponse,
    ItemList,
    ListedResponse,
    Response,
    ResponseList,
    make_response,
)
from stint.domain.openai.response_steps import ResponseStepList
from stint.domain.openai.stored_responses import ResponseStatus, StoredResponse
from stint.domain.paging import MAX_BYTES
from stint.domain.tasks import DeletionTask
from stint.services.conversations.include import include_fields, whole
from stint.services.deletions import Deletions
from stint.services.responses.link_cache import LinkCache
from stint.services.responses.masking import masked
from stint.services.responses.output_items import Encode, output_of
from stint.services.responses.recovery import Recovery
from stint.store.responses import Order
from stint.store.store import Store


@dataclass(frozen=True, slots=True)
class ResponseReader:
    """The stored responses of a tenant."""

    tenant: str
    store: Store
    recovery: Recovery
    deletions: Deletions
    links: LinkCache

    async def get(self, response_id: str, include: Sequence[Include] = ()) -> Response:
        """Return a response. Raises NotFound."""
        return self.to_resource(await self.read(response_id), include)

    def to_resource(self, stored: StoredResponse, include: Sequence[Include] = ()) -> Response:
        """Return a response for the API. `include` adds to the request's own."""
        return to_resource(stored, self.recovery.opaque.encode, include)

    async def read(self, response_id: str) -> StoredResponse:
        """Read a stored response. One whose process died becomes failed. Raises NotFound."""
        stored = await self.store.responses.get(self.tenant, response_id)
        await self.recovery.opaque.warm_for(stored.records)
        return await self.recovery.reconcile(stored)

    async def list(
        self, after: str | None, limit: int, model: str | None, order: Order, status: ResponseStatus | None = None
    ) -> ResponseList:
        """List responses by creation, starting after `after`; those with a status, if it is given.

        Raises:
            NotFound: there is no response `after`.
        """
        if status is not None:
            from stint.services.responses.status_search import StatusSearch  # noqa: PLC0415 - few lists have it

            search = StatusSearch(self.tenant, self.store.responses, self.to_listed, status=status, limit=limit)
            return await search.read_page(after, model, order)
        page = await self.store.responses.list(self.tenant, after=after, limit=limit, model=model, order=order)
        return ResponseList.of([await self.to_listed(stored) for stored in page.data], page.has_more)

    async def to_listed(self, stored: StoredResponse) -> ListedResponse:
        """Return an entry of a list. A response whose process died becomes failed."""
        await self.recovery.opaque.warm_for(stored.records)
        response = self.to_resource(await self.recovery.reconcile(stored))
        said = [*stored.header.input, *stored.merged_items]
        return ListedResponse(**dict(response), input=[include_fields(item, ()) for item in said])

    async def input_items(
        self,
        response_id: str,
        after: str | None,
        before: str | None,
        limit: int,
        order: Order,
        include: Sequence[Include] = (),
    ) -> ItemList:
        """List the input items of a response: those of its context, followed by its own.

        Raises:
            NotFound: there is no such response, or no item `after` or `before`.
        """
        items: list[Item] = []
        *earlier, own = await self.chain(response_id)
        for link in earlier:
            await self.recovery.opaque.warm_for(link.records)
            answered = output_of(link, self.recovery.opaque.encode, whole(link.header.settings))
            items += [*link.header.input, *in_order(link.merged_items, answered.items)]
        items += [*own.header.input, *own.merged_items]
        if order == "desc":
            items.reverse()
        return page_of([include_fields(item, include) for item in items], after, before, limit)

    async def steps(self, response_id: str) -> ResponseStepList:
        """Return the steps of a response so far. Raises NotFound."""
        from stint.services.responses.steps import read_steps  # noqa: PLC0415 - few responses are looked into

        return read_steps(await self.read(response_id), self.recovery.opaque.encode)

    async def chain(self, response_id: str) -> Sequence[StoredResponse]:
        """Read a response and those that it continues, or it alone if one of these was deleted. Raises NotFound."""
        try:
            return (await self.store.responses.chain(self.tenant, response_id)).links
        except NotFound:
            return [await self.store.responses.get(self.tenant, response_id)]

    async def delete(self, response_id: str) -> DeletedResponse:
        """Delete a response, and stop it if it runs. Responses that continue it can no longer be continued.

        Raises:
            NotFound: there is no such response.
        """
        task = DeletionTask(kind="delete_response", tenant=self.tenant, response_id=response_id)
        mark = partial(self.store.responses.mark_deleted, self.tenant, response_id)
        try:
            await self.deletions.start_deletion(task, mark)
        finally:
            self.links.forget(self.tenant, response_id)
        return DeletedResponse(id=response_id)


def to_resource(stored: StoredResponse, encode: Encode, include: Sequence[Include] = ()) -> Response:
    """Return the current state of a response. `include` adds to the request's own."""
    header = masked(stored.header)
    if include:
        settings = header.settings.model_copy(update={"include": [*header.settings.include, *include]})
        stored = replace(stored, header=header.model_copy(update={"settings": settings}))
    return make_response(
        header, output_of(stored, encode).all_items, stored.status, stored.ending, served=stored.service_tier
    )


def in_order(merged: Sequence[Item], output: Sequence[Item]) -> Sequence[Item]:
    """Return the merged items and the output of a response in the order in which the model saw them."""
    return sorted([*merged, *output], key=lambda item: order_of(place_digits(item.id))) if merged else output


def page_of(items: list[Item], after: str | None, before: str | None, limit: int) -> ItemList:
    """Return the items between two others, within the limits of a page."""
    ids = [item.id for item in items]
    start, end = 0, len(items)
    for cursor in (after, before):
        if cursor is not None and cursor not in ids:
            raise NotFound("Item", cursor)
    if after is not None:
        start = ids.index(after) + 1
    if before is not None:
        end = ids.index(before)
    chosen = items[start:end][:limit]
    sizes, total, fit = (len(item.model_dump_json()) for item in chosen), 0, 0
    for size in sizes:
        total += size
        if fit and total > MAX_BYTES:
            break
        fit += 1
    return ItemList.of(chosen[:fit], start + fit < end)
