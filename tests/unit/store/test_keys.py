from collections.abc import Callable
from typing import Any

import pytest

from stint.domain.errors import Conflict, NotFound
from stint.domain.ids import new_id
from stint.store import keys

AGENT, SESSION, TURN = (f"01990000-0000-7000-8000-00000000000{letter}" for letter in "abc")


@pytest.mark.parametrize(
    ("key", "kv_key"),
    [
        (keys.agent("acme", AGENT), f"agent:{AGENT}"),
        (keys.session("acme", AGENT, SESSION), f"session:{AGENT}:{SESSION}"),
        (keys.session_state("acme", AGENT, SESSION), f"session:{AGENT}:{SESSION}:state"),
        (keys.turn("acme", AGENT, SESSION, TURN), f"session:{AGENT}:{SESSION}:{TURN}"),
        (keys.pending("acme", AGENT, SESSION, TURN), f"in_progress_tool_call_step:{AGENT}:{SESSION}:{TURN}"),
    ],
)
def test_a_key_without_its_tenant_is_the_key_of_the_kv_design(key: keys.Key, kv_key: str) -> None:
    joined = f"{key.pk}:{key.sk}"

    assert joined == f"acme#{kv_key}"


@pytest.mark.parametrize(
    "foreign", ["", "..", "x", f"{AGENT}:config", f"{AGENT}/", AGENT.upper(), f"{AGENT}\n", "%", "*"]
)
@pytest.mark.parametrize(
    ("kind", "build"),
    [
        ("agent", lambda value: keys.agent("acme", value)),
        ("agent", lambda value: keys.agent_config("acme", value)),
        ("agent", lambda value: keys.agent_blobs("acme", value)),
        ("agent", lambda value: keys.sessions("acme", value)),
        ("agent", lambda value: keys.pending_calls("acme", value, SESSION)),
        ("session", lambda value: keys.pending_calls("acme", AGENT, value)),
        ("session", lambda value: keys.session("acme", AGENT, value)),
        ("session", lambda value: keys.turns("acme", AGENT, value)),
        ("session", lambda value: keys.session_name("acme", AGENT, value)),
        ("session", lambda value: keys.session_blobs("acme", AGENT, value, expires=False)),
        ("turn", lambda value: keys.turn("acme", AGENT, SESSION, value)),
        ("turn", lambda value: keys.record("acme", AGENT, SESSION, value, 0)),
        ("turn", lambda value: keys.pending("acme", AGENT, SESSION, value)),
        ("turn", lambda value: keys.turn_blobs("acme", AGENT, SESSION, value, expires=True)),
    ],
)
def test_what_is_no_id_names_nothing(kind: str, build: Callable[[str], object], foreign: str) -> None:
    with pytest.raises(NotFound) as refused:
        build(foreign)

    assert refused.value.code == f"{kind}_not_found"


@pytest.mark.parametrize("tenant", ["", "a#agent", "a/b", "A", "a.b", "a_b", "-a", "a\n", "é", "a" * 33])
def test_a_tenant_cannot_reach_into_the_keys_of_another(tenant: str) -> None:
    with pytest.raises(ValueError, match="is not a valid tenant"):
        keys.agents(tenant)


def test_records_sort_behind_their_header_in_the_order_of_the_log() -> None:
    log = [
        keys.record("acme", AGENT, SESSION, TURN, index).sk for index in (0, 1, 9, 10, 99, 100, 1000, keys.LAST_INDEX)
    ]

    assert sorted(log) == log
    assert keys.turn("acme", AGENT, SESSION, TURN).sk < log[0]
    assert log[-1] < keys.turn("acme", AGENT, SESSION, new_id()).sk
    assert log[-1] < keys.AFTER_TURNS < keys.session_name("acme", AGENT, SESSION).sk


def test_a_log_has_ten_thousand_places() -> None:
    with pytest.raises(Conflict, match="Create another turn"):
        keys.record("acme", AGENT, SESSION, TURN, 10_000)


RESPONSE, TALK = "resp_0199000000007000800000000000000a", "conv_0199000000007000800000000000000f"
HEX = RESPONSE.removeprefix("resp_")


@pytest.mark.parametrize(
    ("key", "joined"),
    [
        (keys.response("acme", RESPONSE), f"response:{RESPONSE}:meta"),
        (keys.response_record("acme", RESPONSE, 12), f"response:{RESPONSE}:0012"),
        (keys.response_lease("acme", RESPONSE), f"response:{RESPONSE}:lease"),
        (keys.response_events("acme", RESPONSE, 345), f"response:{RESPONSE}:stream:00000345"),
        (keys.response_entry("acme", RESPONSE), f"response.2:{RESPONSE}"),
        (keys.conversation("acme", TALK), f"conversation:{TALK}:meta"),
        (keys.conversation_item("acme", TALK, f"msg_{HEX}"), f"conversation:{TALK}:item:{HEX}"),
        (keys.conversation_item("acme", TALK, f"fc_{HEX}02"), f"conversation:{TALK}:item:{HEX}0002"),
        (keys.conversation_entry("acme", TALK), f"conversation.7:{TALK}"),
    ],
)
def test_responses_and_conversations_have_partitions_of_their_own(key: keys.Key, joined: str) -> None:
    assert f"{key.pk}:{key.sk}" == f"acme#{joined}"


@pytest.mark.parametrize(
    "foreign", ["", "resp_", "conv_", HEX, f"x_{HEX}", f"{RESPONSE}:meta", f"{RESPONSE}\n", RESPONSE.upper(), AGENT]
)
@pytest.mark.parametrize(
    ("kind", "build"),
    [
        ("response", lambda value: keys.response("acme", value)),
        ("response", lambda value: keys.response_entry("acme", value)),
        ("response", lambda value: keys.response_record("acme", value, 0)),
        ("response", lambda value: keys.response_lease("acme", value)),
        ("response", lambda value: keys.response_events("acme", value, 0)),
        ("response", lambda value: keys.response_blobs("acme", value)),
        ("conversation", lambda value: keys.conversation("acme", value)),
        ("conversation", lambda value: keys.conversation_entry("acme", value)),
        ("conversation", lambda value: keys.conversation_item("acme", value, f"msg_{HEX}")),
        ("conversation", lambda value: keys.conversation_blobs("acme", value)),
    ],
)
def test_what_is_no_name_of_the_kind_names_nothing(kind: str, build: Callable[[str], object], foreign: str) -> None:
    with pytest.raises(NotFound) as refused:
        build(foreign)

    assert refused.value.code == f"{kind}_not_found"


@pytest.mark.parametrize("foreign", ["", "meta", HEX, f"msg_{HEX}2", f"msg_{HEX}00002", f"msg_{HEX}1a", "x:y"])
def test_what_is_no_id_of_an_item_names_nothing(foreign: str) -> None:
    with pytest.raises(NotFound, match="Item"):
        keys.conversation_item("acme", TALK, foreign)


def test_the_records_of_a_response_come_before_its_stored_stream() -> None:
    parts = [
        *(keys.response_record("acme", RESPONSE, index).sk for index in (0, 1, 10, keys.LAST_INDEX)),
        keys.response_lease("acme", RESPONSE).sk,
        keys.response("acme", RESPONSE).sk,
        keys.AFTER_RECORDS,
        *(keys.response_events("acme", RESPONSE, first).sk for first in (0, 9, 10, 99_999_999)),
    ]

    assert sorted(parts) == parts


def test_items_of_a_step_keep_their_order_before_the_conversation() -> None:
    """They come before the conversation's own record."""
    ids = [f"rs_{HEX}00", f"msg_{HEX}01", f"fc_{HEX}02", f"ws_{HEX}10", f"mcp_{HEX}99", f"fc_{HEX}100", f"fc_{HEX}101"]
    parts = [keys.conversation_item("acme", TALK, item_id).sk for item_id in ids]
    parts.append(keys.conversation("acme", TALK).sk)

    assert sorted(parts) == parts


def test_list_entries_are_spread_over_eight_partitions() -> None:
    made = [f"{HEX[:-1]}{digit:x}" for digit in range(16)]

    assert {keys.response_entry("acme", f"resp_{one}").pk for one in made} == set(keys.responses("acme"))
    assert {keys.conversation_entry("acme", f"conv_{one}").pk for one in made} == set(keys.conversations("acme"))
    assert len(set(keys.responses("acme"))) == 8


def test_the_log_of_a_response_has_ten_thousand_places() -> None:
    with pytest.raises(Conflict, match="Create another response"):
        keys.response_record("acme", RESPONSE, 10_000)


def test_each_placeholder_of_a_template_has_a_check() -> None:
    templates = [found for found in vars(keys).values() if isinstance(found, keys.Template)]
    shards = [found for found in vars(keys).values() if isinstance(found, keys.Shards)]
    for template in (*templates, *(part for each in shards for part in (each._shard, each._sk))):
        checks, forms = template._compiled
        assert len(forms) == len(template.texts)
        assert all(map(callable, checks))


def test_a_key_is_kept_and_the_refusal_of_an_id_is_not() -> None:
    fill: Any = keys.conversation.fill
    fill.cache_clear()

    made = [keys.conversation("acme", f"conv_{HEX}") for _ in range(2)]
    for _ in range(2):
        with pytest.raises(NotFound):
            keys.conversation("acme", "conv_#")

    assert made[0] == made[1]
    assert (fill.cache_info().hits, fill.cache_info().currsize) == (1, 1)


@pytest.mark.parametrize("foreign", ["", "x#y:z_" + "a" * 32, "../#:_" + "a" * 32, "resp_" + "A" * 32, "a" * 31])
def test_an_object_of_an_attempt_has_the_form_of_an_id(foreign: str) -> None:
    with pytest.raises(ValueError, match="is not the id of an object"):
        keys.retry_claim("acme", foreign, 1)
