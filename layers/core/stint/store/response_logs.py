"""The logs of responses: their items, cut where the log ends, and the documents in them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.store import keys
from stint.store.documents import Documents, json_size
from stint.store.items import Item
from stint.store.parallel import side_by_side
from stint.store.table import Table
from stint.store.tombstones import is_live

ENDS = "sk, ended_as, sealed_at"
"""The attributes that show how far a log goes and whether it ended."""

ROUND = 16
"""Responses that are read side by side: as many as lie between two links of a chain that lead on."""


class Records(NamedTuple):
    """`ended` tells that no record may follow."""

    items: list[Item]
    ended: bool


class ResponseLog(NamedTuple):
    """A response that is there: its header and its records up to the ending."""

    header: Item
    records: list[Item]

    @property
    def items(self) -> list[Item]:
        return [self.header, *self.records]

    @property
    def size(self) -> int:
        """Count the bytes of JSON of header and records."""
        return sum(map(json_size, self.items))


class ResponseLogs:
    """Reads whole responses, without their stored streams: one Query per MB of each."""

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents

    def find(self, tenant: str, response_id: str) -> ResponseLog | None:
        """Find a response; None when there is none, or it is deleted."""
        pk = keys.response_records(tenant, response_id)
        items = {item["sk"]: item for item in self._table.query(pk, before=keys.AFTER_RECORDS)}
        header = items.get(keys.response(tenant, response_id).sk)
        return ResponseLog(header, records_of(items.values()).items) if is_live(header) else None

    def find_many(self, tenant: str, ids: Sequence[str]) -> list[ResponseLog | None]:
        """Find up to ROUND responses side by side."""
        return side_by_side(lambda response_id: self.find(tenant, response_id), ids, threads=ROUND)

    def read(self, found: Sequence[ResponseLog]) -> list[StoredResponse]:
        """Read the documents of logs; those in S3 side by side."""
        documents = iter(self._documents.read([item for log in found for item in log.items]))
        return [
            StoredResponse(
                header=ResponseHeader.model_validate_json(next(documents)),
                records=[ResponseRecord.model_validate_json(next(documents)) for _ in log.records],
                size=log.size,
            )
            for log in found
        ]

    def read_header(self, log: ResponseLog) -> ResponseHeader:
        [raw] = self._documents.read([log.header])
        return ResponseHeader.model_validate_json(raw)


def records_of(items: Iterable[Item]) -> Records:
    """Pick the records from a response's items, whatever their order, up to the ending or a deletion's seal."""
    records: list[Item] = []
    for item in sorted(items, key=lambda item: str(item["sk"])):
        if not keys.is_response_record(item["sk"]):
            continue
        if "sealed_at" in item:
            return Records(records, ended=True)
        records.append(item)
        if "ended_as" in item:
            return Records(records, ended=True)
    return Records(records, ended=False)
