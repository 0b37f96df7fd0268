"""Names of agents as tools of MCP."""

import re
from typing import Any

import pytest

from stint.domain.ids import inline_agent_id, new_id
from stint.mcp_server.tool_names import find_agent_id, pack_id, tool_name, unpack_id

AGENT = "01990000-0000-7000-8000-00000000000a"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Weather", "Weather"),
        ("My agent (v2)!", "My_agent_v2"),
        ("Weather réporter", "Weather_reporter"),
        ("__a--b__", "a_b"),
        ("天气", "agent"),
        ("", "agent"),
        (None, "agent"),
        ("x" * 500, "x" * 41),
        ("a" * 40 + "  b", "a" * 40),
        ("\n\0'\"<script>", "script"),
    ],
)
def test_a_name_is_what_is_left_and_the_id(name: Any, slug: Any) -> None:
    made = tool_name(AGENT, name)
    assert made == f"{slug}_{pack_id(AGENT)}"
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", made)
    assert find_agent_id(made) == AGENT


def test_each_agent_has_a_name_of_its_own() -> None:
    ids = [new_id() for _ in range(500)]
    names = [tool_name(agent_id, "same") for agent_id in ids]
    assert len(set(names)) == len(ids)
    assert [find_agent_id(name) for name in names] == ids


@pytest.mark.parametrize(
    "name",
    ["", "agent", pack_id(AGENT), f"_{pack_id(AGENT)}", f"{'x' * 42}_{pack_id(AGENT)}", f"a_{pack_id(AGENT)}x", "a_é"],
)
def test_other_names_have_no_agent(name: Any) -> None:
    assert find_agent_id(name) is None


def test_the_agent_of_one_session_has_no_name() -> None:
    assert find_agent_id(f"a_{pack_id(inline_agent_id(new_id()))}") is None


def test_an_id_is_packed_in_one_way() -> None:
    packed = pack_id(AGENT)
    others = [packed[:-1] + last for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"]
    assert [text for text in others if unpack_id(text) == AGENT] == [packed]
    assert unpack_id(packed + "==") is None
