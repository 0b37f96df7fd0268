"""The registry of configured and registered models, toolgroups and shields.

Registrations are read whole and cached for `cache_seconds`, since nearly every request looks up names. The cache is
wrong in two ways, and each has its remedy:

  a name was registered elsewhere     a look-up that does not find it reads again (`fresh`)
  a name was changed elsewhere        requests that depend on it call `renew` first; lists always read again

A model may be named in full (`provider/model`), by a registration's id, or by a short id. `find_route` resolves all of
them to the full id, to which rights, prices and the router refer. So no name gives a caller a model that its key may
not use. A model that a shield asks is resolved without registrations, so that nobody replaces it
(`find_configured_route`).
"""

import asyncio
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stint.caller import ALL_MODELS, ModelAccess
from stint.domain.errors import Forbidden, InvalidRequest, NotFound
from stint.domain.llama_stack.registrations import (
    ModelRegisterRequest,
    ModelType,
    Owner,
    RegisteredShield,
    ShieldRegisterRequest,
    ToolGroup,
    without_marks,
)
from stint.domain.llama_stack.registry import Model, Provider, ProviderList
from stint.models.routing import Router, ambiguous_model, unknown_model
from stint.services.registry.catalogue import Catalogue, R, Registered, merge, model_of, shield_of
from stint.services.registry.masking import masked_model, masked_shield
from stint.services.registry.model_ids import (
    find_models,
    first_of_each_type,
    full_id_of,
    is_embedding,
    is_own_name,
    named,
    refuse_embedding,
    with_default_marks,
    with_short_ids,
)
from stint.services.registry.model_registrations import find_unlisted_models, refuse_unknown_provider, register_request
from stint.store.registrations import Kind, Registrations
from stint.tools.masking import refuse_masked

if TYPE_CHECKING:
    from stint.services.registry.configured_names import ConfiguredNames
    from stint.services.registry.registration_changes import RegistrationChanges


RUN_SECONDS = 900
"""The longest time of a run, in seconds."""


class Registry:
    """The registry of a tenant. It caches the registrations for a time, or until they are renewed.

    Configured entries cannot be unregistered, except built-in toolgroups. An admin may override a configured toolgroup
    with a registration. When that is deleted, the configured one returns.
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

    @property
    def is_current(self) -> bool:
        """Return whether `renew` would read nothing: there were no registrations lately."""
        return self.cached is not None and time.monotonic() <= self.cached[0] and self.cached[1] == self.configured

    async def catalogue(self, *, fresh: bool = False) -> Catalogue:
        """Return the catalogue, which may be cached."""
        # Two requests at the same time may both read; the later answer stays.
        if self.cached is None or fresh or time.monotonic() > self.cached[0]:
            stored = await self.store.read(self.tenant)
            merged = merge(self.configured, stored, lambda each: self.names.find_effect(each))
            self.cached = (time.monotonic() + self.cache_seconds, merged)
        return self.cached[1]

    async def find_webhook_endpoints(self, *, current: bool = False) -> Mapping[str, bytes]:
        """Return the JSON of the tenant's webhook endpoints, as it was read with the registrations.

        A run has read these when it began, so that its end reads nothing. `current` ones are not older than the cache
        keeps them.
        """
        patience = 0 if current else RUN_SECONDS
        if self.cached is not None and time.monotonic() <= self.cached[0] + patience:
            return self.cached[1].webhook_endpoints
        return (await self.catalogue()).webhook_endpoints

    def knows_no_webhook_endpoints(self) -> bool:
        """Return whether the tenant had no webhook endpoints when the registrations were last read, as by each run."""
        return self.cached is not None and not self.cached[1].webhook_endpoints

    @cached_property
    def names(self) -> "ConfiguredNames":
        from stint.services.registry.configured_names import ConfiguredNames  # noqa: PLC0415 - with registrations

        return ConfiguredNames(self.configured, self.router, self.providers.data)

    async def renew(self) -> None:
        """Read the registrations again if there are any, because another process may have changed them.

        Without registrations only missing names can be out of date, and these are read again anyway.
        """
        if not self.is_current:
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
        # After the route is known: a name of one's own for a model would otherwise get past the limits of a key.
        try:
            self.access.require(full_id)
        except Forbidden as error:
            error.add(self.suggest(full_id, await self.catalogue()))
            raise
        return full_id

    def suggest(self, model_id: str, known: Catalogue, types: Container[ModelType] = ("llm",)) -> str:
        """Return a sentence with the id of a model that the caller probably means, and may use, or an empty text."""
        from stint.services.registry.near_models import did_you_mean, names_of  # noqa: PLC0415 - for errors only

        return did_you_mean(model_id, names_of(known, self.access.allows, types))

    async def find_route(self, model_id: str) -> str:
        """Return the router's id of a model. A registered model is another name of a provider's.

        The provider's prefix may be omitted if only one model has the id; listed models come first. An unknown id may
        be newly registered, so the registrations are then read again.

        Raises:
            InvalidRequest: the id is not listed and does not begin with a provider, or several models have it.
        """
        found = await self.find_models(model_id, fresh=False)
        if self.find_full_id(model_id, found) is None:
            found = await self.find_models(model_id, fresh=True)
        return self.require_full_id(model_id, found, await self.catalogue())

    def find_configured_route(self, model_id: str) -> str:
        """Return the router's id of a model without registrations, which others may change. Raises as `find_route`."""
        found = find_models(self.configured, model_id, self.router.names_provider)
        return self.require_full_id(model_id, found, self.configured)

    def find_full_id(self, model_id: str, found: Sequence[Model]) -> str | None:
        """Return the full id of the only model found for an id, or else of the one that the id names itself.

        An embedding model that is registered as its full id does not refuse the id, whose model may do both.

        Raises InvalidRequest for an embedding model.
        """
        names_provider = self.router.names_provider(model_id)
        if len(found) == 1 and not (names_provider and is_own_name(found[0])):
            refuse_embedding(found[0])
            return full_id_of(found[0])
        if names_provider:
            return model_id
        return None if found else self.find_unlisted(model_id)

    def require_full_id(self, model_id: str, found: Sequence[Model], known: Catalogue) -> str:
        """Return the full id as `find_full_id`. Raises InvalidRequest if there is none, or several.

        The error names ids that the caller may use.
        """
        full_id = self.find_full_id(model_id, found)
        if full_id is not None:
            return full_id
        # Several models have the short id, and none of them is the one that it means.
        if found:
            raise self.explain_ambiguous(model_id, found)
        error = unknown_model(model_id, self.router.providers)
        error.add(self.suggest(model_id, known))
        raise error

    def explain_ambiguous(self, model_id: str, found: Sequence[Model]) -> InvalidRequest:
        """Return the error of an id that several models have, of which it names those that the caller may use."""
        names = [model.identifier for model in found if self.access.allows(full_id_of(model))]
        return ambiguous_model(model_id, names) if names else unknown_model(model_id, self.router.providers)

    async def find_models(self, model_id: str, *, fresh: bool = True) -> list[Model]:
        """Return the models of an id: several if it is a short id and ambiguous."""
        return find_models(await self.catalogue(fresh=fresh), model_id, self.router.names_provider)

    def find_unlisted(self, model_id: str) -> str | None:
        """Return the full id of a served but unlisted model by its short id."""
        full_ids = (full for full in self.configured.unlisted if full.partition("/")[2] == model_id)
        return next(full_ids, None)

    async def list_models(self) -> list[Model]:
        """List the models that the caller may use, followed by those with a short id under that id.

        The default models are marked, under their configured ids.
        """
        models = with_default_marks(
            with_short_ids(await self.catalogue(fresh=True), self.router.names_provider), self.configured
        )
        shown = [model for model in models if self.access.allows(full_id_of(model))]
        return await asyncio.to_thread(lambda: [masked_model(model) for model in shown])

    def list_example_models(self) -> dict[ModelType, str]:
        """Return the first configured model of each type that the caller may use, without reading registrations."""
        configured = self.configured.models.values()
        return first_of_each_type(model for model in configured if self.access.allows(full_id_of(model)))

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
            error = NotFound("Model", identifier)
            error.add(self.suggest(identifier, await self.catalogue(), ("llm", "embedding")))
            raise error
        (model,) = with_default_marks([named(found[0], identifier)], self.configured)
        return await asyncio.to_thread(masked_model, model)

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
        if (known := self.names.definition_for(request)) is not None:
            model = model_of(request, known.provider_id, known.provider_resource_id)
        refuse_unknown_provider(model, self.providers.data)
        return masked_model(await self.register("model", self.names.complete(model)))

    async def register_shield(self, request: ShieldRegisterRequest, model: str | None = None) -> RegisteredShield:
        """Register a shield that asks a model, by its full id, or none; see `register`."""
        refuse_masked(request.params, "params")
        shield = shield_of(request, Owner()).model_copy(update={"model": model})
        return masked_shield(await self.register("shield", shield, is_equal=self.is_shield))

    async def is_shield(self, known: Registered, new: Registered) -> bool:
        """Return whether a shield equals a known one. One of an older version has only the name of its model."""
        if isinstance(known, RegisteredShield) and isinstance(new, RegisteredShield) and known.model is None:
            with suppress(InvalidRequest):
                known = known.model_copy(
                    update={"model": new.model and self.find_configured_route(known.provider_resource_id)}
                )
        return without_marks(known) == without_marks(new)

    async def register(self, kind: Kind, document: R, **options: Any) -> R:
        """Store a registration, and return it; see `RegistrationChanges.register`, which has the `options`."""
        stored = await (await self.begin_change()).register(kind, document, **options)
        # Not replaced by what was written: another process may have registered something, too.
        self.cached = None
        return stored

    async def unregister(self, kind: Kind, identifier: str) -> None:
        """Delete a registration; see `RegistrationChanges.unregister`."""
        await (await self.begin_change()).unregister(kind, identifier)
        self.cached = None

    async def begin_change(self) -> "RegistrationChanges":
        from stint.services.registry.registration_changes import RegistrationChanges  # noqa: PLC0415 - few requests do

        return RegistrationChanges(self.tenant, self.store, self.names, await self.catalogue(fresh=True))
