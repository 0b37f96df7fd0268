"""The keys of messages that wait for a session or a conversation."""

from typing import NamedTuple

from stint.store import keys


class LineKeys(NamedTuple):
    """The partitions of the places in line, and of the messages, and the prefix of long messages in the bucket.

    `left` is the partition of the places that have left the line, None if `messages` has only the messages of the line.
    """

    places: str
    messages: str
    blobs: str
    left: str | None = None


def session_line(tenant: str, agent_id: str, session_id: str) -> LineKeys:
    """The messages that wait for a session."""
    checked = keys.session(tenant, agent_id, session_id)
    ids = f"{agent_id}:{checked.sk}"
    blobs = f"{keys.session_blobs(tenant, agent_id, session_id, ephemeral=True)}waiting/"
    owner = keys.checked_tenant(tenant)
    return LineKeys(f"{owner}#waiting_session:{ids}", f"{owner}#waiting_turn:{ids}", blobs)


def conversation_line(tenant: str, conversation_id: str) -> LineKeys:
    """The messages that wait for a conversation. Those of all conversations are in one partition."""
    blobs = f"{keys.conversation_blobs(tenant, conversation_id, expires=True)}waiting/"
    owner = keys.checked_tenant(tenant)
    places, left = (f"{owner}#{name}:{conversation_id}" for name in ("waiting_conversation", "left_conversation"))
    return LineKeys(places, waiting_responses(tenant), blobs, left)


def waiting_responses(tenant: str) -> str:
    return f"{keys.checked_tenant(tenant)}#waiting_response"
