from stint.domain.ids import item_name, new_id
from stint.domain.openai.items import FunctionCall, Item, Message, is_item_id, name_item, name_items
from stint.domain.openai.mcp_items import McpCall
from stint.domain.openai.parts import InputText


def call(identifier: str) -> FunctionCall:
    return FunctionCall(id=identifier, call_id="call_1", name="f", arguments="{}")


def test_an_item_keeps_an_id_of_this_server() -> None:
    own = item_name("fc", new_id(), 2)

    assert name_item(call(own)).id == own


def test_an_item_without_an_id_or_with_a_foreign_one_gets_one_by_its_type() -> None:
    foreign = ["", "fc_68a1", "__fake_id__", item_name("msg", new_id(), 1)]

    named = [name_item(call(identifier)) for identifier in foreign]

    assert all(is_item_id("function_call", item.id) for item in named)
    assert len({item.id for item in named}) == len(foreign)


def test_no_two_items_of_a_list_have_one_id() -> None:
    own = item_name("fc", new_id(), 2)
    items: list[Item] = [call(own), call(own), Message(role="user", content=[InputText(text="Hi.")])]

    named = name_items(items)

    assert named[0].id == own
    assert len({item.id for item in named}) == 3


def test_an_error_of_an_mcp_call_may_be_the_string_of_an_older_client() -> None:
    item = McpCall.model_validate({"server_label": "wiki", "name": "ask", "arguments": "{}", "error": "Gone."})

    shown = item.model_dump()["error"]

    assert shown == {"type": "mcp_tool_execution_error", "content": "Gone."}
