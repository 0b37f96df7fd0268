"""Names of agents as tools: what is left of the agent's name, and its whole id in 22 characters.

Names of agents are not unique, and a call must find its agent with one read. So the id is not cut: its 16 bytes are
written in base64 (url-safe), whose characters are those that a tool's name may have. A name is accepted only as it is
listed, so that nobody can call a tool by a second name, which a proxy with a list of allowed tools does not know.
"""

import base64
import binascii
import re
import unicodedata
import uuid

from stint.domain.ids import is_inline_agent
from stint.domain.tools import LONGEST_TOOL_NAME

ID_CHARACTERS = 22
LONGEST_SLUG = LONGEST_TOOL_NAME - ID_CHARACTERS - 1
OTHERS = re.compile(r"[^a-zA-Z0-9]+")
FORM = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_SLUG}}}_([a-zA-Z0-9_-]{{{ID_CHARACTERS}}})")
UNNAMED = "agent"


def tool_name(agent_id: str, name: str | None) -> str:
    """Return the name of an agent's tool: `[a-zA-Z0-9_-]`, at most 64 characters."""
    return f"{slug_of(name or '')}_{pack_id(agent_id)}"


def slug_of(name: str) -> str:
    """Return the ASCII letters and digits of a name, with underscores between them."""
    plain = unicodedata.normalize("NFKD", name[: 4 * LONGEST_TOOL_NAME]).encode("ascii", "ignore").decode()
    return OTHERS.sub("_", plain).strip("_")[:LONGEST_SLUG].strip("_") or UNNAMED


def pack_id(agent_id: str) -> str:
    return base64.urlsafe_b64encode(uuid.UUID(agent_id).bytes).rstrip(b"=").decode()


def find_agent_id(name: str) -> str | None:
    """Return the id in the name of a tool; None if it is not that of an agent which can be listed."""
    found = FORM.fullmatch(name)
    return None if found is None else unpack_id(found.group(1))


def unpack_id(packed: str) -> str | None:
    """Return the id that `pack_id` encoded; None for any other text."""
    try:
        agent_id = str(uuid.UUID(bytes=base64.urlsafe_b64decode(packed + "==")))
    except (binascii.Error, ValueError):
        return None
    return agent_id if pack_id(agent_id) == packed and not is_inline_agent(agent_id) else None
