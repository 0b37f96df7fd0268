"""The signing secrets of webhook endpoints, which are stored encrypted only.

The encryption context has the tenant and the endpoint, so that text which is copied into another record cannot be
decrypted there. Decrypted secrets are cached by the encrypted text: a rotation makes another one.
"""

import time

from stint.dataclasses import dataclass, field
from stint.domain.errors import InvalidRequest, StoreUnavailable
from stint.domain.webhooks import StoredWebhookEndpoint
from stint.tools.encrypted_credentials import CACHE_SECONDS, MOST_CACHED, CredentialCipher

NO_KEY = (
    "Webhook endpoints need a KMS key, because their signing secrets are not stored in clear. Ask the operator to set "
    "the parameter CredentialsKeyArn of the stack."
)


@dataclass(frozen=True, slots=True)
class SigningSecrets:
    """Encrypts and decrypts the secrets of a tenant's endpoints. Decrypted ones are cached for five minutes."""

    tenant: str
    cipher: CredentialCipher | None
    decrypted: dict[str, tuple[float, str]] = field(default_factory=dict)

    def require_key(self) -> CredentialCipher:
        """Return the cipher. Raises InvalidRequest if the stack has no key."""
        if self.cipher is None:
            raise InvalidRequest(NO_KEY, code="credentials_key_missing")
        return self.cipher

    async def encrypt(self, endpoint_id: str, secret: str) -> str:
        """Return an encrypted secret. Raises InvalidRequest without a key, or StoreUnavailable."""
        return await self.require_key().encrypt(secret, self.context_of(endpoint_id))

    async def read(self, stored: StoredWebhookEndpoint) -> list[str]:
        """Return the secrets that sign now, the current one first. Raises StoreUnavailable."""
        sealed = [stored.sealed]
        if stored.previous_sealed and time.time() < stored.previous_until:
            sealed.append(stored.previous_sealed)
        return [await self._decrypt(stored.resource.id, each) for each in sealed]

    async def _decrypt(self, endpoint_id: str, sealed: str) -> str:
        expires, secret = self.decrypted.get(sealed, (0.0, ""))
        if time.monotonic() < expires:
            return secret
        if self.cipher is None:
            raise StoreUnavailable(NO_KEY)
        secret = await self.cipher.decrypt(sealed, self.context_of(endpoint_id))
        if len(self.decrypted) >= MOST_CACHED:
            self.decrypted.clear()
        self.decrypted[sealed] = time.monotonic() + CACHE_SECONDS, secret
        return secret

    def context_of(self, endpoint_id: str) -> dict[str, str]:
        """Return the encryption context."""
        return {"tenant": self.tenant, "identifier": f"webhook_endpoint:{endpoint_id}"}
