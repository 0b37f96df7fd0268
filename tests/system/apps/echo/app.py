"""Function that returns the event, or exactly the response in the request's body."""

import json
import time
from typing import Any


def handler(event: dict[str, Any], context: object) -> Any:
    if event["resource"] == "/answer":
        answer = json.loads(event["body"])
        if answer == "raise":
            raise RuntimeError("told to fail")
        return answer
    if event["resource"] in ("/slow", "/busy"):
        time.sleep(1)
    return {"statusCode": 200, "body": json.dumps(event)}
