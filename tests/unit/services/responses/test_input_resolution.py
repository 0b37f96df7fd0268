from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import TypeAdapter

from stint.domain.errors import InvalidRequest
from stint.domain.ids import new_name
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.input_items import Input
from stint.domain.openai.items import Message
from stint.domain.openai.mcp_items import McpApprovalResponse
from stint.domain.openai.parts import InputText
from stint.services.responses.input_items import InputResolver

INPUT: TypeAdapter[Any] = TypeAdapter(Input)
MINE = new_name("msg")


def user(words: str, identifier: str = "") -> dict[str, Any]:
    return {"role": "user", "content": words, "id": identifier}


def reference(identifier: str) -> dict[str, Any]:
    return {"type": "item_reference", "id": identifier}


def stored(words: str, identifier: str, *texts: str) -> StoredItem:
    message = Message(id=identifier, role="user", content=[InputText(text=words)])
    return StoredItem(item=message, texts=list(texts))


class Shelf:
    """Stored items, and what was looked for."""

    def __init__(self, *items: StoredItem) -> None:
        self.items = {each.item.id: each for each in items}
        self.asked: list[list[str]] = []

    async def find(self, ids: Sequence[str]) -> Mapping[str, StoredItem]:
        self.asked.append(list(ids))
        return {each: self.items[each] for each in ids if each in self.items}


async def resolve(
    items: list[Any], stored_items: Shelf, known: Sequence[StoredItem] = (), *, anew: bool = False
) -> tuple[str, dict[int, StoredItem]]:
    response_id = new_name("resp")
    resolver = InputResolver(INPUT.validate_python(items), response_id, renew=anew)
    return response_id, await resolver.resolve({each.item.id: each for each in known}, stored_items.find)


def words(items: Mapping[int, StoredItem]) -> list[str]:
    return [part.text for each in items.values() if isinstance(each.item, Message) for part in each.item.content]  # type: ignore[union-attr]  # texts only


def ids(items: Mapping[int, StoredItem]) -> list[str]:
    return [each.item.id for each in items.values()]


async def test_items_without_an_id_of_this_server_get_one_that_sorts_before_the_response() -> None:
    response_id, items = await resolve([user("a"), user("b", "msg_abc"), user("c", MINE)], Shelf())

    first, second, third = ids(items)
    assert third == MINE
    assert first < second < f"msg_{response_id[5:]}"


async def test_nothing_is_looked_for_where_nothing_is_referred_to() -> None:
    stored_items = Shelf()

    await resolve([user("a")], stored_items)

    assert stored_items.asked == []


async def test_references_are_looked_for_at_once_and_bring_the_texts_of_their_files() -> None:
    stored_items = Shelf(stored("one", "msg_1", "file one"), stored("two", "msg_2"))

    _, items = await resolve([reference("msg_1"), user("a"), reference("msg_2")], stored_items)

    assert stored_items.asked == [["msg_1", "msg_2"]]
    assert words(items) == ["one", "a", "two"]
    assert items[0].texts == ["file one"]


async def test_what_is_known_already_is_passed_over_and_places_stay() -> None:
    known = stored("one", MINE)

    _, items = await resolve([reference(MINE), user("a")], Shelf(), [known])

    assert list(items) == [1]
    assert words(items) == ["a"]


async def test_an_item_that_is_sent_again_gets_an_id_of_its_own() -> None:
    _, twice = await resolve([user("a", MINE), user("b", MINE)], Shelf())
    _, again = await resolve([user("a", MINE)], Shelf(), [stored("a", MINE)])

    assert ids(twice)[0] == MINE
    assert MINE not in (ids(twice)[1], *ids(again))


async def test_in_a_conversation_every_id_is_new_and_in_order() -> None:
    other = stored("other", new_name("msg"))

    _, items = await resolve([user("a", MINE), reference(other.item.id), user("b")], Shelf(other), anew=True)

    assert words(items) == ["a", "other", "b"]
    assert ids(items) == sorted(ids(items))
    assert not {MINE, other.item.id} & set(ids(items))


@pytest.mark.parametrize("anew", [True, False])
async def test_a_consent_follows_the_question_that_gets_another_id(anew: bool) -> None:
    asked = {"type": "mcp_approval_request", "id": "foreign", "server_label": "s", "name": "add", "arguments": "{}"}
    agreed = {"type": "mcp_approval_response", "approval_request_id": "foreign", "approve": True}

    _, items = await resolve([asked, agreed], Shelf(), anew=anew)

    question, consent = [each.item for each in items.values()]
    assert isinstance(consent, McpApprovalResponse)
    assert consent.approval_request_id == question.id != "foreign"


async def test_a_reference_to_nothing_is_named_by_its_place() -> None:
    with pytest.raises(InvalidRequest, match="'msg_9'") as refused:
        await resolve([user("a"), reference("msg_9")], Shelf())

    assert (refused.value.code, refused.value.param) == ("item_not_found", "input[1].id")
