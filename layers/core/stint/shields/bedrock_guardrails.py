"""Amazon Bedrock's guardrails, through ApplyGuardrail. No model is called.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ApplyGuardrail.html
"""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ReadTimeoutError,
)

from stint.domain.errors import InvalidRequest, ShieldFailed
from stint.domain.inference import ModelMessage
from stint.domain.steps import SafetyViolation
from stint.providers.bedrock.errors import CREDENTIALS, message_of
from stint.providers.refusals import shorten
from stint.shields.port import REFUSAL, Shield, Touchpoint
from stint.shields.texts import format_message, last_messages

if TYPE_CHECKING:
    from mypy_boto3_bedrock_runtime import BedrockRuntimeClient

GUARDRAIL = re.compile(
    r"(?P<id>[a-z0-9]+|arn:aws[^:]*:bedrock:[a-z0-9-]+:\d{12}:guardrail/[a-z0-9]+)(?::(?P<version>\w+))?"
)
VERSION = re.compile(r"[1-9][0-9]{0,7}|DRAFT")
SOURCES = {"user-input": "INPUT", "assistant-output": "OUTPUT"}
PIECE = 20_000
"""Characters of one request. The default quota is 25 text units of 1,000 characters."""
OVERLAP = 500
STALL_SECONDS = 15.0

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


class BedrockGuardrails:
    """Applies the guardrail that `provider_shield_id` names: its id or ARN, with `:VERSION` or a version in the params.

    Long texts are checked in pieces of 20,000 characters that overlap by 500, until one is blocked. Only texts are
    checked: an image becomes a note in the text. The client is made when first used.
    """

    asks_model = False

    def __init__(self, client: "Callable[[], BedrockRuntimeClient]") -> None:
        self._make_client = client
        self._made_client: BedrockRuntimeClient | None = None
        self._lock = threading.Lock()

    def validate(self, shield: Shield) -> None:
        """Check a shield's registration; see the port."""
        guardrail_of(shield)

    async def check(
        self, shield: Shield, messages: Sequence[ModelMessage], touchpoint: Touchpoint
    ) -> SafetyViolation | None:
        """Check the last messages; see the port."""
        try:
            guardrail, version = guardrail_of(shield)
        except InvalidRequest as error:
            raise ShieldFailed(error.message) from error
        text = "\n\n".join(format_message(message) for message in last_messages(messages))
        # One after the other: most texts are one piece, and a blocked piece saves the price of those after it.
        for piece in pieces(text):
            answer = await asyncio.to_thread(self._apply, shield, guardrail, version, SOURCES[touchpoint], piece)
            if violation := read_answer(answer, shield.shield_id):
                return violation
        return None

    def _apply(self, shield: Shield, guardrail: str, version: str, source: Any, text: str) -> Any:
        try:
            return self._client().apply_guardrail(
                guardrailIdentifier=guardrail,
                guardrailVersion=version,
                source=source,
                content=[{"text": {"text": text}}],
            )
        except (ClientError, BotoCoreError) as error:
            raise ShieldFailed(explain(error, shield.shield_id)) from error

    def _client(self) -> "BedrockRuntimeClient":
        with self._lock:
            if self._made_client is None:
                self._made_client = self._make_client()
            return self._made_client


def guardrail_of(shield: Shield) -> tuple[str, str]:
    """Return a guardrail's id or ARN, and its version: from the params, from the id, or DRAFT.

    Raises:
        InvalidRequest: one of them does not have the documented form.
    """
    found = GUARDRAIL.fullmatch(shield.provider_shield_id)
    if found is None:
        raise InvalidRequest(
            f"Shield {shield.shield_id!r}: {shield.provider_shield_id!r} is neither the id nor the ARN of a guardrail, "
            "with or without :VERSION.",
            param="provider_shield_id",
        )
    given = shield.params.get("guardrailVersion") or shield.params.get("guardrail_version")
    version = str(given or found["version"] or "DRAFT")
    if VERSION.fullmatch(version) is None:
        raise InvalidRequest(
            f"Shield {shield.shield_id!r}: the guardrail's version must be a number or DRAFT, not {version!r}.",
            param="params.guardrailVersion",
        )
    return found["id"], version


def pieces(text: str) -> Iterator[str]:
    """Cut a text into overlapping pieces, without blank ones, which Bedrock refuses."""
    # A phrase at a cut is whole in one of both pieces, if it has at most OVERLAP characters.
    for start in range(0, max(len(text) - OVERLAP, 1), PIECE - OVERLAP):
        piece = text[start : start + PIECE]
        if piece.strip():
            yield piece


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
