"""The keys of every record and blob. Nothing else knows a prefix.

`pk` without the tenant, followed by ":" and `sk`, is the key that Llama Stack's KV store uses for the same thing.
The functions with a plural name give partitions (`pk`), the others whole keys.
"""

from typing import NamedTuple

from stint.domain.errors import Conflict, NotFound
from stint.domain.ids import is_id

LAST_INDEX = 9_999
"""The highest place in a turn's log: four digits keep the order of the keys."""

AFTER_TURNS = "g"
"""Sorts behind every turn and record, and before what else a conversation's partition holds."""


class Key(NamedTuple):
    pk: str
    sk: str


def agents(tenant: str) -> str:
    return f"{_tenant(tenant)}#agent"


def agent(tenant: str, agent_id: str) -> Key:
    """The list entry of an agent: it exists as long as this does."""
    return Key(agents(tenant), _id("Agent", agent_id))


def agent_config(tenant: str, agent_id: str) -> Key:
    return Key(f"{agents(tenant)}:{_id('Agent', agent_id)}", "config")


def sessions(tenant: str, agent_id: str) -> str:
    return f"{_tenant(tenant)}#session:{_id('Agent', agent_id)}"


def session(tenant: str, agent_id: str, session_id: str) -> Key:
    return Key(sessions(tenant, agent_id), _id("Session", session_id))


def turns(tenant: str, agent_id: str, session_id: str) -> str:
    """The conversation: headers, logs, and the session's name when that is long."""
    return ":".join(session(tenant, agent_id, session_id))


def session_name(tenant: str, agent_id: str, session_id: str) -> Key:
    return Key(turns(tenant, agent_id, session_id), "name")


def turn(tenant: str, agent_id: str, session_id: str, turn_id: str) -> Key:
    """The header of a turn."""
    return Key(turns(tenant, agent_id, session_id), _id("Turn", turn_id))


def record(tenant: str, agent_id: str, session_id: str, turn_id: str, index: int) -> Key:
    """One entry of a turn's log. Raises Conflict when the log is full."""
    if index > LAST_INDEX:
        raise Conflict(
            f"Turn {turn_id} has {index} records, the most it can have: create another turn.", code="turn_full"
        )
    pk, sk = turn(tenant, agent_id, session_id, turn_id)
    return Key(pk, f"{sk}:{index:04d}")


def pending_calls(tenant: str, agent_id: str, session_id: str) -> str:
    ids = f"{_id('Agent', agent_id)}:{_id('Session', session_id)}"
    return f"{_tenant(tenant)}#in_progress_tool_call_step:{ids}"


def pending(tenant: str, agent_id: str, session_id: str, turn_id: str) -> Key:
    return Key(pending_calls(tenant, agent_id, session_id), _id("Turn", turn_id))


def agent_blobs(tenant: str, agent_id: str, *, ephemeral: bool = False) -> str:
    """The prefix of an agent's blobs: its configuration's, and below it those of its sessions."""
    return f"{'ephemeral' if ephemeral else 'kept'}/{_tenant(tenant)}/{_id('Agent', agent_id)}/"


def session_blobs(tenant: str, agent_id: str, session_id: str, *, ephemeral: bool) -> str:
    return f"{agent_blobs(tenant, agent_id, ephemeral=ephemeral)}{_id('Session', session_id)}/"


def turn_blobs(tenant: str, agent_id: str, session_id: str, turn_id: str, *, ephemeral: bool) -> str:
    return f"{session_blobs(tenant, agent_id, session_id, ephemeral=ephemeral)}{_id('Turn', turn_id)}/"


def turn_of(sk: str) -> str:
    """Give the turn to which a sort key of a conversation belongs."""
    return sk.partition(":")[0]


def is_header(sk: str) -> bool:
    return ":" not in sk


def registrations(tenant: str) -> str:
    """The registered models, toolgroups and shields."""
    return f"{_tenant(tenant)}#registry"


def registration(tenant: str, kind: str, identifier: str) -> Key:
    return Key(registrations(tenant), f"{kind}:{identifier}")


def registration_blobs(tenant: str) -> str:
    return f"kept/{_tenant(tenant)}/registry/"


def split_registration(sk: str) -> tuple[str, str]:
    """Give the kind and the identifier that a sort key names."""
    kind, _, identifier = sk.partition(":")
    return kind, identifier


def _id(kind: str, value: str) -> str:
    """Let only ids into a key, so that none from outside reaches into another record."""
    if not is_id(value):
        raise NotFound(kind, value)
    return value


def _tenant(value: str) -> str:
    if not value or "#" in value or "/" in value:
        raise ValueError(f"{value!r} cannot name a tenant: it is empty or holds '#' or '/'")
    return value
