from collections.abc import Callable

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
        ("session", lambda value: keys.session_blobs("acme", AGENT, value, ephemeral=False)),
        ("turn", lambda value: keys.turn("acme", AGENT, SESSION, value)),
        ("turn", lambda value: keys.record("acme", AGENT, SESSION, value, 0)),
        ("turn", lambda value: keys.pending("acme", AGENT, SESSION, value)),
        ("turn", lambda value: keys.turn_blobs("acme", AGENT, SESSION, value, ephemeral=True)),
    ],
)
def test_what_is_no_id_names_nothing(kind: str, build: Callable[[str], object], foreign: str) -> None:
    with pytest.raises(NotFound) as refused:
        build(foreign)

    assert refused.value.code == f"{kind}_not_found"


@pytest.mark.parametrize("tenant", ["", "a#agent", "a/b"])
def test_a_tenant_cannot_reach_into_the_keys_of_another(tenant: str) -> None:
    with pytest.raises(ValueError, match="cannot name a tenant"):
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
    with pytest.raises(Conflict, match="create another turn"):
        keys.record("acme", AGENT, SESSION, TURN, 10_000)
