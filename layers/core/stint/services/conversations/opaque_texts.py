"""The opaque texts of a tenant: encoding, and checks of incoming ones."""

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime

from stint.dataclasses import dataclass, field
from stint.domain.errors import InvalidRequest
from stint.domain.inference import Reasoning
from stint.domain.openai.input_items import InputItem
from stint.domain.openai.items import CompactionItem, Item, ItemReference, ReasoningItem
from stint.domain.openai.opaque import (
    CompactedContext,
    OpaqueReader,
    SigningKey,
    check_opaque,
    encode_opaque,
    is_unsigned,
)
from stint.domain.openai.stored_responses import ResponseRecord
from stint.domain.schema import Schema
from stint.store.signing_keys import SigningKeys

AnyItem = Item | InputItem | ItemReference
UNSIGNED = (
    "It is unsigned, because an older version of this server created it. Unsigned content is not accepted. "
    "Remove the item, or ask the operator to set STINT_UNSIGNED_CONTENT_UNTIL."
)


@dataclass(slots=True)
class OpaqueTexts:
    """Signs with the tenant's key, which each process reads once, when it is first needed.

    `unsigned_until` is the last day (UTC) on which texts without a signature are accepted; None accepts none.
    """

    tenant: str
    store: SigningKeys
    unsigned_until: date | None = None
    key: SigningKey | None = field(default=None, repr=False)

    async def load(self) -> SigningKey:
        """Return the key. The first call reads the store."""
        if self.key is None:
            self.key = SigningKey(self.tenant, await self.store.get(self.tenant))
        return self.key

    async def warm(self) -> None:
        """Load the key, which `encode` needs."""
        await self.load()

    async def warm_if(self, wanted: bool) -> None:
        if wanted:
            await self.warm()

    async def warm_for(self, records: Iterable[ResponseRecord]) -> None:
        """Load the key if the log has reasoning or a compaction to sign."""
        if any(record.compaction or (record.details and record.details.reasoning) for record in records):
            await self.warm()

    def encode(self, document: Schema) -> str:
        """Encode a document as signed text. The key must have been loaded."""
        if self.key is None:
            raise RuntimeError("The signing key was not loaded before a text was encoded.")
        return encode_opaque(document, self.key)

    async def check(self, items: Sequence[AnyItem], field: str = "input") -> None:
        """Check the opaque texts in a caller's items. A request without any causes no read.

        Raises:
            InvalidRequest: one of them is not from this server. The message names its location, such as
                `input[0].encrypted_content`.
        """
        # Most requests have none, and need no key.
        texts = {place: item for place, item in enumerate(items) if text_of(item) is not None}
        if not texts:
            return
        key, reader = await self.load(), OpaqueReader()
        for place, item in texts.items():
            try:
                self.check_one(item, key, reader)
            except ValueError as error:
                where = f"{field}[{place}].encrypted_content"
                raise InvalidRequest(f"{where}: {error}", param=where) from None

    def check_one(self, item: AnyItem, key: SigningKey, reader: OpaqueReader) -> None:
        text, kind = text_of(item) or "", CompactedContext if isinstance(item, CompactionItem) else Reasoning
        # An unsigned text could be anything that a caller wrote, and would be sent to the model as its own reasoning.
        if not is_unsigned(text):
            check_opaque(text, kind, key)
        elif self.unsigned_until is None or datetime.fromtimestamp(time.time(), UTC).date() > self.unsigned_until:
            raise ValueError(UNSIGNED)
        else:
            reader.read(text, kind)


def text_of(item: AnyItem) -> str | None:
    """Return the opaque text of an item; None if it has none."""
    return item.encrypted_content if isinstance(item, ReasoningItem | CompactionItem) else None
