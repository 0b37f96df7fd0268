"""The Lambda event of an SQS queue's messages, and the partial batch response.

https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html and services-sqs-errorhandling.html
"""

import json
from base64 import b64encode
from typing import Any

Message = dict[str, Any]


def queue_event(messages: list[Message], queue_arn: str) -> bytes:
    """Return the event with the received messages."""
    return json.dumps({"Records": [record(message, queue_arn) for message in messages]}, ensure_ascii=False).encode()


def record(message: Message, queue_arn: str) -> dict[str, Any]:
    attributes = {name: attribute(value) for name, value in message.get("MessageAttributes", {}).items()}
    digest = {"md5OfMessageAttributes": message["MD5OfMessageAttributes"]} if attributes else {}
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": attributes,
        **digest,
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": queue_arn.split(":")[3],
    }


def attribute(value: dict[str, Any]) -> dict[str, Any]:
    """Return a message attribute; binary values are encoded in base64."""
    held = {"stringValue": value["StringValue"]} if "StringValue" in value else {}
    if "BinaryValue" in value:
        held = {"binaryValue": b64encode(value["BinaryValue"]).decode()}
    return held | {"stringListValues": [], "binaryListValues": [], "dataType": value["DataType"]}


def failed_messages(answer: bytes, messages: list[Message]) -> list[Message]:
    """Return the messages that failed according to a partial batch response.

    If the response is malformed or names an unknown message, all messages failed.
    """
    try:
        failures = (json.loads(answer) or {}).get("batchItemFailures") or []
        named = {failure["itemIdentifier"] for failure in failures}
    except (ValueError, AttributeError, TypeError, KeyError):
        return messages
    known = {message["MessageId"]: message for message in messages}
    return [known[name] for name in named] if named <= known.keys() else messages
