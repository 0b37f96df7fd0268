"""API keys of a deployed stack, and its authorizer."""

import json
import re
import sys
from typing import Any

from infra.local.invoke import EVENTS
from tests.deploy.account import Account

KEY = re.compile(r"stk_[0-9a-f]{32}_[0-9a-f]{64}")


def create_key(account: Account, stack: str) -> str:
    """Create a key as docs/production.md says, and return its secret."""
    scopes = [word for scope in ("use", "registry:write", "admin") for word in ("--scope", scope)]
    command = [sys.executable, "-m", "stint.cli", "keys", "create", "--stack", stack, *scopes]
    (key,) = KEY.findall(account.run(command, PYTHONPATH="layers/core"))
    return str(key)


def authorize(account: Account, stack: str, key: str) -> dict[str, Any] | None:
    """Return the context that the deployed authorizer gives a key's requests, or None if it refuses the key."""
    event = KEY.sub(key, (EVENTS / "authorizer" / "unknown_key.json").read_text())
    answer, error = account.invoke(f"{stack}-authorizer", event.encode())
    document = json.loads(answer)
    if error:
        assert document["errorMessage"] == "Unauthorized"
        return None
    context: dict[str, Any] = document["context"]
    return context
