"""References to secrets in registrations, in the place of credentials."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stint.domain.errors import InvalidRequest, StintError
from stint.domain.inference import ToolSignature
from stint.domain.known_secrets import remember
from stint.tools.outcomes import failure
from stint.tools.port import Invocation, Toolgroup, ToolOutcome, ToolProvider

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

    def check(self, config: Any) -> None:
        """Refuse references to secrets of others. Raises InvalidRequest."""
        for text in texts_of(config):
            for found in REFERENCE.finditer(text):
                if not found["name"].startswith(f"stint/{self.tenant}/"):
                    raise InvalidRequest(
                        f"The secret {found['name']!r} is not one of this tenant. Use one whose name begins with "
                        f"stint/{self.tenant}/.",
                        param="args",
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

    async def _resolve_text(self, text: str) -> str:
        self.check(text)
        for found in reversed(list(REFERENCE.finditer(text))):
            value = await self.read(found[0].partition("#")[0], found["key"] or "")
            remember({value}, in_models_text=False)
            text = text[: found.start()] + value + text[found.end() :]
        return text


@dataclass(frozen=True, slots=True)
class ResolvedProviders(Mapping[str, ToolProvider]):
    """Providers by name, each wrapped in a `ResolvedProvider`."""

    providers: Mapping[str, ToolProvider]
    references: SecretReferences

    def __getitem__(self, name: str) -> ToolProvider:
        return ResolvedProvider(self.providers[name], self.references)

    def __iter__(self) -> Iterator[str]:
        return iter(self.providers)

    def __len__(self) -> int:
        return len(self.providers)


@dataclass(frozen=True, slots=True)
class ResolvedProvider:
    """A provider whose calls get the values of the secrets that a registration's args name."""

    provider: ToolProvider
    references: SecretReferences

    async def check(self, toolgroup: Toolgroup, /) -> None:
        """Check a registration before it is stored; see the port."""
        self.references.check(toolgroup.config)
        await self.provider.check(toolgroup)

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature] | None:
        """Return a toolgroup's tools without a request; see the port."""
        return self.provider.known_tools(toolgroup, provider_data)

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List a toolgroup's tools; see the port."""
        return await self.provider.list_tools(toolgroup, provider_data)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Run a tool; see the port."""
        if any(REFERENCE.search(text) for text in texts_of(toolgroup.config)):
            try:
                toolgroup = replace(toolgroup, config=await self.references.resolve(toolgroup.config))
            except StintError as error:
                return failure(error.message)
        return await self.provider.invoke(toolgroup, invocation)


def texts_of(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, except the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_of(part)
