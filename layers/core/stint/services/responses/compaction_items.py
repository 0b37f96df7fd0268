"""The items of automatic compactions."""

from collections.abc import Callable

from stint.domain.openai.items import CompactionItem
from stint.domain.openai.opaque import CompactedContext
from stint.domain.schema import Schema
from stint.domain.stored_messages import CompactedHistory


def compaction_item(item_id: str, compaction: CompactedHistory, encode: Callable[[Schema], str]) -> CompactionItem:
    """Return the item of a compaction, which has all that the model sees of what was before it."""
    return CompactionItem(id=item_id, encrypted_content=encode(CompactedContext(**dict(compaction))))
