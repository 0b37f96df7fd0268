"""Function that records its events, and does what the first word of a message or of an event's detail requests."""

import json
import os
import time
from pathlib import Path
from typing import Any


def handler(event: dict[str, Any], context: Any) -> Any:
    if "Records" not in event:
        note(event["detail"]["name"], event)
        return act(event["detail"]["do"], 0)
    for record in event["Records"]:
        note(record["body"], record)
    for record in event["Records"]:
        act(record["body"].split()[0], int(record["attributes"]["ApproximateReceiveCount"]))
    failed = [record["messageId"] for record in event["Records"] if record["body"].startswith("fail")]
    return {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}


def note(name: str, content: dict[str, Any]) -> None:
    with (Path(os.environ["STINT_MARK_FOLDER"]) / name).open("a") as file:
        file.write(json.dumps(content) + "\n")


def act(what: str, received: int) -> None:
    if what == "raise":
        raise RuntimeError("told to fail")
    if what == "dawdle" and received == 1:
        time.sleep(20)
