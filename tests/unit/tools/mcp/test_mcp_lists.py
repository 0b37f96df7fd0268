import pytest

from stint.domain.errors import ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.tools.mcp.lists import ToolLists

ADD = [ToolSignature("add", "", {})]
SUB = [ToolSignature("sub", "", {})]


def test_an_expired_list_is_known_and_not_fresh() -> None:
    lists = ToolLists(60, 60)
    lists.put("a", ADD)
    lists.put("b", SUB)

    lists.expire("a")
    lists.expire("nowhere")

    assert (lists.fresh("a"), lists.known("a")) == (None, ADD)
    assert lists.fresh("b") == SUB
    assert lists.known("nowhere") is None


def test_a_failure_leaves_the_list_and_a_list_ends_the_failure() -> None:
    lists = ToolLists(60, 60)
    lists.put("a", ADD)

    silent = ToolUnavailable("it was silent")
    lists.fail("a", silent)
    assert (lists.failure("a"), lists.known("a")) == (silent, ADD)
    lists.put("a", SUB)

    assert (lists.failure("a"), lists.fresh("a")) == (None, SUB)


def test_the_oldest_list_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stint.tools.mcp.lists.MOST_LISTS", 2)
    lists = ToolLists(60, 60)
    for key in ("a", "b", "b", "c"):
        lists.put(key, ADD)

    assert [lists.known(key) for key in ("a", "b", "c")] == [None, ADD, ADD]


def test_large_lists_make_room_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stint.tools.mcp.lists.MOST_BYTES", 1_000)
    lists = ToolLists(60, 60)
    large = [ToolSignature("large", "x" * 500, {})]
    for key in ("a", "b"):
        lists.put(key, large)
    lists.put("c", ADD)
    lists.put("d", [ToolSignature("larger", "", {"description": "x" * 2_000})])

    assert [key for key in "abcd" if lists.known(key)] == ["d"]
    lists.put("b", large)
    lists.put("c", ADD)
    assert [key for key in "abcd" if lists.known(key)] == ["b", "c"]
