"""The input of a request: items with ids, texts of files, and resolved references.

It is read in two steps. `read` needs only the request, and runs while the context is read. `resolve` needs the context:
a reference to an item that it has is dropped, and any other one is read from the response that the item's id names.
Errors name the location in the input. New ids sort before the response's own, so that input comes before output.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import NoReturn

from stint.documents.document_reader import DocumentReader
from stint.documents.served import Originals
from stint.domain.errors import InvalidRequest
from stint.domain.ids import hex_of, new_ids_before
from stint.domain.limits import MAX_APPROVED_CALLS, MAX_REFERENCED_RESPONSES
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import DIGITS, PREFIXES, Item, ItemReference, is_item_id
from stint.domain.openai.response_requests import ContextRequest
from stint.domain.tools import ToolCall
from stint.services.conversations.conversations import replace_ids
from stint.services.conversations.item_files import check_images, read_files
from stint.services.conversations.opaque_texts import OpaqueTexts

Known = Collection[str]
"""The ids of the items in the context."""
Find = Callable[[Sequence[str]], Awaitable[Mapping[str, StoredItem]]]
"""A function that finds stored items by their ids, without missing ones."""


class InputResolver:
    """The input of one request.

    An item keeps its id if it is this server's and unique. With `renew`, each gets a new one, as in a conversation,
    whose order is that of the ids. New ids sort before the response's.
    """

    def __init__(self, items: Sequence[Item | ItemReference], response_id: str, *, renew: bool = False) -> None:
        self.items = items
        self.originals: Originals | None = None
        self.renew = renew
        self.spare = [hex_of(new) for new in new_ids_before(response_id.partition("_")[2], len(items))]
        self.texts: list[list[str]] = [[] for _ in items]

    async def read(self, reader: DocumentReader, opaque: OpaqueTexts, originals: Originals | None = None) -> None:
        """Check the opaque texts and the images, and read the files, which `originals` gets for code.

        Raises:
            InvalidRequest: one of them is invalid. The message names its location.
        """
        self.originals = originals
        await opaque.check(self.items)
        await check_images(reader, self.items)
        self.texts = await read_files(reader, self.items, originals=self.originals)

    async def resolve(self, known: Known, find: Find) -> dict[int, StoredItem]:
        """Return the items by their locations in the input, with references replaced by their items.

        References to `known` items are dropped, because the model sees these items anyway.

        Raises:
            InvalidRequest: there is no such item, or too many responses would be read. The message names the location.
        """
        wanted = [item.id for item in self.items if isinstance(item, ItemReference) and item.id not in known]
        self.check_owners(known)
        found = await find(wanted) if wanted else {}
        resolved: dict[int, StoredItem] = {}
        taken, new_ids = set(known), dict[str, str]()
        for place, item in enumerate(self.items):
            if isinstance(item, ItemReference):
                if item.id in taken:
                    continue
                stored = found.get(item.id) or refuse_unknown(place, item)
            else:
                stored = StoredItem(item=item, texts=self.texts[place])
            old = stored.item.id
            identifier = self.id_of(stored.item, place, taken)
            taken |= {old, identifier}
            new_ids[old] = identifier
            named = replace_ids(stored.item.model_copy(update={"id": identifier}), new_ids)
            resolved[place] = StoredItem(item=named, texts=stored.texts)
        return resolved

    def check_owners(self, known: Known) -> None:
        """Refuse references to the items of too many responses."""
        owners: set[str] = set()
        for place, item in enumerate(self.items):
            if not isinstance(item, ItemReference) or item.id in known or (owner := owner_of(item.id)) is None:
                continue
            owners.add(owner)
            if len(owners) > MAX_REFERENCED_RESPONSES:
                raise InvalidRequest(
                    f"input[{place}].id: The input refers to items of more than {MAX_REFERENCED_RESPONSES} responses: "
                    "send the items themselves, or previous_response_id.",
                    code="too_many_references",
                    param=f"input[{place}].id",
                )

    def id_of(self, item: Item, place: int, taken: set[str]) -> str:
        if not self.renew and is_item_id(item.type, item.id) and item.id not in taken:
            return item.id
        return f"{PREFIXES[item.type]}_{self.spare[place]}"


def require_input(request: ContextRequest) -> None:
    """Raise InvalidRequest if there is no input to answer."""
    if not request.input and request.previous_response_id is None and request.conversation is None:
        refuse_nothing()


def refuse_nothing() -> NoReturn:
    raise InvalidRequest(
        "There is nothing to answer: send input, or a previous_response_id or a conversation that has items.",
        code="missing_required_parameter",
        param="input",
    )


def refuse_too_many_approvals(approved: Sequence[ToolCall]) -> None:
    """Raise InvalidRequest if a request approves too many calls."""
    if len(approved) > MAX_APPROVED_CALLS:
        raise InvalidRequest(
            f"input: At most {MAX_APPROVED_CALLS} approved calls are allowed, not {len(approved):,}.",
            code="too_many_approvals",
            param="input",
        )


def owner_of(item_id: str) -> str | None:
    """Return the id of an item's response, which is a part of the item's id."""
    digits = item_id.partition("_")[2]
    return f"resp_{digits[:32]}" if DIGITS.fullmatch(digits) and len(digits) > len(digits[:32]) else None


def refuse_unknown(place: int, reference: ItemReference) -> StoredItem:
    raise InvalidRequest(
        f"input[{place}]: There is no stored item {reference.id[:80]!r} to refer to: send the item itself.",
        code="item_not_found",
        param=f"input[{place}].id",
    )
