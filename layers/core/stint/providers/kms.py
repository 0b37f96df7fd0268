"""Encryption of short texts with a key of AWS KMS."""

import asyncio
import base64
import threading
from collections.abc import Mapping
from typing import Any

from stint.domain.errors import StoreUnavailable

MAX_BYTES = 4_096
"""Maximum of KMS for a text.

https://docs.aws.amazon.com/kms/latest/APIReference/API_Encrypt.html
"""


class KmsCipher:
    """Encrypts texts with one key, in threads. The client is made when first used, because boto3 takes 0.3 s."""

    def __init__(self, key_arn: str) -> None:
        self.key_arn = key_arn
        self._made_client: Any = None
        self._lock = threading.Lock()

    async def encrypt(self, text: str, context: Mapping[str, str]) -> str:
        """Encrypt a text of at most MAX_BYTES, and return it in base64. `context` is needed to decrypt it.

        Raises StoreUnavailable.
        """
        return await asyncio.to_thread(self._encrypt, text, context)

    async def decrypt(self, sealed: str, context: Mapping[str, str]) -> str:
        """Return an encrypted text. Raises StoreUnavailable, also for another context."""
        return await asyncio.to_thread(self._decrypt, sealed, context)

    def _encrypt(self, text: str, context: Mapping[str, str]) -> str:
        try:
            answer = self._client().encrypt(
                KeyId=self.key_arn, Plaintext=text.encode(), EncryptionContext=dict(context)
            )
        except self._errors() as error:
            raise self._unavailable("encrypted", error) from error
        return base64.b64encode(answer["CiphertextBlob"]).decode()

    def _decrypt(self, sealed: str, context: Mapping[str, str]) -> str:
        try:
            answer = self._client().decrypt(
                KeyId=self.key_arn, CiphertextBlob=base64.b64decode(sealed), EncryptionContext=dict(context)
            )
        except self._errors() as error:
            raise self._unavailable("decrypted", error) from error
        return bytes(answer["Plaintext"]).decode()

    def _client(self) -> Any:
        with self._lock:
            if self._made_client is None:
                import boto3  # noqa: PLC0415 - see above
                from botocore.config import Config  # noqa: PLC0415

                config = Config(
                    connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3}
                )
                region = self.key_arn.split(":")[3]
                self._made_client = boto3.session.Session(region_name=region).client("kms", config=config)
            return self._made_client

    @staticmethod
    def _errors() -> tuple[type[Exception], ...]:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - see above

        return BotoCoreError, ClientError

    def _unavailable(self, what: str, error: Exception) -> StoreUnavailable:
        response = getattr(error, "response", None) or {}  # an error of the connection has None
        reason = response.get("Error", {}).get("Code") or type(error).__name__
        return StoreUnavailable(
            f"The credentials could not be {what} with the KMS key {self.key_arn.rpartition('/')[2]!r} ({reason}). "
            "Check the parameter CredentialsKeyArn, and that the key is enabled."
        )
