"""Reading of whole responses: logs and their documents.

A foreground response has no process that would note its death. Whoever reads one decides whether it still runs: it does
until its lease ends, which is the `until` of its header, or the `lease_until` of its lease record after a renewal. If
the clock of its process was ahead, that end is too late, so `_settle` also counts the lease time by this process's own
clock, as `stint.store.lease` describes. It changes only the response that it returns. Nothing is written: a reader that
then ends the response writes the ending to its log, and is refused if the process is alive and has written before.
"""

from collections.abc import Sequence

from stint.domain.errors import NotFound
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.store import keys
from stint.store.documents import Documents
from stint.store.keys import Key
from stint.store.lease import is_unrenewed
from stint.store.log import LogItems, response_log
from stint.store.parallel import map_concurrently
from stint.store.records import is_live
from stint.store.table import Table

ROUND = 16
"""Responses of a list to read before their sizes are looked at."""

CALLS = 32
"""Maximum concurrent Queries. More do not make it faster, because a call takes processor time."""

LIVE = "deleted_at, expires_at"
"""The attributes that show whether a response exists."""


class ResponseLogs:
    """Reads whole responses without their stored streams, with one Query per MB of each."""

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents

    async def find(self, tenant: str, response_id: str) -> LogItems | None:
        """Find a response; None if it does not exist or is deleted."""
        pk = keys.response_records(tenant, response_id)
        log = response_log([item async for item in self._table.query(pk, before=keys.AFTER_RECORDS)])
        return log if is_live(log.header) else None

    async def read_rest(self, tenant: str, response_id: str, start: int) -> list[ResponseRecord]:
        """Read the records of a log from an index on. Raises NotFound if it was sealed there for its deletion."""
        if start > keys.LAST_INDEX:
            return []
        pk, first = keys.response_record(tenant, response_id, start)
        log = response_log([item async for item in self._table.query(pk, since=first, before=keys.AFTER_INDEXES)])
        # The read begins at `start`, so an ended log without records begins with the seal of a deletion.
        if log.ended and not log.records:
            raise NotFound("Response", response_id)
        return [ResponseRecord.model_validate_json(raw) for raw in await self._documents.read(log.records)]

    async def find_many(self, tenant: str, ids: Sequence[str], max_bytes: int | None = None) -> list[LogItems | None]:
        """Find responses, up to CALLS concurrently; None for those that do not exist.

        Those at the end may be omitted if the ones after the first have more than `max_bytes` of JSON without them.
        """
        total = 0

        async def find(response_id: str) -> list[LogItems | None]:
            nonlocal total
            if max_bytes is not None and total > max(max_bytes, 0):
                return []
            log = await self.find(tenant, response_id)
            # The first response does not count: a chain has it in any case.
            total += log.context_size if log and response_id != ids[0] else 0
            return [log]

        return [log for found in await map_concurrently(find, ids, calls=CALLS) for log in found]

    async def find_live(self, tenant: str, ids: Sequence[str]) -> set[str]:
        """Return those responses that exist and are not deleted, with one call for 100."""
        wanted = {response_id: keys.response(tenant, response_id) for response_id in ids}
        found = await self._table.get_many(list(wanted.values()), attributes=LIVE)
        return {response_id for response_id, key in wanted.items() if is_live(found.get(key))}

    async def read(self, found: Sequence[LogItems], *, brief: bool = False) -> list[StoredResponse]:
        """Read the documents of logs, with those in S3 concurrently; `brief`: without large generated images."""
        documents = iter(await self._documents.read([item for log in found for item in log.items], brief=brief))
        return [
            self._settle(
                StoredResponse(
                    header=ResponseHeader.model_validate_json(next(documents)),
                    records=[ResponseRecord.model_validate_json(next(documents)) for _ in log.records],
                    size=log.context_size,
                    taken_up=bool(log.lease and log.lease.get("attempts")),
                    lease_until=log.lease.get("lease_until") if log.lease else None,
                    skipped=log.skipped,
                ),
                log,
            )
            for log in found
        ]

    def _settle(self, stored: StoredResponse, log: LogItems) -> StoredResponse:
        """Return a response. The lease of one in the foreground lapses if it is not renewed; see `is_unrenewed`."""
        if stored.header.background or stored.ending is not None or log.header is None:
            return stored
        # `until` is in seconds, `lease_until` in milliseconds. Both are by the clock of the response's process.
        first, header = round(stored.header.until * 1000), stored.header
        until, seconds = first, header.until - header.created_at
        if log.lease is not None and (stored.lease_until or 0) > first:
            until, seconds = int(log.lease["lease_until"]), log.lease.get("lease_seconds", seconds)
        if is_unrenewed(self._table, Key(log.header["pk"], log.header["sk"]), until, seconds):
            header.until, stored.lease_until = 0, 0
        return stored

    async def read_header(self, log: LogItems) -> ResponseHeader:
        [raw] = await self._documents.read(log.items[:1])
        return ResponseHeader.model_validate_json(raw)
