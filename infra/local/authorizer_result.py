"""The result of a Lambda authorizer: a principal, an IAM policy, and a context for the function.

https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-lambda-authorizer-output.html
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

_ACTION = "execute-api:Invoke"
_STATEMENT = {"Action", "Effect", "Resource", "Sid"}
# API Gateway accepts no longer resource in the policy.
_RESOURCE = 512


class MalformedResult(ValueError):
    """The result is not what API Gateway or the local cloud accepts."""


@dataclass(frozen=True)
class Statement:
    """A statement of the policy, with the resources whose invocation it allows or denies."""

    allows: bool
    resources: tuple[str, ...]

    @classmethod
    def parse(cls, value: object) -> Self:
        if not isinstance(value, dict) or value.get("Effect") not in ("Allow", "Deny"):
            raise MalformedResult(f"no statement with the effect Allow or Deny: {value}")
        if unknown := sorted(set(value) - _STATEMENT):
            raise MalformedResult(f"the local cloud does not support {', '.join(unknown)} in a statement")
        invokes = any(matches(action, _ACTION, re.IGNORECASE) for action in texts(value.get("Action")))
        resources = texts(value.get("Resource"))
        if any(len(resource) > _RESOURCE for resource in resources):
            raise MalformedResult(f"a resource has more than {_RESOURCE} characters")
        return cls(value["Effect"] == "Allow", resources if invokes else ())

    def covers(self, method_arn: str) -> bool:
        return any(matches(resource, method_arn) for resource in self.resources)


@dataclass(frozen=True)
class AuthorizerResult:
    """A valid result. `context` has strings only, as the function gets them."""

    principal_id: str
    statements: tuple[Statement, ...]
    context: Mapping[str, str]

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """Read the response of an authorizer. Raises MalformedResult."""
        try:
            result = json.loads(payload)
            policy, principal_id, context = result["policyDocument"], result["principalId"], result.get("context") or {}
            statements = policy["Statement"]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise MalformedResult("principalId or policyDocument.Statement is missing") from error
        if not isinstance(principal_id, str) or not isinstance(context, dict):
            raise MalformedResult("principalId is not a string, or context not an object")
        entries = statements if isinstance(statements, list) else [statements]
        texts_of_context = {name: scalar_text(name, value) for name, value in context.items()}
        return cls(principal_id, tuple(map(Statement.parse, entries)), texts_of_context)

    def denies(self, method_arn: str) -> bool:
        return any(not statement.allows and statement.covers(method_arn) for statement in self.statements)

    def allows(self, method_arn: str) -> bool:
        return any(statement.allows and statement.covers(method_arn) for statement in self.statements)


def scalar_text(name: str, value: Any) -> str:
    """Return a context value as the function gets it. Raises MalformedResult for an object, a list or null."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise MalformedResult(f"context.{name} is not a string, a number or a boolean")


def texts(value: object) -> tuple[str, ...]:
    """Return a string or a list of strings as a tuple. Raises MalformedResult."""
    values = tuple(value) if isinstance(value, list) else (value,)
    strings = tuple(each for each in values if isinstance(each, str))
    if len(strings) < len(values):
        raise MalformedResult(f"no string, and no list of strings: {value}")
    return strings


def matches(pattern: str, text: str, flags: re.RegexFlag = re.NOFLAG) -> bool:
    """Return whether an IAM pattern, whose wildcards are * and ?, matches the whole text."""
    parts = ({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch("".join(parts), text, flags | re.DOTALL) is not None
