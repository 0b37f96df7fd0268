"""The registry: models, toolgroups and shields, as configured and as registered."""

import asyncio
import time
from collections.abc import Mapping

from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.llama_stack.registrations import (
    ModelRegisterRequest,
    Owner,
    RegisteredShield,
    ShieldRegisterRequest,
    ToolGroup,
    ToolGroupRegisterRequest,
)
from stint.domain.llama_stack.registry import Model, Provider, ProviderList
from stint.models.routing import Router, ambiguous_model, unknown_model
from stint.services.registry.catalogue import Catalogue, merge, model_of, shield_of, toolgroup_of
from stint.services.registry.masking import masked_model, masked_shield
from stint.services.registry.model_ids import find_models, named, with_short_ids
from stint.store.registrations import Kind, Registrations
from stint.tools.masking import refuse_masked

APIS: Mapping[Kind, str] = {"model": "inference", "shield": "safety", "tool_group": "tool_runtime"}


class Registry:
    """The registry of a tenant; what it has read is kept for a while, or until it is renewed.

    What is configured cannot be unregistered, but for the built-in toolgroups. A toolgroup may be registered in front
    of a configured one of its name, which is back once the registration is gone.
    """

    def __init__(
        self,
        tenant: str,
        store: Registrations,
        configured: Catalogue,
        providers: ProviderList,
        router: Router,
        cache_seconds: float,
    ) -> None:
        self.tenant = tenant
        self.store = store
        self.configured = configured
        self.providers = providers
        self.router = router
        self.cache_seconds = cache_seconds
        self.cached: tuple[float, Catalogue] | None = None

    async def catalogue(self, *, fresh: bool = False) -> Catalogue:
        """Give everything there is, from this process when it has read it lately."""
        if self.cached is None or fresh or time.monotonic() > self.cached[0]:
            stored = await asyncio.to_thread(self.store.read, self.tenant)
            self.cached = (time.monotonic() + self.cache_seconds, merge(self.configured, stored))
        return self.cached[1]

    async def renew(self) -> None:
        """Read the registrations again when there were any: another process may have changed or removed them.

        Where nothing was registered, nothing can be out of date but names that are not found, which are read again.
        """
        await self.catalogue(fresh=self.cached is not None and self.cached[1] != self.configured)

    async def find_toolgroup(self, name: str) -> tuple[ToolGroup, str | None] | None:
        """Find what `group` or `group/tool` names: the toolgroup, and the tool when one is named.

        What this process does not know may have been registered since it read last, so it reads again.
        """
        for fresh in (False, True):
            toolgroups = (await self.catalogue(fresh=fresh)).toolgroups
            if name in toolgroups:
                return toolgroups[name], None
            group, found, tool_name = name.rpartition("/")
            if found and group in toolgroups:
                return toolgroups[group], tool_name
        return None

    async def find_shield(self, identifier: str) -> RegisteredShield | None:
        """Find a shield, reading again when this process does not know it."""
        for fresh in (False, True):
            shields = (await self.catalogue(fresh=fresh)).shields
            if identifier in shields:
                return shields[identifier]
        return None

    async def route(self, model_id: str) -> str:
        """Return the id by which the router knows a model: a registered one is another name of a provider's.

        A model is also known without its provider's prefix, a listed one before others, unless several would be. What
        this process does not know may have been registered since it read last, so it reads again.

        Raises:
            InvalidRequest: the id is neither listed nor begins with a provider, or stands for several models.
        """
        found: list[Model] = []
        for fresh in (False, True):
            found = await self.find_models(model_id, fresh=fresh)
            if len(found) == 1:
                refuse_embedding(found[0])
                return f"{found[0].provider_id}/{found[0].provider_resource_id}"
            if self.router.names_provider(model_id):
                return model_id
            if not found and (full := self.find_unlisted(model_id)) is not None:
                return full
        if found:
            raise ambiguous_model(model_id, [model.identifier for model in found])
        raise unknown_model(model_id, self.router.providers)

    async def find_models(self, model_id: str, *, fresh: bool = True) -> list[Model]:
        """Return the models that an id stands for: several where it is short and ambiguous."""
        return find_models((await self.catalogue(fresh=fresh)).models, model_id, self.router.names_provider)

    def find_unlisted(self, model_id: str) -> str | None:
        """Return the full id of a model that is served although it is not listed, by its id without the prefix."""
        full_ids = (full for full in self.configured.unlisted if full.partition("/")[2] == model_id)
        return next(full_ids, None)

    async def list_models(self) -> list[Model]:
        """List the models, then those that are also known by a short id, under that id."""
        models = (await self.catalogue(fresh=True)).models
        shown = with_short_ids(models, self.router.names_provider)
        return await asyncio.to_thread(lambda: [masked_model(model) for model in shown])

    async def get_toolgroup(self, identifier: str) -> ToolGroup:
        """Read a toolgroup. Raises NotFound."""
        found = (await self.catalogue(fresh=True)).toolgroups.get(identifier)
        if found is None:
            raise NotFound("Toolgroup", identifier)
        return found

    async def list_shields(self) -> list[RegisteredShield]:
        """List the shields as the API shows them."""
        shields = [*(await self.catalogue(fresh=True)).shields.values()]
        return await asyncio.to_thread(lambda: [masked_shield(shield) for shield in shields])

    async def get_shield(self, identifier: str) -> RegisteredShield:
        """Read a shield as the API shows it. Raises NotFound."""
        await self.renew()
        found = await self.find_shield(identifier)
        if found is None:
            raise NotFound("Shield", identifier)
        return await asyncio.to_thread(masked_shield, found)

    async def get_model(self, identifier: str) -> Model:
        """Read a listed model; agents may use any model of a configured provider all the same. Raises NotFound."""
        found = await self.find_models(identifier)
        if len(found) != 1:
            raise NotFound("Model", identifier)
        return await asyncio.to_thread(masked_model, named(found[0], identifier))

    def get_provider(self, provider_id: str) -> Provider:
        """Read a provider. Raises NotFound."""
        for provider in self.providers.data:
            if provider.provider_id == provider_id:
                return provider
        raise NotFound("Provider", provider_id)

    async def register_model(self, request: ModelRegisterRequest) -> Model:
        """Register another name for a provider's model; see `register`."""
        refuse_masked(request.metadata, "metadata")
        routed, bare = self.router.route(request.provider_model_id or request.model_id)
        provider_id = request.provider_id or routed
        model = model_of(request, provider_id, bare if provider_id == routed else request.provider_model_id or bare)
        await self.register("model", model)
        return masked_model(model)

    async def register_toolgroup(self, request: ToolGroupRegisterRequest) -> ToolGroup:
        """Register a toolgroup; see `register`."""
        toolgroup = toolgroup_of(request, Owner())
        await self.register("tool_group", toolgroup)
        return toolgroup

    async def register_shield(self, request: ShieldRegisterRequest) -> RegisteredShield:
        """Register a shield; see `register`."""
        refuse_masked(request.params, "params")
        shield = shield_of(request, Owner())
        await self.register("shield", shield)
        return masked_shield(shield)

    async def register(self, kind: Kind, document: Model | ToolGroup | RegisteredShield) -> None:
        """Store a registration.

        Raises:
            InvalidRequest: its provider is not one of this API's; that of an embedding model is only stored.
            Conflict: the identifier is taken.
        """
        api = APIS[kind]
        known = [provider.provider_id for provider in self.providers.data if provider.api == api]
        if document.provider_id not in known and not is_embedding(document):
            raise InvalidRequest(
                f"Provider {document.provider_id!r} is not one of {known}.",
                code="provider_not_found",
                param="provider_id",
            )
        if kind != "tool_group" and document.identifier in self.configured.of(kind):
            raise Conflict(
                f"{document.identifier!r} is part of the configuration: choose another name.", code="identifier_taken"
            )
        await asyncio.to_thread(self.store.create, self.tenant, kind, document.identifier, document)
        self.cached = None

    async def unregister(self, kind: Kind, identifier: str) -> None:
        """Delete a registration.

        Raises:
            NotFound: there is none of this identifier.
            Conflict: it is part of the configuration, and nothing is registered in front of it; or a short id.
        """
        try:
            await asyncio.to_thread(self.store.delete, self.tenant, kind, identifier)
        except NotFound:
            if kind == "tool_group" and identifier in self.configured.builtin:
                await self.remove_builtin(identifier)
                return
            if identifier not in self.configured.of(kind):
                if kind == "model":
                    await self.refuse_short_id(identifier)
                raise
            raise Conflict(
                f"{identifier!r} is part of the configuration and cannot be unregistered.", code="configured"
            ) from None
        self.cached = None

    async def remove_builtin(self, identifier: str) -> None:
        """Note that a built-in toolgroup is gone. Raises NotFound when it is already."""
        toolgroup = (await self.catalogue(fresh=True)).toolgroups.get(identifier)
        if toolgroup is None:
            raise NotFound("Toolgroup", identifier)
        await asyncio.to_thread(self.store.create, self.tenant, "removed_tool_group", identifier, toolgroup)
        self.cached = None

    async def refuse_short_id(self, identifier: str) -> None:
        for model in await self.find_models(identifier):
            raise Conflict(f"{identifier!r} is a short id of {model.identifier!r}: unregister that.", code="short_id")


def is_embedding(document: Model | ToolGroup | RegisteredShield) -> bool:
    return isinstance(document, Model) and document.model_type == "embedding"


def refuse_embedding(model: Model) -> None:
    """Raise InvalidRequest for a model that writes no answers."""
    if model.model_type == "embedding":
        raise InvalidRequest(
            f"Model {model.identifier!r} is an embedding model: name one with model_type llm.",
            code="model_not_supported",
            param="model",
        )
