"""Toolgroups that an agent or a turn defines itself, in place of a registration."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from stint.domain.llama_stack.registrations import ToolGroup
from stint.tools.port import REMOTE_EXECUTION


def define_toolgroup(args: Mapping[str, Any]) -> ToolGroup:
    """Return a toolgroup of the endpoints that an agent's args define. Equal args have equal identifiers."""
    digest = sha256(json.dumps(args, sort_keys=True).encode()).hexdigest()[:16]
    return ToolGroup(
        identifier=f"{REMOTE_EXECUTION}/{digest}",
        provider_resource_id=REMOTE_EXECUTION,
        provider_id="remote-execution",
        args=dict(args),
    )
