"""Runs Python code that a model wrote. The function has no permissions but those of its logs.

In Lambda, each tenant has execution environments of its own (TenancyConfig). The event is `{"code": ..., "files":
[{"name", "content"}], "seconds": ...}` with contents in base64; the answer has the fields of `Result`.
"""

import base64
import binascii
import dataclasses
import os
import re
from collections.abc import Mapping
from typing import Any

from execution import Limits, execute
from namespaces import is_available
from processes import hide_memory
from result import is_plain

FILE_NAME = re.compile(r"[^./][^/]*")
MOST_FILES = 100
LONGEST_CODE = 200_000
LONGEST_SECONDS = 120
MARGIN_SECONDS = 3.0
"""Seconds before this function's timeout at which a run ends."""

MEMORY_SHARE = 0.6
"""Share of the function's memory for the code."""

NOT_AVAILABLE = (
    "Code cannot be run on this machine, because its kernel does not let users make namespaces. Deploy the stack, "
    "or allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile)."
)

hide_memory()


def handler(event: Any, context: Any) -> dict[str, Any]:
    """Run code. A refusal is `{"refused": reason}`."""
    try:
        code, files, seconds = read_event(event)
    except ValueError as error:
        return {"refused": str(error)}
    # Lambda's machine runs nothing else. A shared one needs namespaces, and runs no code without.
    isolated = bool(os.environ.get("SANDBOX_NAMESPACES"))
    if isolated and not is_available():
        return {"refused": NOT_AVAILABLE}
    left = context.get_remaining_time_in_millis() / 1000 - MARGIN_SECONDS
    memory = int(int(context.memory_limit_in_mb) * 1024 * 1024 * MEMORY_SHARE)
    return dataclasses.asdict(execute(code, files, Limits(min(seconds, left), memory), isolated=isolated))


def read_event(event: Any) -> tuple[str, dict[str, bytes], float]:
    """Return the code, the files and the seconds of an event. Raises ValueError."""
    if not isinstance(event, Mapping) or not isinstance(event.get("code"), str):
        raise ValueError("The event has no code.")
    if len(event["code"].encode("utf-8", "replace")) > LONGEST_CODE:
        raise ValueError(f"The code has more than {LONGEST_CODE} bytes.")
    given = event.get("files") or []
    if not isinstance(given, list) or len(given) > MOST_FILES:
        raise ValueError(f"files is not a list of up to {MOST_FILES} files.")
    files = dict(read_file(each) for each in given)
    seconds = event.get("seconds", 30)
    if not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST_SECONDS:
        raise ValueError(f"seconds is not a number up to {LONGEST_SECONDS}.")
    return event["code"], files, float(seconds)


def read_file(entry: Any) -> tuple[str, bytes]:
    """Return the name and the content of a file. Raises ValueError."""
    name = entry.get("name") if isinstance(entry, Mapping) else None
    if not isinstance(name, str) or not FILE_NAME.fullmatch(name) or not is_plain(name):
        raise ValueError(
            "A file has no name, or one with a slash or a control character, that begins with a dot or is too long."
        )
    try:
        return name, base64.b64decode(str(entry.get("content")), validate=True)
    except binascii.Error:
        raise ValueError(f"The content of the file {name} is not base64.") from None
