"""Plain handlers for the managed runtime."""

import os
import time
from typing import Any


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return {"event": event, "request_id": context.aws_request_id, "pid": os.getpid()}


def large(_event: dict[str, Any], _context: Any) -> str:
    return "x" * 7_000_000


def slow(_event: dict[str, Any], _context: Any) -> None:
    time.sleep(60)


def failing(_event: dict[str, Any], _context: Any) -> None:
    print("attempted", flush=True)
    raise LookupError("no luck")
