"""Fake Bedrock runtime that applies guardrails. It validates requests strictly, and its responses can be scripted.

Without a script, it intervenes if a text contains `bomb`, and masks `ada@example.com`.
"""

import json
import re
from typing import Any

from tests.servers.converse_stream import error
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

PATH = re.compile(r"/guardrail/([^/]+)/version/([1-9][0-9]{0,7}|DRAFT)/apply")
REFUSAL = "Sorry, the guardrail does not allow that."
USAGE = dict.fromkeys(
    (
        "topicPolicyUnits",
        "contentPolicyUnits",
        "wordPolicyUnits",
        "sensitiveInformationPolicyUnits",
        "sensitiveInformationPolicyFreeUnits",
        "contextualGroundingPolicyUnits",
    ),
    1,
)
MOST_CHARACTERS = 25_000


class GuardrailsServer(ScriptedHTTPServer):
    """Server of `POST /guardrail/{id}/version/{version}/apply`."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(answer, port)


def answer(received: Received) -> Reply:
    if received.method != "POST" or PATH.fullmatch(received.path) is None:
        return error(404, "UnknownOperationException", received.path)
    body = received.json()
    texts = [block["text"]["text"] for block in body["content"]]
    if body["source"] not in ("INPUT", "OUTPUT") or not all(text.strip() for text in texts):
        return error(400, "ValidationException", "The text field in the content is blank.")
    if sum(map(len, texts)) > MOST_CHARACTERS:
        return error(400, "ValidationException", "The input is too long: at most 25 text units.")
    text = "\n".join(texts)
    if "bomb" in text:
        return intervene(REFUSAL, contentPolicy={"filters": [finding("VIOLENCE", "BLOCKED", confidence="HIGH")]})
    masked = text.replace("ada@example.com", "{EMAIL}")
    if masked != text:
        entities = [finding("EMAIL", "ANONYMIZED", match="ada@example.com")]
        return intervene(masked, sensitiveInformationPolicy={"piiEntities": entities, "regexes": []})
    return document({"action": "NONE", "usage": USAGE, "outputs": [], "assessments": [{}]})


def finding(kind: str, action: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "action": action, "detected": True, **more}


def intervene(text: str, **assessment: Any) -> Reply:
    outputs = [{"text": text}]
    assessments = [assessment]
    return document({"action": "GUARDRAIL_INTERVENED", "usage": USAGE, "outputs": outputs, "assessments": assessments})


def document(body: Any) -> Reply:
    return Reply((json.dumps(body).encode(),))
