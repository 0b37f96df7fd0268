"""The key of a model provider."""

import asyncio
import json
import time

from stint.dataclasses import dataclass, field
from stint.domain.errors import ModelUnauthorized
from stint.domain.known_secrets import remember_own

MAX_AGE_SECONDS = 300


@dataclass(slots=True)
class ApiKey:
    """A key in plain text or in Secrets Manager, as a string or as JSON with the key under its `name`.

    A secret is read again after five minutes, so that it can be rotated.
    """

    value: str = ""
    """The key in plain text, which comes before the secret."""
    secret_arn: str = ""
    name: str = "OPENAI_API_KEY"
    """The name of the key in a secret that is JSON."""
    setting: str = "the parameter OpenAiSecretArn"
    """The setting that an error names."""
    _secret: str | None = field(default=None, repr=False)
    """The secret as it was read; None before."""
    _expires: float = 0.0
    """The wall clock's time at which the secret is read again."""
    _fetch: "asyncio.Task[str] | None" = field(default=None, repr=False)
    """The last fetch, perhaps of another event loop."""

    def __call__(self) -> str | None:
        """Return the key. This may block; see `read`."""
        is_plain = bool(self.value) or not self.secret_arn
        return self._pick(self.value if is_plain else read_secret(self.secret_arn, setting=self.setting))

    async def read(self) -> str | None:
        """Return the key. A secret is fetched in a thread, once for all callers that wait for it.

        Raises:
            ModelUnauthorized: the secret cannot be read.
        """
        if self.value or not self.secret_arn:
            return self._pick(self.value)
        if self._secret is None or time.time() >= self._expires:
            await self._fetch_once()
        return self._pick(self._secret or "")

    async def _fetch_once(self) -> None:
        """Wait for the fetch of this event loop, or start it. It continues if one of its callers leaves."""
        fetch = self._fetch
        if fetch is None or fetch.done() or fetch.get_loop() is not asyncio.get_running_loop():
            reading = asyncio.to_thread(read_secret, self.secret_arn, force_fetch=True, setting=self.setting)
            fetch = self._fetch = asyncio.create_task(reading)
        # Shielded: the fetch is shared, and one caller that is cancelled must not end it for the others.
        self._secret = await asyncio.shield(fetch)
        self._expires = time.time() + MAX_AGE_SECONDS

    def _pick(self, secret: str) -> str | None:
        key = self.value or pick_key(secret, self.name)
        # A server's error may quote the key, so that log lines and errors have to redact it.
        remember_own(key)
        return key or None


def read_secret(secret_arn: str, *, force_fetch: bool = False, setting: str = "the parameter OpenAiSecretArn") -> str:
    """Read a secret through Powertools' cache, unless `force_fetch`.

    Raises ModelUnauthorized, which names the `setting`, if it cannot be read.
    """
    from aws_lambda_powertools.utilities.parameters import get_secret  # noqa: PLC0415 - costs a cold start 30 ms
    from aws_lambda_powertools.utilities.parameters.exceptions import GetParameterError  # noqa: PLC0415

    try:
        return str(get_secret(secret_arn, max_age=MAX_AGE_SECONDS, force_fetch=force_fetch))
    except GetParameterError as error:
        raise ModelUnauthorized(
            f"The model's API key could not be read from Secrets Manager. Check {setting} and the function's "
            "permission to read it."
        ) from error


def pick_key(secret: str, name: str) -> str:
    """Return the key in a secret."""
    try:
        document = json.loads(secret)
    except ValueError:
        return secret.strip()
    return str(document.get(name, "")) if isinstance(document, dict) else secret.strip()
