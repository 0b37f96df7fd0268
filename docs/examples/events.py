"""Request a response by an event on the local event bus, and wait for its completion event. Run it beside `make run`:

.venv/bin/python docs/examples/events.py http://127.0.0.1:8321 [STATE, the folder of `make run`: .stint]
"""

import json
import os
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from infra.local.state import State

BUS = "stint"
QUEUE, RULE = "example-ends", "example-ends"
REQUEST = {"model": "scripted/demo", "input": "say: Order 7 was paid.", "metadata": {"order": "7"}}


def hear(sqs: Any, events: Any) -> str:
    """Create a queue that receives every completion event, and return its URL."""
    url = str(sqs.create_queue(QueueName=QUEUE)["QueueUrl"])
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    events.put_rule(Name=RULE, EventBusName=BUS, EventPattern=json.dumps({"source": ["stint"]}))
    events.put_targets(Rule=RULE, EventBusName=BUS, Targets=[{"Id": "queue", "Arn": arn}])
    return url


def wait_for_completion(sqs: Any, url: str) -> dict[str, Any]:
    """Wait for the next completion event, and return it."""
    while True:
        for message in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages", []):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            end: dict[str, Any] = json.loads(message["Body"])
            return end


def main() -> None:
    base = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8321"
    folder = sys.argv[2] if len(sys.argv) > 2 else ".stint"
    engine = State(Path(folder)).published_engine()
    if engine is None:
        sys.exit(f"No `make run` has the state {folder}. Start it, or add its STATE to this command.")
    sqs, events = engine.client("sqs"), engine.client("events")
    url = hear(sqs, events)
    began = time.monotonic()
    entry = {"Source": "shop", "DetailType": "Stint Response Requested", "Detail": json.dumps(REQUEST)}
    events.put_events(Entries=[entry | {"EventBusName": BUS}])
    end = wait_for_completion(sqs, url)
    print(f"{end['detail-type']} after {time.monotonic() - began:.1f} s: {end['detail']['status']}")
    key = {"Authorization": f"Bearer {os.environ.get('STINT_API_KEY', '')}"}  # which `make run` ignores without AUTH=on
    request = urllib.request.Request(f"{base}/v1/responses/{end['detail']['response_id']}", headers=key)  # noqa: S310
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        response = json.load(answer)
    print("metadata:", response["metadata"])
    print("answer:", response["output"][0]["content"][0]["text"])


if __name__ == "__main__":
    main()
