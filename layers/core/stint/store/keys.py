"""The keys of all records and blobs. No other module knows a prefix.

`pk` without the tenant, followed by ":" and `sk`, is the key that Llama Stack's KV store uses for the same thing.
Functions with a plural name return partitions (`pk`), the others whole keys.
"""

import re
from typing import NamedTuple

from stint.domain.errors import Conflict, NotFound
from stint.domain.ids import TENANT_PATTERN, is_id, is_name, order_of

LAST_INDEX = 9_999
"""The highest index in a turn's log, because keys have four digits."""

AFTER_TURNS = "g"
"""Sorts after all turns and records, and before the other records in a session's partition."""

SEGMENTS = "history:"

AFTER_SEGMENTS = "i"
"""Sorts after all turns and segments, and before the session's other records."""

IMPORTED = "imported:"

SHARDS = 8
"""Number of shards of the list entries of a tenant's responses, or conversations."""

AFTER_INDEXES = "a"
"""Sorts after the indexes of a log, and before the other records of a response."""

AFTER_RECORDS = "n"
"""Sorts after the log, the lease and the header of a response, and before its stored stream."""

LONGEST_PK, LONGEST_SK = 2048, 1024
"""Maximum bytes of a key (DynamoDB, "Quotas": partition keys and sort keys)."""

LEASE = "lease"
EVENTS = "stream:"
ITEMS = "item:"

ITEM = re.compile(r"[a-z]+_([0-9a-f]{32})([0-9]{2,4}|[0-9]{8})?")


class Key(NamedTuple):
    pk: str
    sk: str


def agents(tenant: str) -> str:
    return f"{checked_tenant(tenant)}#agent"


def agent(tenant: str, agent_id: str) -> Key:
    """The list entry of an agent, which exists as long as its entry."""
    return Key(agents(tenant), _id("Agent", agent_id))


def agent_config(tenant: str, agent_id: str) -> Key:
    return Key(f"{agents(tenant)}:{_id('Agent', agent_id)}", "config")


def sessions(tenant: str, agent_id: str) -> str:
    return f"{checked_tenant(tenant)}#session:{_id('Agent', agent_id)}"


def session(tenant: str, agent_id: str, session_id: str) -> Key:
    return Key(sessions(tenant, agent_id), _id("Session", session_id))


def turns(tenant: str, agent_id: str, session_id: str) -> str:
    """The turns of a session: headers, logs, segments, and the session's name if it is long."""
    return ":".join(session(tenant, agent_id, session_id))


def session_name(tenant: str, agent_id: str, session_id: str) -> Key:
    return Key(turns(tenant, agent_id, session_id), "name")


def turn(tenant: str, agent_id: str, session_id: str, turn_id: str) -> Key:
    """The header of a turn."""
    return Key(turns(tenant, agent_id, session_id), _id("Turn", turn_id))


def record(tenant: str, agent_id: str, session_id: str, turn_id: str, index: int) -> Key:
    """One entry of a turn's log. Raises Conflict if the log is full."""
    if index > LAST_INDEX:
        raise Conflict(f"Turn {turn_id} has {index} records, the maximum. Create another turn.", code="turn_full")
    pk, sk = turn(tenant, agent_id, session_id, turn_id)
    return Key(pk, f"{sk}:{index:04d}")


def after_records(tenant: str, agent_id: str, session_id: str, turn_id: str) -> Key:
    """Sorts after the log of a turn. No record has this key."""
    pk, sk = turn(tenant, agent_id, session_id, turn_id)
    return Key(pk, f"{sk}:{AFTER_INDEXES}")


def segment(tenant: str, agent_id: str, session_id: str, first_turn: str) -> Key:
    """The segment of a session's history that begins with a turn."""
    return Key(turns(tenant, agent_id, session_id), f"{SEGMENTS}{_id('Turn', first_turn)}")


def imported_turn(tenant: str, agent_id: str, session_id: str, old_id: str) -> Key:
    """The record that names the turn which had another id on the server that it was imported from."""
    return Key(turns(tenant, agent_id, session_id), f"{IMPORTED}{_id('Turn', old_id)}")


def first_turn(sk: str) -> str | None:
    """Return the first turn of a segment; None if the key is not that of a segment."""
    return sk.removeprefix(SEGMENTS) if sk.startswith(SEGMENTS) else None


def pending_calls(tenant: str, agent_id: str, session_id: str) -> str:
    ids = f"{_id('Agent', agent_id)}:{_id('Session', session_id)}"
    return f"{checked_tenant(tenant)}#in_progress_tool_call_step:{ids}"


def pending(tenant: str, agent_id: str, session_id: str, turn_id: str) -> Key:
    return Key(pending_calls(tenant, agent_id, session_id), _id("Turn", turn_id))


def agent_blobs(tenant: str, agent_id: str, *, ephemeral: bool = False) -> str:
    """The prefix of the blobs of an agent's configuration and of its sessions."""
    return f"{'ephemeral' if ephemeral else 'kept'}/{checked_tenant(tenant)}/{_id('Agent', agent_id)}/"


def session_blobs(tenant: str, agent_id: str, session_id: str, *, ephemeral: bool) -> str:
    return f"{agent_blobs(tenant, agent_id, ephemeral=ephemeral)}{_id('Session', session_id)}/"


def session_files(tenant: str, agent_id: str, session_id: str, *, ephemeral: bool) -> str:
    """The prefix of the files of a session that its code reads."""
    return f"{session_blobs(tenant, agent_id, session_id, ephemeral=ephemeral)}files/"


def turn_blobs(tenant: str, agent_id: str, session_id: str, turn_id: str, *, ephemeral: bool) -> str:
    return f"{session_blobs(tenant, agent_id, session_id, ephemeral=ephemeral)}{_id('Turn', turn_id)}/"


def turn_of(sk: str) -> str:
    """Return the turn of a sort key."""
    return sk.partition(":")[0]


def session_of(pk: str) -> str:
    """Return the session of the partition of its turns."""
    return pk.rpartition(":")[2]


def index_of(sk: str) -> int | None:
    """Return the index of a record in its turn's log; None for a header."""
    index = sk.partition(":")[2]
    return int(index) if index else None


def is_header(sk: str) -> bool:
    return ":" not in sk


def registrations(tenant: str) -> str:
    """The registered models, toolgroups and shields."""
    return f"{checked_tenant(tenant)}#registry"


def registration(tenant: str, kind: str, identifier: str) -> Key:
    return Key(registrations(tenant), f"{kind}:{identifier}")


def is_storable(key: Key) -> bool:
    """Return whether DynamoDB accepts a key. No record has a longer one."""
    return len(key.pk.encode()) <= LONGEST_PK and len(key.sk.encode()) <= LONGEST_SK


def registration_blobs(tenant: str) -> str:
    return f"kept/{checked_tenant(tenant)}/registry/"


def split_registration(sk: str) -> tuple[str, str]:
    """Return the kind and the identifier in a sort key."""
    kind, _, identifier = sk.partition(":")
    return kind, identifier


def signing_key(tenant: str) -> Key:
    """The key that signs opaque texts. Its partition is never deleted."""
    return Key(f"{checked_tenant(tenant)}#signing_key", "opaque")


def responses(tenant: str) -> list[str]:
    """The shards of list entries, so that a tenant's responses are not all written to one partition."""
    return [f"{checked_tenant(tenant)}#response.{shard}" for shard in range(SHARDS)]


def response_entry(tenant: str, response_id: str) -> Key:
    return Key(f"{checked_tenant(tenant)}#response.{shard_of(_response(response_id))}", response_id)


def response_records(tenant: str, response_id: str) -> str:
    """The partition of a response: header, log, lease and stored stream."""
    return f"{checked_tenant(tenant)}#response:{_response(response_id)}"


def response(tenant: str, response_id: str) -> Key:
    """The header of a response."""
    return Key(response_records(tenant, response_id), "meta")


def response_record(tenant: str, response_id: str, index: int) -> Key:
    """One entry of a response's log. Raises Conflict if the log is full."""
    if index > LAST_INDEX:
        raise Conflict(
            f"Response {response_id} has {index} records, the maximum. Create another response.",
            code="response_full",
        )
    return Key(response_records(tenant, response_id), f"{index:04d}")


def is_response_header(sk: str) -> bool:
    return sk == "meta"


def is_response_record(sk: str) -> bool:
    return sk.isdigit()


def response_lease(tenant: str, response_id: str) -> Key:
    return Key(response_records(tenant, response_id), LEASE)


def is_response_lease(sk: str) -> bool:
    return sk == LEASE


def response_events(tenant: str, response_id: str, first: int) -> Key:
    """The batch of stored events that starts with a sequence number."""
    return Key(response_records(tenant, response_id), f"{EVENTS}{first:08d}")


def first_event(sk: str) -> int | None:
    """Return the first sequence number of a batch; None if the key is not that of a batch."""
    return int(sk.removeprefix(EVENTS)) if sk.startswith(EVENTS) else None


def response_blobs(tenant: str, response_id: str, *, expires: bool = False) -> str:
    return f"{'expiring' if expires else 'kept'}/{checked_tenant(tenant)}/responses/{_response(response_id)}/"


def conversations(tenant: str) -> list[str]:
    """The shards of list entries, as for responses."""
    return [f"{checked_tenant(tenant)}#conversation.{shard}" for shard in range(SHARDS)]


def conversation_entry(tenant: str, conversation_id: str) -> Key:
    shard = shard_of(_conversation(conversation_id))
    return Key(f"{checked_tenant(tenant)}#conversation.{shard}", conversation_id)


def conversation_items(tenant: str, conversation_id: str) -> str:
    """The partition of a conversation: its items, followed by its own record."""
    return f"{checked_tenant(tenant)}#conversation:{_conversation(conversation_id)}"


def conversation(tenant: str, conversation_id: str) -> Key:
    return Key(conversation_items(tenant, conversation_id), "meta")


def conversation_item(tenant: str, conversation_id: str, item_id: str) -> Key:
    """An item, by its id without the prefix: a UUIDv7 in hex, and the item's place in its step."""
    found = ITEM.fullmatch(item_id)
    if found is None:
        raise NotFound("Item", item_id)
    made, place = found.group(1), found.group(2) or ""
    return Key(conversation_items(tenant, conversation_id), f"{ITEMS}{made}{order_of(place)}")


def conversation_blobs(tenant: str, conversation_id: str, *, expires: bool = False) -> str:
    return (
        f"{'expiring' if expires else 'kept'}/{checked_tenant(tenant)}/conversations/{_conversation(conversation_id)}/"
    )


def event(tenant: str, event_id: str) -> Key:
    """The idempotency record of an event of the bus, or of a direct invocation."""
    return Key(f"{checked_tenant(tenant)}#event:{event_id}", "claim")


def _response(value: str) -> str:
    return _named("Response", "resp", value)


def _conversation(value: str) -> str:
    return _named("Conversation", "conv", value)


def _named(kind: str, prefix: str, value: str) -> str:
    if not is_name(prefix, value):
        raise NotFound(kind, value)
    return value


def shard_of(value: str) -> int:
    """Return the shard of an id in hex."""
    return int(value[-1], 16) % SHARDS


def _id(kind: str, value: str) -> str:
    """Accept only ids in a key, so that no text from outside can address another record."""
    if not is_id(value):
        raise NotFound(kind, value)
    return value


def checked_tenant(value: str) -> str:
    """Return a tenant that may be part of a key. Raises ValueError."""
    if TENANT_PATTERN.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not a valid tenant: use up to 32 of a-z, 0-9 and '-', not beginning with '-'")
    return value
