"""The record that Lambda sends to a failure destination after the last attempt of an event.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

import json
from datetime import UTC, datetime
from typing import Any

from infra.local.invocation import Invocation


def failure_record(invocation: Invocation, arn: str, attempts: int) -> str:
    """Return the record of an event, from the invocation of its last attempt."""
    payload = invocation.error.payload if invocation.error else b"null"
    context: dict[str, Any] = {"requestId": invocation.request_id, "functionArn": f"{arn}:$LATEST"}
    context |= {"condition": "RetriesExhausted", "approximateInvokeCount": attempts}
    return json.dumps(
        {
            "version": "1.0",
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "requestContext": context,
            "requestPayload": json.loads(invocation.event),
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
            "responsePayload": json.loads(payload),
        }
    )
