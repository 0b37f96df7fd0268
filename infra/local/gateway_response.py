"""Gateway responses: the responses that API Gateway generates itself.

https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from infra.local.proxy_event import HttpRequest
from infra.local.proxy_response import Head
from infra.local.system import GatewayResponse


@dataclass(frozen=True)
class Refusal:
    """A gateway response: its type, and its status and message, which the template may override."""

    type: str
    status: int
    message: str | None


class Refused(Exception):
    """API Gateway itself responds, not the function; `reason` is for the log only."""

    def __init__(self, refusal: Refusal, reason: str = "") -> None:
        super().__init__(reason)
        self.refusal = refusal
        self.reason = reason


NO_ROUTE = Refusal("MISSING_AUTHENTICATION_TOKEN", 403, "Missing Authentication Token")
FORBIDDEN = Refusal("WAF_FILTERED", 403, "Forbidden")
UNAUTHORIZED = Refusal("UNAUTHORIZED", 401, "Unauthorized")
DENIED = Refusal("ACCESS_DENIED", 403, "User is not authorized to access this resource")
EXPLICITLY_DENIED = Refusal("ACCESS_DENIED", 403, f"{DENIED.message} with an explicit deny")
# A failed authorizer has no message. The types are those of AWS's description; some users report the second one for
# every failure: https://dev.to/marcogrcr/api-gateway-lambda-authorizer-lambda-proxy-integration-failure-modes-52bc
AUTHORIZER_FAILED = Refusal("AUTHORIZER_FAILURE", 500, None)
INVALID_AUTHORIZER = Refusal("AUTHORIZER_CONFIGURATION_ERROR", 500, None)
TOO_LARGE = Refusal("REQUEST_TOO_LARGE", 413, "Request Too Long")
THROTTLED = Refusal("THROTTLED", 429, "Too Many Requests")
MALFORMED = Refusal("DEFAULT_5XX", 502, "Internal server error")
TIMED_OUT = Refusal("INTEGRATION_TIMEOUT", 504, "Endpoint request timed out")

_VARIABLE = re.compile(r"\$context\.([A-Za-z.]+[A-Za-z])")


def render(refusal: Refusal, request: HttpRequest, responses: Mapping[str, GatewayResponse]) -> tuple[Head, bytes]:
    """Return the head and the body of a refusal.

    They come from the template's response of this type, or else from its DEFAULT_4XX or DEFAULT_5XX.
    """
    default = GatewayResponse(None, {}, '{"message": $context.error.messageString}')
    group = "DEFAULT_4XX" if refusal.status < 500 else "DEFAULT_5XX"
    response = responses.get(refusal.type) or responses.get(group) or default
    context = {
        "error.message": refusal.message or "",
        "error.messageString": json.dumps(refusal.message),
        "error.responseType": refusal.type,
        "httpMethod": request.method,
        "path": request.base_path + request.path,
        "requestId": request.request_id,
    }
    body = _VARIABLE.sub(lambda match: context.get(match[1], ""), response.template or default.template)
    headers = [*response.headers.items(), ("content-type", "application/json")]
    return Head(response.status or refusal.status, headers), body.encode()
