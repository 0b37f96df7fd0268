"""The secrets of credentials, which are stored encrypted only.

Each secret is encrypted by itself, so that a call decrypts the access token alone. The encryption context has the
tenant, the vault, the credential and the name of the secret: text that is copied into another record, or to another
place in it, cannot be decrypted there. Decrypted secrets are cached by the encrypted text: a new one has another.
"""

import time

from stint.dataclasses import dataclass, field
from stint.domain.errors import InvalidRequest
from stint.domain.known_secrets import remember
from stint.domain.openai.vaults import VaultCredential
from stint.store.vaults import StoredCredential
from stint.tools.encrypted_credentials import CACHE_SECONDS, MOST_CACHED, CredentialCipher

NO_KEY = (
    "Vaults need a KMS key, because their secrets are not stored in clear. Ask the operator to set the parameter "
    "CredentialsKeyArn of the stack."
)


@dataclass(frozen=True, slots=True)
class VaultSecrets:
    """Encrypts and decrypts the secrets of a tenant's credentials. Decrypted ones are cached for five minutes.

    Each is remembered as a secret of the current request, so that it is redacted wherever text leaves.
    """

    tenant: str
    cipher: CredentialCipher | None
    decrypted: dict[tuple[str, str], tuple[float, str]] = field(default_factory=dict)

    def require_key(self) -> CredentialCipher:
        """Return the cipher. Raises InvalidRequest if the stack has no key."""
        if self.cipher is None:
            raise InvalidRequest(NO_KEY, code="credentials_key_missing")
        return self.cipher

    async def encrypt(self, credential: VaultCredential, name: str, secret: str) -> str:
        """Return an encrypted secret. Raises InvalidRequest without a key, or StoreUnavailable."""
        remember({secret})
        return await self.require_key().encrypt(secret, self.context_of(credential, name))

    async def decrypt(self, stored: StoredCredential, name: str) -> str:
        """Return a secret of a credential. Raises InvalidRequest without a key, or StoreUnavailable."""
        context, sealed = self.context_of(stored.credential, name), stored.sealed[name]
        # The text alone would find the secret in a record to which it was copied.
        place = (context["identifier"], sealed)
        expires, secret = self.decrypted.get(place, (0.0, ""))
        if time.monotonic() >= expires:
            secret = await self.require_key().decrypt(sealed, context)
            if len(self.decrypted) >= MOST_CACHED:
                self.decrypted.clear()
            self.decrypted[place] = time.monotonic() + CACHE_SECONDS, secret
        remember({secret})
        return secret

    def context_of(self, credential: VaultCredential, name: str) -> dict[str, str]:
        """Return the encryption context."""
        return {"tenant": self.tenant, "identifier": f"vault:{credential.vault_id}:{credential.id}:{name}"}
