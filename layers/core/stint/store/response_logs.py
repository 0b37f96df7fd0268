"""Reading of whole responses: logs and their documents."""

from collections.abc import Sequence

from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.store import keys
from stint.store.documents import Documents
from stint.store.log import LogItems, response_log
from stint.store.parallel import map_concurrently
from stint.store.table import Table
from stint.store.tombstones import is_live

ROUND = 16
"""Responses to read concurrently, as many as one link of a chain lists."""


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

    async def find_many(self, tenant: str, ids: Sequence[str]) -> list[LogItems | None]:
        """Find up to ROUND responses concurrently."""
        return await map_concurrently(lambda response_id: self.find(tenant, response_id), ids, calls=ROUND)

    async def read(self, found: Sequence[LogItems]) -> list[StoredResponse]:
        """Read the documents of logs, with those in S3 concurrently."""
        documents = iter(await self._documents.read([item for log in found for item in log.items]))
        return [
            StoredResponse(
                header=ResponseHeader.model_validate_json(next(documents)),
                records=[ResponseRecord.model_validate_json(next(documents)) for _ in log.records],
                size=log.size,
            )
            for log in found
        ]

    async def read_header(self, log: LogItems) -> ResponseHeader:
        [raw] = await self._documents.read(log.items[:1])
        return ResponseHeader.model_validate_json(raw)
