"""Answers of ApplyGuardrail as violations and errors."""

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ReadTimeoutError,
)

from stint.domain.errors import ShieldFailed
from stint.domain.steps import SafetyViolation
from stint.providers.bedrock.errors import CREDENTIALS, message_of
from stint.providers.refusals import shorten
from stint.shields.port import REFUSAL

POLICIES = {
    "topicPolicy": ("topics",),
    "contentPolicy": ("filters",),
    "wordPolicy": ("customWords", "managedWordLists"),
    "sensitiveInformationPolicy": ("piiEntities", "regexes"),
    "contextualGroundingPolicy": ("filters",),
}
HINTS = {
    "AccessDeniedException": (
        "allow bedrock:ApplyGuardrail on this guardrail (in a deployed stack: the parameter GuardrailArns)"
    ),
    "ResourceNotFoundException": "check the guardrail's id, its version and the region",
    "ThrottlingException": "try again later, or raise the quota of text units per second",
    "ServiceQuotaExceededException": "try again later, or raise the quota",
    "ExpiredTokenException": CREDENTIALS,
    "InvalidSignatureException": CREDENTIALS,
    "UnrecognizedClientException": CREDENTIALS,
}


def read_answer(answer: Mapping[str, Any], shield_id: str) -> SafetyViolation | None:
    """Read an answer. The outputs' text is the guardrail's message, or the input with parts masked.

    Raises:
        ShieldFailed: the answer has no known action.
    """
    action = answer.get("action")
    if action == "NONE":
        return None
    # An action that does not exist today is no pass.
    if action != "GUARDRAIL_INTERVENED":
        raise ShieldFailed(f"Shield {shield_id!r} returned no verdict: Bedrock responded with the action {action!r}.")
    assessments = list(dict.fromkeys(summarize(answer)))
    metadata = {"violation_type": assessments[0] if assessments else "guardrail", "assessments": assessments}
    text = "\n".join(output.get("text", "") for output in answer.get("outputs", []))
    return SafetyViolation(violation_level="error", user_message=text or REFUSAL, metadata=metadata)


def summarize(answer: Mapping[str, Any]) -> Iterator[str]:
    """Return the matched rules as `policy:name:action`, without the words that matched."""
    for assessment in answer.get("assessments", []):
        for policy, lists in POLICIES.items():
            for finding in (entry for name in lists for entry in assessment.get(policy, {}).get(name, [])):
                if finding.get("action", "NONE") != "NONE":
                    name = finding.get("name") or finding.get("type") or "custom word"
                    yield f"{policy}:{name}:{finding['action']}"


def explain(error: Exception, shield_id: str) -> str:
    """Return an error that says why a guardrail failed, and what to do."""
    return f"Shield {shield_id!r} returned no verdict: {_reason(error)}"


def _reason(error: Exception) -> str:
    match error:
        case ClientError():
            code = str(error.response.get("Error", {}).get("Code", ""))
            hint = HINTS.get(code)
            return f"Bedrock answered {code}: {message_of(error)}{f' ({hint})' if hint else ''}"
        case NoCredentialsError():
            return "Bedrock cannot be called without AWS credentials: configure them"
        case NoRegionError():
            return "Bedrock cannot be called without a region: set AWS_DEFAULT_REGION"
        case ReadTimeoutError():
            return "Bedrock sent nothing for too long"
        case EndpointConnectionError() | ConnectTimeoutError():
            return f"cannot reach Bedrock: {error} (check the region and AWS_ENDPOINT_URL_BEDROCK_RUNTIME)"
        case _:
            return f"Bedrock cannot be called: {shorten(str(error))}"
