"""Concrete adapters, made when first used. A function does not load the libraries of adapters that it does not use.

All adapters of a process are here, once, for all tenants. A part is loaded when it is first used, because the libraries
of the adapters are most of a cold start.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from stint.documents.limits import Limits, limits_for
from stint.documents.served import DocumentData
from stint.models.routing import Router
from stint.settings import Settings

if TYPE_CHECKING:
    from stint.aws.credentials import CredentialsSource
    from stint.bootstrap.model_servers import ModelServer
    from stint.domain.schedules import Schedules
    from stint.net.guard import Guard
    from stint.providers.kms import KmsCipher
    from stint.retrieval.embedder_router import EmbedderRouter
    from stint.retrieval.port import VectorIndex
    from stint.services.traces.trace_sender import TraceSender
    from stint.shields.port import ShieldProvider
    from stint.tools.port import ToolProvider


class Adapters:
    """The adapters of one Settings object. A router, tool providers and an index that are passed in replace
    them. Schedules are those that are passed in."""

    def __init__(
        self,
        settings: Settings,
        *,
        router: Router | None = None,
        tool_providers: "Mapping[str, ToolProvider] | None" = None,
        make_index: "Callable[[], VectorIndex] | None" = None,
        make_schedules: "Callable[[Settings], Schedules] | None" = None,
    ) -> None:
        self.settings, self.make_index = settings, make_index
        self._router, self._tool_providers, self._make_schedules = router, tool_providers, make_schedules

    @cached_property
    def router(self) -> Router:
        from stint.bootstrap.chat_models import make_router  # noqa: PLC0415

        return self._router or make_router(self.settings, self.model_servers, self.fetch)

    @cached_property
    def tool_providers(self) -> "Mapping[str, ToolProvider]":
        from stint.bootstrap.tool_providers import make_tool_providers  # noqa: PLC0415

        return (
            make_tool_providers(self.settings, lambda: self.guard, lambda: self.model_servers)
            if self._tool_providers is None
            else self._tool_providers
        )

    @cached_property
    def shield_providers(self) -> "Mapping[str, ShieldProvider]":
        from stint.bootstrap.shield_providers import make_shield_providers  # noqa: PLC0415

        return make_shield_providers(self.settings, self.model_servers, lambda name: self.router.resolve(name))

    @cached_property
    def guard(self) -> "Guard":
        from stint.net.guard import Guard  # noqa: PLC0415

        settings = self.settings
        first, _, last = settings.refused_ports.partition("-")
        ports = range(int(first or 0), int(last or -1) + 1)
        allowed, most_bytes = settings.allowed_hosts.split(","), settings.max_fetched_bytes
        return Guard(allowed, refused=[settings.runtime_api], refused_ports=ports, most_bytes=most_bytes)

    @cached_property
    def model_servers(self) -> "Sequence[ModelServer]":
        if not self.settings.providers:
            return ()
        from stint.bootstrap.model_servers import read_model_servers  # noqa: PLC0415

        return read_model_servers(self.settings)

    @cached_property
    def embedders(self) -> "EmbedderRouter":
        from stint.bootstrap.embedders import make_embedder_router  # noqa: PLC0415

        return make_embedder_router(self.settings, self.model_servers)

    @cached_property
    def vector_index(self) -> "VectorIndex":
        from stint.bootstrap.retrieval import make_vector_index  # noqa: PLC0415

        return make_vector_index(self.settings, self.data_credentials) if self.make_index is None else self.make_index()

    @cached_property
    def data_credentials(self) -> "CredentialsSource | None":
        """Return the credentials of tenants' data; None if they are the function's own."""
        if not self.settings.data_role_arn:
            return None
        from stint.bootstrap.tenant_isolation import make_data_credentials  # noqa: PLC0415

        return make_data_credentials(self.settings.data_role_arn)

    @cached_property
    def credential_cipher(self) -> "KmsCipher | None":
        """Return the cipher of registered credentials; None if they are stored as they are."""
        if not self.settings.credentials_key_arn:
            return None
        from stint.providers.kms import KmsCipher  # noqa: PLC0415

        return KmsCipher(self.settings.credentials_key_arn)

    @cached_property
    def schedules(self) -> "Schedules":
        """Return the schedules of automations. Only compositions that pass them in have some."""
        from stint.domain.schedules import NoSchedules  # noqa: PLC0415 - few requests need schedules

        return NoSchedules() if self._make_schedules is None else self._make_schedules(self.settings)

    @cached_property
    def trace_sender(self) -> "TraceSender | None":
        """Return the sender of traces; None if they are not sent."""
        if not self.settings.sends_traces:
            return None
        from stint.bootstrap.trace_receivers import make_trace_sender  # noqa: PLC0415

        return make_trace_sender(self.settings)

    @property
    def document_limits(self) -> Limits:
        """Return the limits of documents."""
        return limits_for(self.settings.max_fetched_bytes)

    async def fetch(self, url: str) -> DocumentData:
        """Fetch a document through the guard."""
        return await self.guard.fetch(url)

    async def check_url(self, url: str) -> None:
        """Raise InvalidRequest for a URL that the guard refuses."""
        await self.guard.check(url)
