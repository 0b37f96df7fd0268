"""Conversations: items that responses read and extend."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from stint.domain.expiry import Expiry
from stint.domain.fields import Metadata, Nothing, Omitted, UnsupportedField, is_unset, refusal
from stint.domain.limits import PartLimit
from stint.domain.openai.image_generation import ImageGenerationCall
from stint.domain.openai.input_items import InputItem
from stint.domain.openai.items import Item, ItemReference
from stint.domain.openai.lists import ListObject
from stint.domain.schema import Request, Schema
from stint.domain.session_budgets import SessionBudget, SpentBudget
from stint.domain.tools import LARGE_IMAGE

MAX_ITEMS = 20
"""Maximum items of one request, as at OpenAI."""


FIXED_BUDGET = "The budget of a conversation cannot be changed. Create another conversation"


class Conversation(Schema):
    """A conversation as the API returns it. `created_at` and `expires_at` are in seconds since 1970."""

    id: str
    object: Literal["conversation"] = "conversation"
    created_at: int
    metadata: dict[str, str] = Field(default_factory=dict)
    expires_at: Omitted[int] = None
    budget: Omitted[SpentBudget] = None


class StoredItem(Schema):
    """An item of a conversation as it is stored, with the texts of its files in order.

    Model calls repeat the ones before, so that providers find them in their caches: `call_id` is the model's id of a
    call that the server ran, and `begins_answer` says that the item is the first of an answer of the model. `late` of
    that item is what the model needs of its later reasoning (`Reasoning.late`). An item that `compacts` replaces all
    before it.
    """

    item: Item
    texts: list[str] = Field(default_factory=list, exclude_if=is_unset)
    call_id: Omitted[str] = None
    begins_answer: Omitted[bool] = None
    late: Omitted[str] = None
    compacts: Omitted[bool] = None

    def without_images(self) -> "StoredItem | None":
        """Return the item as models get it; None if it has no large image."""
        item = self.item
        if not isinstance(item, ImageGenerationCall) or len(item.result or "") < LARGE_IMAGE:
            return None
        return self.model_copy(update={"item": item.model_copy(update={"result": None})})


def check_references(items: list[InputItem]) -> list[InputItem]:
    """Refuse references, because an item belongs to one conversation."""
    for index, item in enumerate(items):
        if isinstance(item, ItemReference):
            raise refusal(f"Item {index} is an item_reference: send the item itself.")
    return items


class CreateConversation(Request):
    """A conversation to be created. `budget` limits what all its responses spend."""

    items: Annotated[list[InputItem], Field(max_length=MAX_ITEMS), PartLimit] = Field(default_factory=list)
    metadata: Metadata = Field(default_factory=dict)
    expires_after: Omitted[Expiry] = None
    budget: Omitted[SessionBudget] = None

    _check_items = field_validator("items")(check_references)


class UpdateConversation(Request):
    """The request that replaces all metadata. Null means none."""

    metadata: Metadata | None
    budget: Annotated[Nothing, UnsupportedField(FIXED_BUDGET)] = None


class CreateItems(Request):
    items: Annotated[list[InputItem], Field(min_length=1, max_length=MAX_ITEMS), PartLimit]

    _check_items = field_validator("items")(check_references)


class DeletedConversation(Schema):
    id: str
    object: Literal["conversation.deleted"] = "conversation.deleted"
    deleted: Literal[True] = True


class ConversationList(ListObject[Conversation]):
    """A page of conversations."""
