"""The key of a model provider."""

import json
from dataclasses import dataclass

from stint.domain.errors import ModelUnauthorized
from stint.domain.known_secrets import remember

MAX_AGE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key in plain text or in Secrets Manager, as a string or as JSON with the key under its `name`.

    A call returns the key. A secret is read again after five minutes, so that it can be rotated.
    """

    value: str = ""
    secret_arn: str = ""
    name: str = "OPENAI_API_KEY"

    def __call__(self) -> str | None:
        key = self.value if self.value or not self.secret_arn else pick_key(read_secret(self.secret_arn), self.name)
        remember({key}, in_models_text=False)
        return key or None


def read_secret(secret_arn: str) -> str:
    """Read a secret through Powertools' cache. Raises ModelUnauthorized if it cannot be read."""
    from aws_lambda_powertools.utilities.parameters import get_secret  # noqa: PLC0415 - costs a cold start 30 ms
    from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError  # noqa: PLC0415

    try:
        return str(get_secret(secret_arn, max_age=MAX_AGE_SECONDS))
    except GetParameterError as error:
        raise ModelUnauthorized(
            "The model's API key could not be read from Secrets Manager. Check the parameter OpenAiSecretArn and the "
            "function's permission to read it."
        ) from error


def pick_key(secret: str, name: str) -> str:
    """Return the key in a secret."""
    try:
        document = json.loads(secret)
    except ValueError:
        return secret.strip()
    return str(document.get(name, "")) if isinstance(document, dict) else secret.strip()
