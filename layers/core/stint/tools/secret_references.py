"""References to secrets in registrations, in the place of credentials.

A registration may name a secret of AWS Secrets Manager by its ARN. The value is read when a call needs it and is in no
record, so it can be rotated without a new registration. The role of this system can read the secrets of all tenants, so
two rules decide who may name which:

- A secret's name begins with `stint/{tenant}/`. This is checked when a registration is made, and again before a secret
  is read, because a registration could have been stored otherwise.
- Only registered toolgroups have references. Callers who define tools in a request register nothing, and could send a
  secret of their tenant to a server of theirs.

Where a toolgroup has no endpoint, its tools are listed without the secrets: a list needs none, and a secret that cannot
be read then fails only the call. The value is remembered as a credential as soon as it is read, so that it is redacted
in the call's result.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from stint.dataclasses import dataclass, replace
from stint.domain.errors import InvalidRequest, StintError, StoreUnavailable, ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.domain.known_secrets import remember
from stint.tools.encrypted_credentials import EncryptedCredentials
from stint.tools.outcomes import failure
from stint.tools.port import Invocation, Toolgroup, ToolOutcome, ToolProvider

T = TypeVar("T")

REFERENCE = re.compile(
    r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:(?P<name>[A-Za-z0-9/_+=.@-]+)(?:#(?P<key>[A-Za-z0-9_.-]+))?"
)
"""The ARN of a secret, and after `#` the name of a value if the secret is JSON."""

ReadSecret = Callable[[str, str], Awaitable[str]]
"""A function that returns the value of a secret by its ARN and the name of a value. Raises StintError."""


@dataclass(frozen=True, slots=True)
class SecretReferences:
    """The secrets that the registrations of a tenant may name: those below `stint/{tenant}/`."""

    tenant: str
    read: ReadSecret

    def are_in(self, toolgroup: Toolgroup) -> bool:
        """Return whether a registration names secrets."""
        return toolgroup.registered and has_references([toolgroup.config, toolgroup.mcp_endpoint])

    def check(self, config: Any, param: str = "args") -> None:
        """Refuse references to secrets of others. Raises InvalidRequest."""
        for text in texts_of(config):
            for found in REFERENCE.finditer(text):
                if not found["name"].startswith(f"stint/{self.tenant}/"):
                    raise InvalidRequest(
                        f"The secret {found['name']!r} is not one of this tenant. Use one whose name begins with "
                        f"stint/{self.tenant}/.",
                        param=param,
                    )

    async def resolve(self, config: Any) -> Any:
        """Return a configuration with the values of its secrets. Raises StintError."""
        if isinstance(config, str):
            return await self._resolve_text(config)
        if isinstance(config, dict):
            return {name: await self.resolve(value) for name, value in config.items()}
        if isinstance(config, list):
            return [await self.resolve(value) for value in config]
        return config

    async def resolve_url(self, url: str | None) -> str | None:
        """Return a URL with the values of its secrets, quoted as parts of a URL. Raises StintError."""
        return url and await self._resolve_text(url, lambda value: quote(value, safe=""))

    async def _resolve_text(self, text: str, write: Callable[[str], str] = str) -> str:
        self.check(text)
        # From the end, so that a value which looks like a reference is not read as one, and earlier places stay.
        for found in reversed(list(REFERENCE.finditer(text))):
            value = await self.read(found[0].partition("#")[0], found["key"] or "")
            remember({value}, in_models_text=False)
            text = text[: found.start()] + write(value) + text[found.end() :]
        return text


class VaultBinder(Protocol):
    """Runs the calls of MCP servers with credentials of the session's vaults."""

    async def run(self, toolgroup: Toolgroup, call: Callable[[Toolgroup], Awaitable[T]]) -> T:
        """Run a call with the toolgroup's credential, a second time with a renewed one if a server refuses the first.

        The toolgroup of the call has no vaults. Raises StintError.
        """
        ...


@dataclass(frozen=True, slots=True)
class ResolvedProviders(Mapping[str, ToolProvider]):
    """Providers by name, each wrapped in a `ResolvedProvider`."""

    providers: Mapping[str, ToolProvider]
    references: SecretReferences
    credentials: EncryptedCredentials
    find_vaults: Callable[[], VaultBinder]

    def __getitem__(self, name: str) -> ToolProvider:
        return ResolvedProvider(self.providers[name], self.references, self.credentials, self.find_vaults)

    def __iter__(self) -> Iterator[str]:
        return iter(self.providers)

    def __len__(self) -> int:
        return len(self.providers)


@dataclass(frozen=True, slots=True)
class ResolvedProvider:
    """A provider whose calls get a registration's encrypted credentials, and the values of the secrets that it names.

    References to secrets may be in the args and in the query of an MCP server's endpoint. A server of a session with
    vaults gets a credential of them.
    """

    provider: ToolProvider
    references: SecretReferences
    credentials: EncryptedCredentials
    find_vaults: Callable[[], VaultBinder]

    async def check(self, toolgroup: Toolgroup, /) -> None:
        """Check a registration before it is stored; see the port."""
        self.references.check(toolgroup.config)
        self.references.check(toolgroup.mcp_endpoint, "mcp_endpoint")
        await self.provider.check(toolgroup)

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature] | None:
        """Return a toolgroup's tools without a request; see the port. Those of a server that needs secrets are None."""
        if toolgroup.vaults is not None:
            return None
        found = self.credentials.find(toolgroup)
        if found is None or (found.mcp_endpoint and self.references.are_in(found)):
            return None
        return self.provider.known_tools(found, provider_data)

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List a toolgroup's tools; see the port."""
        if toolgroup.vaults is not None:
            decrypted = await self.decrypt(toolgroup)  # its address and its authorization decide
            return await self.find_vaults().run(decrypted, lambda bound: self.list_tools(bound, provider_data))
        resolved = await (self.resolve if toolgroup.mcp_endpoint else self.decrypt)(toolgroup)
        return await self.provider.list_tools(resolved, provider_data)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Run a tool; see the port."""
        if toolgroup.vaults is not None:
            decrypted = await self.decrypt(toolgroup)
            return await self.find_vaults().run(decrypted, lambda bound: self.invoke(bound, invocation))
        try:
            resolved = await self.resolve(toolgroup)
        except StintError as error:
            return failure(error.message)
        return await self.provider.invoke(resolved, invocation)

    async def resolve(self, toolgroup: Toolgroup) -> Toolgroup:
        """Return a toolgroup with its credentials and secrets.

        Raises:
            ToolUnavailable: they cannot be read.
            InvalidRequest: a secret is not one of the tenant.
        """
        decrypted = await self.decrypt(toolgroup)
        if not self.references.are_in(decrypted):
            return decrypted
        config = await self.references.resolve(decrypted.config)
        return replace(decrypted, config=config, mcp_endpoint=await self.references.resolve_url(decrypted.mcp_endpoint))

    async def decrypt(self, toolgroup: Toolgroup) -> Toolgroup:
        """Return a toolgroup with its encrypted credentials. Raises ToolUnavailable."""
        try:
            return await self.credentials.decrypt(toolgroup)
        except StoreUnavailable as error:
            raise ToolUnavailable(error.message) from error


def has_references(value: Any) -> bool:
    """Return whether a JSON value names secrets."""
    return any(REFERENCE.search(text) for text in texts_of(value))


def refuse_references(text: str, param: str) -> None:
    """Refuse references in a text of a caller who registers nothing. Raises InvalidRequest."""
    if REFERENCE.search(text):
        raise InvalidRequest("Only registered toolgroups can name secrets. Register one.", param=param)


def texts_of(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, except the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_of(part)
