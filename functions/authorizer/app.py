"""The authorizer of the API: finds the principal of the header Authorization, and passes it to all functions.

https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-use-lambda-authorizer.html
"""

import asyncio
from collections.abc import Mapping
from contextvars import copy_context
from functools import cache
from typing import Any

from stint.bootstrap.access import AccessComposition
from stint.bootstrap.restore import start
from stint.domain.credentials import AccessRefused, InvalidCredential
from stint.domain.principals import Principal
from stint.log_keys import add_log_keys
from stint.observability import Observation, make_logger
from stint.settings import load_settings

composition = AccessComposition(load_settings)
start(composition)

UNAUTHORIZED = "Unauthorized"
"""The message of an error that API Gateway answers with 401. It answers any other one with 500."""


def handler(event: Any, context: Any) -> dict[str, Any]:
    """Return a policy for the whole stage: API Gateway caches it for the credential, whatever route is next."""
    observation = Observation(context.aws_request_id, "authorizer")
    stage, status = stage_of(event["methodArn"]), 500
    try:
        principal = run_authentication(header_of(event))
        add_log_keys(tenant=principal.tenant, subject=principal.subject, key_id=principal.key_id or None)
        status = 200
        return policy("Allow", stage, principal.subject, principal)
    except InvalidCredential as error:
        status = 401
        add_log_keys(reason=str(error))
        # The reason is logged and not answered: it would help to guess.
        raise Exception(UNAUTHORIZED) from None
    except AccessRefused as error:
        status = 403
        add_log_keys(reason=str(error))
        return policy("Deny", stage, "refused")
    except Exception:
        make_logger().exception("The credential cannot be checked")
        raise
    finally:
        observation.finish_request("AUTHORIZE", "/", status)


def header_of(event: Mapping[str, Any]) -> str:
    """Return the only value of the header. The case of its name is that of the client. Raises InvalidCredential."""
    sent = event.get("multiValueHeaders") or {name: [value] for name, value in (event.get("headers") or {}).items()}
    values = [value for name, found in sent.items() if name.lower() == "authorization" for value in found]
    if len(values) != 1:
        raise InvalidCredential(f"The request has {len(values)} headers Authorization. Send one.")
    return str(values[0])


def stage_of(method_arn: str) -> str:
    """Return the ARN of all methods of a stage: `arn:aws:execute-api:region:account:api/stage/*/*`."""
    api, stage, _ = method_arn.split("/", 2)
    return f"{api}/{stage}/*/*"


def policy(effect: str, resource: str, principal_id: str, principal: Principal | None = None) -> dict[str, Any]:
    """Return the answer of an authorizer. API Gateway passes `context` to the functions."""
    statement = {"Effect": effect, "Action": "execute-api:Invoke", "Resource": resource}
    return {
        "principalId": principal_id,
        "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        "context": principal.to_context() if principal else {},
    }


def run_authentication(header: str) -> Principal:
    """Authenticate in the single event loop of the process, to which connections belong."""
    return make_runner().run(composition.authentication.authenticate(header), context=copy_context())


@cache
def make_runner() -> asyncio.Runner:
    return asyncio.Runner()
