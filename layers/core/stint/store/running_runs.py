"""The list of running runs: a record for each that has lasted a while, in eight partitions of its tenant.

    the run              its record
    is shorter           none: it writes nothing
    goes on              is renewed before it expires
    has ended            is deleted by its process
    lost its process     expires, and so is no longer listed

DynamoDB removes expired records some time later, which readers never rely on. `holder` is of one process and run, so
that a process which has lost a turn does not delete the record of the one that resumes it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from stint.domain.errors import InvalidRequest
from stint.domain.ids import hex_of, is_id, is_name
from stint.domain.paging import Page
from stint.store import keys
from stint.store.items import Item
from stint.store.parallel import map_concurrently
from stint.store.records import is_live
from stint.store.table import SMALL_PAGE, Table, take

if TYPE_CHECKING:  # loaded by the first list
    from stint.domain.running_runs import RunningRun

RunFields = Mapping[str, str | int | bool | None]
"""The fields of a RunningRun. They are no such object: building its validator would delay the events of the run."""

HELD = "holder = :holder"


class RunningRunStore:
    """The running runs of all tenants. A write costs one unit, a list one unit per 4 KB of each of eight partitions."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def put(self, tenant: str, run_id: str, until: int, fields: RunFields, holder: str) -> None:
        """List a run until a time, in seconds since 1970, or renew its record. `fields` are the other ones."""
        key = keys.running.entry(tenant, digits_of(run_id))
        document = json.dumps({name: value for name, value in fields.items() if value is not None})
        await self._table.put(key._asdict() | {"doc": document, "holder": holder, "expires_at": until})

    async def delete(self, tenant: str, run_id: str, holder: str) -> None:
        """Delete the record of a run, unless another process has replaced it."""
        key = keys.running.entry(tenant, digits_of(run_id))
        await self._table.delete(key, condition=HELD, values={":holder": holder})

    async def list_page(
        self, tenant: str, after: str | None, limit: int, accepts: "Callable[[RunningRun], bool]"
    ) -> "Page[RunningRun]":
        """Return up to `limit` runs that `accepts` allows: by the creation of their ids, the newest first.

        They were created before the run `after`, which may have ended. Raises InvalidRequest if that is no run's id.
        """
        if after is not None and not is_run_id(after):
            raise InvalidRequest(f"{after!r} is not the id of a turn or a response.", param="after")
        before = None if after is None else digits_of(after)

        async def read(pk: str) -> "Sequence[tuple[str, RunningRun]]":
            items = self._table.query(pk, after=before, newest_first=True, page=max(limit + 1, SMALL_PAGE))
            runs = ((str(item["sk"]), to_run(item)) async for item in items if is_live(item))
            return await take((each async for each in runs if accepts(each[1])), limit + 1)

        shards = await map_concurrently(read, keys.running(tenant))
        found = [run for _, run in islice(merge(*shards, key=lambda each: each[0], reverse=True), limit + 1)]
        return Page(found[:limit], len(found) > limit)


def is_run_id(value: str) -> bool:
    """Return whether a text is the id of a turn or a response."""
    return is_id(value) or is_name("resp", value)


def digits_of(run_id: str) -> str:
    """Return the digits of the id of a turn or a response. They sort by its creation."""
    return hex_of(run_id).removeprefix("resp_")


def to_run(item: Item) -> "RunningRun":
    from stint.domain.running_runs import RunningRun  # noqa: PLC0415 - see RunFields

    return RunningRun(**json.loads(item["doc"]), until=int(item["expires_at"]))
