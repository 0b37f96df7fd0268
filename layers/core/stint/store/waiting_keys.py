"""The keys of requests that wait for a session or a conversation."""

from stint.store import keys


def session_line(tenant: str, agent_id: str, session_id: str) -> str:
    """The partition of the requests that wait for a session."""
    checked = keys.session(tenant, agent_id, session_id)
    return f"{keys.checked_tenant(tenant)}#waiting_session:{agent_id}:{checked.sk}"


def conversation_line(tenant: str, conversation_id: str) -> str:
    """The partition of the requests that wait for a conversation."""
    keys.conversation(tenant, conversation_id)  # refuses an invalid id
    return f"{keys.checked_tenant(tenant)}#waiting_conversation:{conversation_id}"
