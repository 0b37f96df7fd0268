"""Documents of turns in the table: without empty fields, and without the ids that are in the record's key.

Turns are what is written most, and an item of up to 1 KB costs one unit. The JSON of a small step is largely ids that
its key has, and fields that are empty in almost every step, so leaving these out saves a unit for many records. Each
document is read back before it is written: if the short form would not be equal, the whole one is stored. So this
module may be wrong about what can be left out without losing anything.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from pydantic_core import from_json

from stint.domain.llama_stack.stored_turns import PendingCalls, StoredTurn, TurnHeader, TurnRecord
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.receipts import Consumption
from stint.domain.schema import Schema
from stint.domain.steps import CompletionMessage, InferenceStep
from stint.store import keys
from stint.store.documents import MANY_ITEMS, MAX_ITEM, Documents, context_size, pack_counted, put_checked
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.log import LogItems
from stint.store.table import Table

Excluded = dict[str, Any]
TurnDocument = TurnHeader | TurnRecord | PendingCalls


class TurnDocuments:
    """Writes and reads the documents of turns.

    A small document has only what its record's key does not tell. Large ones are whole, because they gain nothing.
    Whole documents of any size can be read. The `size` of a record is that of its whole document in any case; the sizes
    of turns are without large generated images, which no model gets.
    """

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents

    async def put_header(self, item: Item, header: TurnHeader, prefix: str) -> int:
        """Write a header if there is none, and return its size. Raises ConditionFailed as `put_record`."""
        return await self._put(await self.pack(item, header, prefix), self._table.put_new)

    async def put_record(
        self, item: Item, record: TurnRecord, prefix: str, consumption: Consumption | None = None
    ) -> int:
        """Write a record of a log if there is none, and return the size of its document.

        The record's own units are added to the `consumption` in it. Raises ConditionFailed with the existing record,
        and deletes the blob.
        """
        packed = await pack_counted(lambda: self.pack(item, record, prefix), consumption)
        return await self._put(packed, partial(put_checked, self._table))

    async def _put(self, packed: Item, put: Callable[[Item], Awaitable[None]]) -> int:
        try:
            await put(packed)
        except ConditionFailed:
            await self._documents.delete_blob(packed)
            raise
        return context_size(packed)

    async def pack(self, item: Item, document: TurnDocument, prefix: str) -> Item:
        """Return the item with its document."""
        whole = document.to_json(exclude_none=True)
        # A large document is compressed or in S3: what the short form leaves out is a small part of it.
        fits = len(whole) <= MAX_ITEM and document.without_images() is None
        short = shorten(item, document) if fits else None
        if short is None:
            return await self._documents.pack(item, document, prefix)
        return await self._documents.pack_json(item, whole, prefix, short=short)

    async def read(self, found: Sequence[LogItems], *, brief: bool = False) -> list[StoredTurn]:
        """Read whole turns; with `brief`, without large generated images."""
        items = [item for log in found for item in log.items]
        documents = iter(zip(items, await self._documents.read(items, brief=brief), strict=True))
        return [
            StoredTurn(
                header=with_shared_names(TurnHeader.model_validate(restored(*next(documents)))),
                records=[TurnRecord.model_validate(restored(*next(documents))) for _ in log.records],
                size=log.context_size,
                skipped=log.skipped,
            )
            for log in found
        ]

    async def read_records(self, items: Sequence[Item]) -> list[TurnRecord]:
        """Read records of one turn's log."""
        documents = zip(items, await self._documents.read(items), strict=True)
        return [TurnRecord.model_validate(restored(item, raw)) for item, raw in documents]

    async def read_pending(self, item: Item) -> PendingCalls:
        """Read the calls that a turn waits for."""
        [raw] = await self._documents.read([item])
        return PendingCalls.model_validate(restored(item, raw))


def with_shared_names(header: TurnHeader) -> TurnHeader:
    """Return a header, the many messages of which share the names of their fields."""
    if len(header.input_messages) > MANY_ITEMS:
        from stint.domain.field_names import FieldNames  # noqa: PLC0415 - few turns have many messages

        names = FieldNames()
        header.input_messages = [names.share(message) for message in header.input_messages]
    return header


def shorten(item: Item, document: TurnDocument) -> bytes | None:
    """Return the JSON of a document for the record with a key; None if it would not read back equal."""
    short = document.model_dump_json(exclude=excluded(document), exclude_none=True).encode()
    try:
        same = type(document).model_validate(restored(item, short)) == document
    except ValueError:  # a null was a required field's value, or the key is that of another turn
        same = False
    return short if same else None


def excluded(document: TurnDocument) -> Excluded:
    """Return the fields that the key has, and those that are empty."""
    match document:
        case TurnHeader():
            found: Excluded = {"turn_id": True, "session_id": True} | empty(document, "documents")
            found["input_messages"] = {"__all__": {"role"}}
            if document.overrides == TurnOverrides():
                found["overrides"] = True
            return found
        case TurnRecord(step=step, ending=ending):
            answer = constants(step.model_response) if isinstance(step, InferenceStep) else {}
            counts = empty(ending.usage, *type(ending.usage).model_fields) if ending and ending.usage else {}
            return {"step": {"turn_id": True, "model_response": answer}, "ending": {"usage": counts}}
        case PendingCalls():
            return {"turn_id": True}


def constants(answer: CompletionMessage) -> Excluded:
    """Return the fields of an answer that are empty, or as in almost every answer."""
    ended = {"stop_reason": True} if answer.stop_reason == "end_of_turn" else {}
    return {"role": True} | ended | empty(answer, "content", "tool_calls")


def empty(document: Schema, *fields: str) -> Excluded:
    """Return which of the fields have the value 0, an empty text or an empty list."""
    return {name: True for name in fields if not getattr(document, name)}


def restored(item: Item, raw: bytes) -> dict[str, Any]:
    """Return the JSON object of a document, with the ids in the key of its record."""
    document: dict[str, Any] = from_json(raw)
    turn_id = keys.turn_of(item["sk"])
    if keys.is_header(item["sk"]):
        document.setdefault("turn_id", turn_id)
        document.setdefault("session_id", keys.session_of(item["pk"]))
        document.setdefault("overrides", {})
    elif isinstance(document.get("step"), dict):
        document["step"].setdefault("turn_id", turn_id)
    return document
