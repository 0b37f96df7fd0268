"""The registry of configured and registered models, toolgroups and shields."""

import asyncio
import time
from collections.abc import Mapping

from stint.caller import ALL_MODELS, ModelAccess, require_scope
from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.llama_stack.registrations import (
    ModelRegisterRequest,
    Owner,
    RegisteredShield,
    ShieldRegisterRequest,
    ToolGroup,
)
from stint.domain.llama_stack.registry import Model, Provider, ProviderList
from stint.models.routing import Router, ambiguous_model, unknown_model
from stint.services.registry.catalogue import Catalogue, merge, shield_of
from stint.services.registry.masking import masked_model, masked_shield
from stint.services.registry.model_ids import (
    find_models,
    full_id_of,
    is_embedding,
    named,
    refuse_embedding,
    with_short_ids,
)
from stint.services.registry.model_registrations import find_unlisted_models, refuse_unknown_provider, register_request
from stint.store.registrations import Kind, Registrations
from stint.tools.masking import refuse_masked

APIS: Mapping[Kind, str] = {"shield": "safety", "tool_group": "tool_runtime"}


class Registry:
    """The registry of a tenant. It caches the registrations for a time, or until they are renewed.

    Configured entries cannot be unregistered, except built-in toolgroups. A registration may override a configured
    toolgroup with its name, which returns when the registration is deleted.
    """

    def __init__(
        self,
        tenant: str,
        store: Registrations,
        configured: Catalogue,
        providers: ProviderList,
        router: Router,
        cache_seconds: float,
        access: ModelAccess = ALL_MODELS,
    ) -> None:
        self.tenant = tenant
        self.store = store
        self.configured = configured
        self.providers = providers
        self.router = router
        self.cache_seconds = cache_seconds
        self.access = access
        self.cached: tuple[float, Catalogue] | None = None

    async def catalogue(self, *, fresh: bool = False) -> Catalogue:
        """Return the catalogue, which may be cached."""
        if self.cached is None or fresh or time.monotonic() > self.cached[0]:
            stored = await self.store.read(self.tenant)
            self.cached = (time.monotonic() + self.cache_seconds, merge(self.configured, stored))
        return self.cached[1]

    async def renew(self) -> None:
        """Read the registrations again if there are any, because another process may have changed them.

        Without registrations only missing names can be out of date, and these are read again anyway.
        """
        await self.catalogue(fresh=self.cached is not None and self.cached[1] != self.configured)

    async def find_toolgroup(self, name: str) -> tuple[ToolGroup, str | None] | None:
        """Find a toolgroup by `group` or `group/tool`, and return it with the tool's name, if there is one.

        An unknown name may be newly registered, so the registrations are then read again.
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
        """Find a shield. An unknown name is looked up again in the store."""
        for fresh in (False, True):
            shields = (await self.catalogue(fresh=fresh)).shields
            if identifier in shields:
                return shields[identifier]
        return None

    async def route(self, model_id: str) -> str:
        """Return the router's id of a model as `find_route` does. Raises Forbidden if the caller may not use it.

        The limit is on the provider's model, whatever name a registration gives it.
        """
        full_id = await self.find_route(model_id)
        self.access.require(full_id)
        return full_id

    async def find_route(self, model_id: str) -> str:
        """Return the router's id of a model. A registered model is another name of a provider's.

        The provider's prefix may be omitted if only one model has the id; listed models come first. An unknown id may
        be newly registered, so the registrations are then read again.

        Raises:
            InvalidRequest: the id is not listed and does not begin with a provider, or several models have it.
        """
        found: list[Model] = []
        for fresh in (False, True):
            found = await self.find_models(model_id, fresh=fresh)
            if len(found) == 1:
                refuse_embedding(found[0])
                return full_id_of(found[0])
            if self.router.names_provider(model_id):
                return model_id
            if not found and (full := self.find_unlisted(model_id)) is not None:
                return full
        if found:
            raise ambiguous_model(model_id, [model.identifier for model in found])
        raise unknown_model(model_id, self.router.providers)

    async def find_models(self, model_id: str, *, fresh: bool = True) -> list[Model]:
        """Return the models of an id: several if it is a short id and ambiguous."""
        return find_models(await self.catalogue(fresh=fresh), model_id, self.router.names_provider)

    def find_unlisted(self, model_id: str) -> str | None:
        """Return the full id of a served but unlisted model by its short id."""
        full_ids = (full for full in self.configured.unlisted if full.partition("/")[2] == model_id)
        return next(full_ids, None)

    async def list_models(self) -> list[Model]:
        """List the models that the caller may use, followed by those with a short id under that id."""
        models = with_short_ids(await self.catalogue(fresh=True), self.router.names_provider)
        shown = [model for model in models if self.access.allows(full_id_of(model))]
        return await asyncio.to_thread(lambda: [masked_model(model) for model in shown])

    async def get_toolgroup(self, identifier: str) -> ToolGroup:
        """Return a toolgroup. Raises NotFound."""
        found = (await self.catalogue(fresh=True)).toolgroups.get(identifier)
        if found is None:
            raise NotFound("Toolgroup", identifier)
        return found

    async def list_shields(self) -> list[RegisteredShield]:
        """List the shields, with masked credentials."""
        shields = [*(await self.catalogue(fresh=True)).shields.values()]
        return await asyncio.to_thread(lambda: [masked_shield(shield) for shield in shields])

    async def get_shield(self, identifier: str) -> RegisteredShield:
        """Return a shield with masked credentials. Raises NotFound."""
        await self.renew()
        found = await self.find_shield(identifier)
        if found is None:
            raise NotFound("Shield", identifier)
        return await asyncio.to_thread(masked_shield, found)

    async def get_model(self, identifier: str) -> Model:
        """Return a model that requests may name, listed or not. Raises NotFound."""
        found = await self.find_models(identifier)
        if not found:
            full_id = self.find_unlisted(identifier) or identifier
            found = find_unlisted_models(full_id, self.router, self.providers.data, self.configured)
        if len(found) != 1 or not self.access.allows(full_id_of(found[0])):
            raise NotFound("Model", identifier)
        return await asyncio.to_thread(masked_model, named(found[0], identifier))

    def get_provider(self, provider_id: str) -> Provider:
        """Return a provider. Raises NotFound."""
        for provider in self.providers.data:
            if provider.provider_id == provider_id:
                return provider
        raise NotFound("Provider", provider_id)

    async def register_model(self, request: ModelRegisterRequest) -> Model:
        """Register another name for a provider's model; see `register`."""
        refuse_masked(request.metadata, "metadata")
        default = next((name for name, model in self.configured.models.items() if is_embedding(model)), "")
        model = register_request(request, self.router, self.providers.data, default)
        refuse_unknown_provider(model, self.providers.data)
        await self.register("model", model)
        return masked_model(model)

    async def register_shield(self, request: ShieldRegisterRequest) -> RegisteredShield:
        """Register a shield; see `register`."""
        refuse_masked(request.params, "params")
        shield = shield_of(request, Owner())
        await self.register("shield", shield)
        return masked_shield(shield)

    async def register(self, kind: Kind, document: Model | ToolGroup | RegisteredShield) -> None:
        """Store a registration.

        Raises:
            InvalidRequest: its provider is unknown; that of a model is checked by `refuse_unknown_provider`.
            Conflict: the identifier is taken.
            Forbidden: it overrides a configured toolgroup, and the caller is no admin.
        """
        known = [provider.provider_id for provider in self.providers.data if provider.api == APIS.get(kind)]
        if kind in APIS and document.provider_id not in known:
            raise InvalidRequest(
                f"Provider {document.provider_id!r} is not one of {known}.",
                code="provider_not_found",
                param="provider_id",
            )
        if kind != "tool_group" and document.identifier in self.configured.of(kind):
            raise Conflict(
                f"{document.identifier!r} is part of the configuration. Choose another name.", code="identifier_taken"
            )
        if document.identifier in self.configured.of(kind):
            require_scope("admin")
        await self.store.create(self.tenant, kind, document.identifier, document)
        self.cached = None

    async def unregister(self, kind: Kind, identifier: str) -> None:
        """Delete a registration.

        Raises:
            NotFound: there is no such registration.
            Conflict: it is part of the configuration and not overridden, or it is a short id.
            Forbidden: it overrides a configured toolgroup, and the caller is no admin.
        """
        if kind == "tool_group" and identifier in self.configured.of(kind):
            require_scope("admin")
        try:
            await self.store.delete(self.tenant, kind, identifier)
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
        """Store that a built-in toolgroup is removed. Raises NotFound if it already is, or Forbidden."""
        require_scope("admin")
        toolgroup = (await self.catalogue(fresh=True)).toolgroups.get(identifier)
        if toolgroup is None:
            raise NotFound("Toolgroup", identifier)
        await self.store.create(self.tenant, "removed_tool_group", identifier, toolgroup)
        self.cached = None

    async def refuse_short_id(self, identifier: str) -> None:
        for model in await self.find_models(identifier):
            raise Conflict(
                f"{identifier!r} is a short id of {model.identifier!r}. Unregister {model.identifier!r}.",
                code="short_id",
            )
