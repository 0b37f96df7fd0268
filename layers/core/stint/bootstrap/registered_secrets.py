"""Reading of the secrets that registrations name."""

from functools import lru_cache

from stint.domain.errors import ModelUnauthorized, ToolUnavailable
from stint.providers.api_key import ApiKey

MOST_SECRETS = 256


@lru_cache(MOST_SECRETS)
def make_key(arn: str, name: str) -> ApiKey:
    """Return the cached value of a secret, which is read again after five minutes."""
    return ApiKey(secret_arn=arn, name=name)


async def read_registered_secret(arn: str, name: str) -> str:
    """Return the value of a secret. Raises ToolUnavailable if it cannot be read, or is empty."""
    try:
        value = await make_key(arn, name).read()
    except ModelUnauthorized:
        value = None
    if not value:
        secret = arn.rpartition(":")[2] + (f"#{name}" if name else "")
        raise ToolUnavailable(
            f"The secret {secret!r} of the toolgroup could not be read. Check its name, and the parameter "
            "ToolgroupSecretArns."
        )
    return value
