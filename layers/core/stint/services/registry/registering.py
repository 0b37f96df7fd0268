"""The rule of registrations, and their deletion.

A name that already has a meaning is registered by an admin only, and the registration is marked as an override. A
registration that equals what the name means may be repeated by anybody. What the configuration lists of models and
shields, and what somebody else has registered, is a conflict for an admin, too.

All APIs register through this module. What look-ups do with older registrations is in `configured_names`.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from stint.caller import require_principal, require_scope
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from stint.domain.llama_stack.registrations import ToolGroup
from stint.domain.llama_stack.registry import Model
from stint.services.registry.catalogue import Catalogue, Registered, without_mark
from stint.services.registry.configured_names import BUILTIN, prefixes_of
from stint.services.registry.folded_names import find_lookalike, fold_name
from stint.services.registry.model_ids import full_id_of, short_id_of, short_ids
from stint.store.registrations import Kind

if TYPE_CHECKING:
    from stint.services.registry.registry import Registry

APIS: dict[Kind, str] = {"shield": "safety", "tool_group": "tool_runtime"}

IsEqual = Callable[[Registered, Registered], Awaitable[bool]]
"""A function that returns whether what a name means, its first argument, equals a new registration."""


async def are_equal(known: Registered, new: Registered) -> bool:
    """Return whether two definitions are equal, whoever registered them."""
    return without_mark(known) == without_mark(new)


@dataclass(frozen=True, slots=True)
class Registering:
    """The registration of one document. `names_secret`: its registration needs an admin, whatever its name."""

    registry: "Registry"
    kind: Kind
    document: Registered
    is_equal: IsEqual = are_equal
    names_secret: bool = False

    @property
    def identifier(self) -> str:
        return self.document.identifier

    async def run(self) -> None:
        """Store the registration.

        Raises:
            InvalidRequest: its provider is unknown; that of a model is checked by `refuse_unknown_provider`.
            Conflict: the identifier is taken, or looks like another one.
            Forbidden: the identifier has another meaning, or the registration names a secret, and the caller is no
                admin.
        """
        self.refuse_unknown_provider()
        catalogue = await self.registry.catalogue(fresh=True)
        known = catalogue.of(self.kind).get(self.identifier)
        if known is not None and await self.is_equal(known, self.document) and not self.restores(known):
            return
        self.refuse_lookalike(catalogue)
        if self.names_secret:
            require_admin("The registration names a secret")
        document = self.document
        if meaning := self.find_meaning(catalogue):
            require_admin(f"{self.identifier!r} {meaning}")
            document = document.model_copy(update={"override": self.overrides(catalogue) or None})
        await self.registry.store.create(self.registry.tenant, self.kind, self.identifier, document)
        self.registry.cached = None

    def refuse_unknown_provider(self) -> None:
        """Refuse a provider that does not exist, and a model or a shield that the configuration lists."""
        api, registry = APIS.get(self.kind), self.registry
        known = [provider.provider_id for provider in registry.providers.data if provider.api == api]
        if api and self.document.provider_id not in known:
            raise InvalidRequest(
                f"Provider {self.document.provider_id!r} is not one of {known}.",
                code="provider_not_found",
                param="provider_id",
            )
        if self.kind != "tool_group" and self.identifier in registry.configured.of(self.kind):
            raise Conflict(
                f"{self.identifier!r} is part of the configuration. Choose another name.", code="identifier_taken"
            )

    def restores(self, known: Registered) -> bool:
        """Return whether an admin registers a configured toolgroup as it is.

        It is stored, so that it can be unregistered without removing the configured one.
        """
        return known.owner is None and "admin" in require_principal().scopes

    def refuse_lookalike(self, catalogue: Catalogue) -> None:
        """Refuse an identifier that differs from a name only by what people do not see. Raises Conflict."""
        if (known := self.find_lookalike(catalogue)) is not None:
            raise Conflict(
                f"{self.identifier!r} differs from {known!r} only by case, blanks or invisible characters. Choose "
                "another name.",
                code="identifier_taken",
            )

    def find_lookalike(self, catalogue: Catalogue) -> str | None:
        configured, identifier = self.registry.configured, self.identifier
        known = {*catalogue.of(self.kind), *configured.of(self.kind)}
        if self.kind == "tool_group":
            if fold_name(identifier).startswith(BUILTIN) and not identifier.startswith(BUILTIN):
                return BUILTIN
            found = (find_lookalike(name, known) for name in prefixes_of(identifier))
            return next((name for name in found if name is not None), None)
        if self.kind == "shield":
            return find_lookalike(identifier, known)
        names = self.registry.names
        known |= {*names.short_ids, *short_ids(catalogue, names.router.names_provider), *configured.unlisted}
        provider, separator, _ = identifier.partition("/")
        other = find_lookalike(provider, names.model_providers) if separator else None
        return other if other is not None else find_lookalike(identifier, known)

    def find_meaning(self, catalogue: Catalogue) -> str:
        """Return what the identifier already means, other than the registration of its own; empty if nothing."""
        if isinstance(self.document, ToolGroup):
            return self.find_toolgroup(catalogue)
        return self.find_model(self.document, catalogue) if isinstance(self.document, Model) else ""

    def find_model(self, model: Model, catalogue: Catalogue) -> str:
        """Return what the identifier of a model, or its short id, already means."""
        names = self.registry.names
        if names.is_redefined_by(model):
            return "is the name of another model"
        registered = short_ids(catalogue, names.router.names_provider)
        if any(full_id_of(each) != full_id_of(model) for each in registered.get(model.identifier, [])):
            return "is the short id of another model"
        short = short_id_of(model, catalogue, names.router.names_provider)
        others = [each for each in registered.get(short, []) if each.identifier != model.identifier]
        if short not in {model.identifier, *names.short_ids} and others:
            return f"has the short id {short!r} of {others[0].identifier!r}, which would be ambiguous"
        return ""

    def find_toolgroup(self, catalogue: Catalogue) -> str:
        """Return what the identifier of a toolgroup already means."""
        configured = self.registry.configured.toolgroups
        for name in prefixes_of(self.identifier):
            if name in configured or (name in catalogue.toolgroups and name != self.identifier):
                return "is a configured toolgroup" if name == self.identifier else f"is a tool of toolgroup {name!r}"
        return "belongs to the configuration" if self.identifier.startswith(BUILTIN) else ""

    def overrides(self, catalogue: Catalogue) -> bool:
        """Return whether something has the identifier, rather than that it only belongs to the configuration."""
        return self.kind == "model" or self.find_toolgroup(catalogue) != "belongs to the configuration"


def require_admin(reason: str) -> None:
    """Raise Forbidden if the caller is no admin."""
    if "admin" not in require_principal().scopes:
        raise Forbidden(
            f"{reason}, so registering it needs the scope 'admin'. Use a key or token that has it.",
            code="insufficient_scope",
            scope="admin",
        )


async def unregister(registry: "Registry", kind: Kind, identifier: str) -> None:
    """Delete a registration.

    Raises:
        NotFound: there is no such registration.
        Conflict: it is part of the configuration and not overridden, or it is a short id.
        Forbidden: it overrides something, or is a configured toolgroup, and the caller is no admin.
    """
    configured = registry.configured
    found = (await registry.catalogue(fresh=True)).of(kind).get(identifier)
    if getattr(found, "override", None) or (kind == "tool_group" and identifier in configured.toolgroups):
        require_scope("admin")
    try:
        await registry.store.delete(registry.tenant, kind, identifier)
    except NotFound:
        if kind == "tool_group" and identifier in configured.builtin:
            await remove_builtin(registry, identifier)
            return
        if identifier not in configured.of(kind):
            if kind == "model":
                await refuse_short_id(registry, identifier)
            raise
        raise Conflict(
            f"{identifier!r} is part of the configuration and cannot be unregistered.", code="configured"
        ) from None
    registry.cached = None


async def remove_builtin(registry: "Registry", identifier: str) -> None:
    """Store that a built-in toolgroup is removed. Raises NotFound if it already is, or Forbidden."""
    require_scope("admin")
    toolgroup = (await registry.catalogue()).toolgroups.get(identifier)
    if toolgroup is None:
        raise NotFound("Toolgroup", identifier)
    await registry.store.create(registry.tenant, "removed_tool_group", identifier, toolgroup)
    registry.cached = None


async def refuse_short_id(registry: "Registry", identifier: str) -> None:
    for model in await registry.find_models(identifier):
        raise Conflict(
            f"{identifier!r} is a short id of {model.identifier!r}. Unregister {model.identifier!r}.",
            code="short_id",
        )
