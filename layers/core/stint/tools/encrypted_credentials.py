"""Credentials of registrations, encrypted where a key is configured.

A registration mixes credentials with what callers may read: URLs, names, schemas. So it is not encrypted whole. What
`mask` hides in responses is taken out, with its place in the registration, and only these pairs are encrypted; the
document that is stored has masks there. A reader without the key still lists and shows registrations.

    sealed empty    there are no credentials, or no key is configured: they are stored as they are
    sealed, cached  the credentials are put into their places
    sealed          KMS decrypts them first

The encryption context has the tenant and the toolgroup, so text that is copied into another registration cannot be
decrypted there. Decrypted credentials are cached by the encrypted text: a registration that changes has another one.
KMS encrypts at most 4,096 bytes, which is the limit of all credentials of a toolgroup.
"""

import json
import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Protocol

from stint.dataclasses import dataclass, field, replace
from stint.domain.errors import InvalidRequest
from stint.tools.masking import mask, mask_url
from stint.tools.port import Toolgroup

MAX_ENCRYPTED_BYTES = 4_096
"""Maximum of the credentials of a toolgroup, as JSON."""
CACHE_SECONDS = 300
MOST_CACHED = 256

ARGS, ENDPOINT = "args", "mcp_endpoint"

Place = list[str | int]
Credential = tuple[Place, Any]
"""A value, and where it was in a registration."""


class CredentialCipher(Protocol):
    """A cipher whose texts can be read with the same context only."""

    async def encrypt(self, text: str, context: Mapping[str, str]) -> str:
        """Return an encrypted text. Raises StoreUnavailable."""
        ...

    async def decrypt(self, sealed: str, context: Mapping[str, str]) -> str:
        """Return the text. Raises StoreUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class EncryptedCredentials:
    """The encrypted credentials of a tenant's registrations. Without a `cipher`, they are stored as they are.

    Decrypted ones are cached for five minutes.
    """

    tenant: str
    cipher: CredentialCipher | None
    decrypted: dict[str, tuple[float, list[Credential]]] = field(default_factory=dict)

    async def encrypt(self, toolgroup: Toolgroup) -> Toolgroup:
        """Return a toolgroup with masks in the place of its credentials, and these encrypted in `sealed`.

        Raises:
            InvalidRequest: they are too long.
            StoreUnavailable: they cannot be encrypted.
        """
        if self.cipher is None:
            return toolgroup
        endpoint = toolgroup.mcp_endpoint
        shown, config = endpoint and mask_url(endpoint, endpoint=True), mask(toolgroup.config)
        found = [*differences(toolgroup.config, config, [ARGS]), *differences(endpoint, shown, [ENDPOINT])]
        if not found:
            return toolgroup
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        if (size := len(text.encode())) > MAX_ENCRYPTED_BYTES:
            raise InvalidRequest(
                f"The credentials of the toolgroup {toolgroup.toolgroup_id!r} have {size} bytes with the names "
                f"of their fields; at most {MAX_ENCRYPTED_BYTES} are encrypted. Name secrets of AWS instead.",
                param=ARGS,
            )
        sealed = await self.cipher.encrypt(text, self.context_of(toolgroup))
        return replace(toolgroup, mcp_endpoint=shown, config=config, sealed=sealed)

    async def decrypt(self, toolgroup: Toolgroup) -> Toolgroup:
        """Return a toolgroup with its credentials. Raises StoreUnavailable."""
        if not toolgroup.sealed:
            return toolgroup
        if (known := self.find(toolgroup)) is not None:
            return known
        if self.cipher is None:
            raise InvalidRequest(
                f"The credentials of the toolgroup {toolgroup.toolgroup_id!r} are encrypted, but no key is configured. "
                "Set the parameter CredentialsKeyArn, or register the toolgroup again."
            )
        text = await self.cipher.decrypt(toolgroup.sealed, self.context_of(toolgroup))
        if len(self.decrypted) >= MOST_CACHED:
            # All at once: which of them is used next is unknown, and a decryption is cheap.
            self.decrypted.clear()
        found = [(place, value) for place, value in json.loads(text)]
        self.decrypted[toolgroup.sealed] = time.monotonic() + CACHE_SECONDS, found
        return with_credentials(toolgroup, found)

    def find(self, toolgroup: Toolgroup) -> Toolgroup | None:
        """Return a toolgroup with its credentials, unless they would have to be decrypted."""
        if not toolgroup.sealed:
            return toolgroup
        expires, found = self.decrypted.get(toolgroup.sealed, (0.0, []))
        return with_credentials(toolgroup, found) if time.monotonic() < expires else None

    def context_of(self, toolgroup: Toolgroup) -> dict[str, str]:
        """Return the encryption context: a copy in another registration cannot be decrypted."""
        return {"tenant": self.tenant, "identifier": toolgroup.toolgroup_id}


def differences(value: Any, shown: Any, place: Place) -> Iterator[Credential]:
    """Yield the parts of a value that its masked form hides."""
    if isinstance(value, dict) and isinstance(shown, dict):
        for name, part in value.items():
            yield from differences(part, shown[name], [*place, name])
    elif isinstance(value, list) and isinstance(shown, list):
        for index, (part, masked) in enumerate(zip(value, shown, strict=True)):
            yield from differences(part, masked, [*place, index])
    elif value != shown:
        yield place, value


def with_credentials(toolgroup: Toolgroup, found: list[Credential]) -> Toolgroup:
    """Return a toolgroup with credentials in their places."""
    # A copy: the masked registration is the one that responses show.
    document: dict[str, Any] = {ARGS: deepcopy(toolgroup.config), ENDPOINT: toolgroup.mcp_endpoint}
    for place, value in found:
        parent: Any = document
        for name in place[:-1]:
            parent = parent[name]
        parent[place[-1]] = value
    return replace(toolgroup, config=document[ARGS], mcp_endpoint=document[ENDPOINT], sealed="")
