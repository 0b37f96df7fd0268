"""Lambda functions for use as tools."""

import time
from typing import Any


def handler(event: dict[str, Any], context: Any) -> Any:
    match event.get("do"):
        case "echo":
            return event
        case "text":
            return "just text"
        case "nothing":
            return None
        case "context":
            return context.client_context.custom if context.client_context else None
        case "attach":
            uri = {"uri": "https://files.example/r.csv"}
            return {"content": "see the file", "attachments": [{"content": uri, "mime_type": "text/csv"}]}
        case "fail":
            raise ValueError("no such order")
        case "sleep":
            time.sleep(event["seconds"])
            return "slept"
        case "die":
            raise SystemExit(3)
        case _:
            return {"unknown": True}
