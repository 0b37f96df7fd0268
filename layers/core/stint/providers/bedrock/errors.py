"""Conversion of boto3's exceptions to model errors.

boto3 raises errors of four layers: the service's refusals (ClientError), its own (BotoCoreError), urllib3's while a
stream is read, and those of its parser for damaged events. The callers of a model need to know something else: whose
fault it is, and whether a later attempt may succeed.

    the caller's         InvalidRequest with the field, ContextLengthExceeded
    the operator's       ModelUnauthorized, ModelUnreachable, with the setting to check
    nobody's, for now    RateLimited, ModelOverloaded, with the time to wait
    the service's        ModelError

Bedrock has one code for most refusals (ValidationException), so the field is found in the words of the message. These
are not documented and change: a message that nothing recognizes is still an error with its text.
"""

import re
from typing import Any

from botocore.eventstream import ParserError
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    ReadTimeoutError,
)
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError
from urllib3.exceptions import ReadTimeoutError as StreamTimeoutError

from stint.domain.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    ModelError,
    ModelOverloaded,
    ModelUnauthorized,
    ModelUnreachable,
    RateLimited,
    StintError,
)
from stint.providers.refusals import REFUSED_STATUSES, find_field, is_about_length, parse_retry_after, shorten

# The last three come from events that are damaged or not in the documented form.
ERRORS = (ClientError, BotoCoreError, HTTPError, OSError, ParserError, ResponseParserError, LookupError)
MALFORMED = (AttributeError, TypeError, ValueError, RecursionError)
"""Errors of boto3's parser, and of the reader of its events, for fields of wrong types and for deep JSON."""

THROTTLED = frozenset({"throttlingexception", "toomanyrequestsexception"})
OVERLOADED = frozenset({"serviceunavailableexception", "modelnotreadyexception"})
NOT_FOUND = "resourcenotfoundexception"
ACCESS_DENIED = "accessdeniedexception"
TIER = re.compile(r"service[ _-]?tier|\b(?:flex|priority)\W{1,3}tier\b|\btier\W{1,3}(?:flex|priority)\b", re.IGNORECASE)
CREDENTIALS = "check the AWS credentials"
HINTS = {
    ACCESS_DENIED: (
        "allow bedrock:InvokeModel, bedrock:InvokeModelWithResponseStream and bedrock:CountTokens on this model (in a "
        "deployed stack: the parameter ModelArns), and enable it in the region"
    ),
    NOT_FOUND: "check the model id and the region",
    "expiredtokenexception": CREDENTIALS,
    "invalidsignatureexception": CREDENTIALS,
    "unrecognizedclientexception": CREDENTIALS,
}


def explain(error: Exception, parameters: dict[str, Any]) -> StintError:
    """Convert an exception of a call with these parameters."""
    match error:
        case ClientError():
            return _explain_refusal(error, parameters)
        case ParamValidationError():
            words = shorten(str(error))
            return InvalidRequest(f"Bedrock's Converse does not support this request: {words}", param=find_field(words))
        case NoCredentialsError():
            return ModelUnauthorized("Bedrock cannot be called without AWS credentials: configure them")
        case NoRegionError():
            return ModelUnreachable("Bedrock cannot be called without a region: set AWS_DEFAULT_REGION")
        case EndpointConnectionError() | ConnectTimeoutError():
            return ModelUnreachable(
                f"Cannot reach Bedrock: {error} (check the region and AWS_ENDPOINT_URL_BEDROCK_RUNTIME)"
            )
        case ReadTimeoutError() | StreamTimeoutError():
            return ModelError("Bedrock sent nothing for too long")
        case BotoCoreError():
            return ModelError(f"Bedrock cannot be called: {shorten(str(error))}")
        case ParserError() | ResponseParserError() | LookupError() | TypeError() | AttributeError() | RecursionError():
            return ModelError(f"Bedrock sent an event that cannot be read ({type(error).__name__})")
        case ValueError():
            return ModelError(f"Bedrock sent an event that cannot be read ({type(error).__name__})")
        case _:
            return ModelError(f"Bedrock's answer was interrupted ({type(error).__name__})")


def message_of(error: ClientError) -> str:
    """Return the service's own message."""
    return shorten(str(error.response.get("Error", {}).get("Message") or "no message"))


def is_about_tier(message: str) -> bool:
    """Return whether Bedrock's message is about the service tier of a request."""
    return TIER.search(message) is not None


def _explain_refusal(error: ClientError, parameters: dict[str, Any]) -> StintError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    kind = code.lower()
    metadata = error.response.get("ResponseMetadata", {})
    status = metadata.get("HTTPStatusCode")
    unauthorized = status in (401, 403) or HINTS.get(kind) == CREDENTIALS
    hint = HINTS.get(kind, CREDENTIALS if unauthorized else "")
    # The answer to refused credentials contains the signed request, including its session token.
    told = "" if unauthorized and kind != ACCESS_DENIED else f": {message_of(error)}"
    message = f"Bedrock answered {code or status}{told}{f' ({hint})' if hint else ''}"
    if kind in THROTTLED | OVERLOADED:
        kind_of_error = RateLimited if kind in THROTTLED else ModelOverloaded
        retry_after = parse_retry_after(metadata.get("HTTPHeaders", {}).get("retry-after"))
        return kind_of_error(message, upstream_status=status, retry_after=retry_after)
    if unauthorized:
        return ModelUnauthorized(message, upstream_status=status)
    if kind in ("validationexception", NOT_FOUND) or status in REFUSED_STATUSES:
        return _explain_request(message, kind, status, parameters)
    return ModelError(message, upstream_status=status)


def _explain_request(message: str, kind: str, status: int | None, parameters: dict[str, Any]) -> StintError:
    if is_about_length(message):
        return ContextLengthExceeded(message, param="messages", upstream_status=status)
    if "serviceTier" in parameters and is_about_tier(message):
        model, tier = parameters["modelId"], parameters["serviceTier"]["type"]
        told = f"{message} (model {model!r} does not offer the service tier {tier!r} here: choose another one)"
        return InvalidRequest(told, param="service_tier")
    if "additionalModelRequestFields" in parameters and re.search(
        r"thinking\.|budget_tokens|reasoning|effort", message
    ):
        return InvalidRequest(f"{message} (this model does not support this reasoning)", param="reasoning.effort")
    if "additionalModelRequestFields" in parameters and re.search(r"top_?k|\[k\]", message, re.IGNORECASE):
        return InvalidRequest(f"{message} (this model does not support top_k)", param="sampling_params")
    unknown = kind == NOT_FOUND or "model identifier is invalid" in message
    param = "model" if unknown else find_field(message)
    return InvalidRequest(message, code="model_not_found" if unknown else None, param=param)
