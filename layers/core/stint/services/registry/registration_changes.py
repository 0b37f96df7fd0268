"""The rule of registrations, and their deletion.

A name that already has a meaning is registered by an admin only, and the registration is marked as an override. A
registration that equals what the name means may be repeated by anybody. What the configuration lists of models and
shields, and what somebody else has registered, is a conflict for an admin, too. What an admin has registered, first or
again, is unregistered by an admin only: otherwise others could register its name for something else afterwards.

All APIs register through this module. What look-ups do with older registrations is in `configured_names`.
"""

from collections.abc import Awaitable, Callable, Mapping

from stint.caller import find_principal
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from stint.domain.llama_stack.registrations import (
    ADMIN,
    ROLES,
    Owner,
    RegistrationMarks,
    ToolGroup,
    marks_of,
    without_marks,
)
from stint.domain.llama_stack.registry import Model
from stint.services.registry.catalogue import Catalogue, R, Registered, prefixes_of, read_all
from stint.services.registry.configured_names import BUILTIN, ConfiguredNames
from stint.services.registry.folded_names import find_lookalike, fold_name, show_name
from stint.services.registry.model_ids import find_models, full_id_of, short_id_of, short_ids
from stint.store.registrations import Kind, Registrations, changed

APIS: dict[Kind, str] = {"shield": "safety", "tool_group": "tool_runtime"}

RESERVED = "belongs to the configuration"
"""The meaning of an id that only the configuration may use, and does not."""

IsEqual = Callable[[Registered, Registered], Awaitable[bool]]
"""A function that returns whether what a name means, its first argument, equals a new registration."""


async def are_equal(known: Registered, new: Registered) -> bool:
    """Return whether two definitions are equal, whoever registered them."""
    return without_marks(known) == without_marks(new)


@dataclass(frozen=True, slots=True)
class RegistrationChanges:
    """Changes of the registrations of a tenant, whose current `catalogue` was just read."""

    tenant: str
    store: Registrations
    names: ConfiguredNames
    catalogue: Catalogue

    async def register(
        self, kind: Kind, document: R, is_equal: IsEqual = are_equal, *, names_secret: bool = False
    ) -> R:
        """Store a registration, and return it with its mark. `names_secret`: it needs an admin, whatever its name.

        Raises:
            InvalidRequest: its provider is unknown; that of a model is checked by `refuse_unknown_provider`.
            Conflict: the identifier is taken, or looks like another one.
            Forbidden: the identifier has another meaning, or the registration names a secret, and the caller is no
                admin.
        """
        self.refuse_unknown_provider(kind, document)
        identifier = document.identifier
        known = self.catalogue.of(kind).get(identifier)
        # First, so that anybody may repeat an equal registration.
        if known is not None and await is_equal(known, document) and not may_restore(known):
            if is_admin() and not marks_of(known).belongs_to_admin():
                # What an admin has registered, too, is trusted to stay what it is.
                known = await self.take(kind, known)
            return with_marks(document, known)
        # People choose names by what they see. A second `admin-tools` with an invisible character would be called by
        # mistake.
        if (other := self.find_lookalike(kind, identifier)) is not None:
            raise Conflict(
                f"{identifier!r} differs from {other!r} only by case, blanks or invisible characters. Choose another "
                "name.",
                code="identifier_taken",
            )
        # A secret of the operator would be sent to whatever server the registration names.
        if names_secret:
            require_admin("The registration names a secret")
        if meaning := self.find_meaning(document):
            require_admin(f"{identifier!r} {meaning}")
            # A reserved name means nothing yet, so there is nothing to override.
            document = document if meaning == RESERVED else document.model_copy(update={"override": True})
        document = document.model_copy(update={"owner": owner_of_caller()})
        await self.store.create(self.tenant, kind, identifier, document)
        return document

    async def take(self, kind: Kind, known: Registered) -> Registered:
        """Store that a registration of somebody else is an admin's, who has registered the same.

        Otherwise it could be unregistered, and registered for something else, without the admin.
        Raises Conflict if it was changed meanwhile.
        """
        stored = dict(read_all(await self.store.read(self.tenant), kind, type(known))).get(known.identifier)
        effect = self.names.complete(stored) if isinstance(stored, Model) else stored
        # The registration was read before; it may have been unregistered and registered for something else since.
        if stored is None or effect != known:
            raise changed(known.identifier)
        stored = stored.model_copy(update={"owner": owner_of_caller()})
        await self.store.mark(self.tenant, kind, known.identifier, stored)
        return stored

    def refuse_unknown_provider(self, kind: Kind, document: Registered) -> None:
        """Refuse a provider that does not exist, and a model or a shield that the configuration lists."""
        api = APIS.get(kind)
        known = [provider.provider_id for provider in self.names.providers if provider.api == api]
        if api and document.provider_id not in known:
            raise InvalidRequest(
                f"Provider {document.provider_id!r} is not one of {known}.",
                code="provider_not_found",
                param="provider_id",
            )
        if kind != "tool_group" and document.identifier in self.names.configured.of(kind):
            raise Conflict(
                f"{document.identifier!r} is part of the configuration. Choose another name.", code="identifier_taken"
            )

    def find_lookalike(self, kind: Kind, identifier: str) -> str | None:
        """Return a name from which an identifier differs only by what people do not see."""
        configured = self.names.configured
        known = {*self.catalogue.of(kind), *configured.of(kind)}
        shown = show_name(identifier)
        if kind == "tool_group":
            if fold_name(identifier).startswith(BUILTIN) and not identifier.startswith(BUILTIN):
                return BUILTIN
            if shown != identifier and self.find_toolgroup(shown):
                return shown
            return find_lookalike(prefixes_of(identifier), known)
        if kind == "model":
            known |= {*self.names.short_ids, *self.short_ids(), *configured.unlisted}
            provider, separator, _ = identifier.partition("/")
            other = find_lookalike([provider], self.names.model_providers) if separator else None
            if other is not None or (shown != identifier and self.names.definitions_of(shown) is not None):
                return other or shown
        return find_lookalike([identifier], known)

    def find_meaning(self, document: Registered) -> str:
        """Return what an identifier means already, other than a registration of its own; empty if nothing."""
        if isinstance(document, ToolGroup):
            return self.find_toolgroup(document.identifier)
        return self.find_model(document) if isinstance(document, Model) else ""

    def find_model(self, model: Model) -> str:
        """Return what the identifier of a model, or its short id, means already."""
        if self.names.is_redefined_by(model):
            return "is the name of another model"
        registered = {name: found for name, found in self.short_ids().items() if name not in self.names.short_ids}
        if any(full_id_of(each) != full_id_of(model) for each in registered.get(model.identifier, [])):
            return "is the short id of another model"
        short = short_id_of(model, self.catalogue, self.names.router.names_provider)
        others = [each for each in registered.get(short, []) if each.identifier != model.identifier]
        if short != model.identifier and others:
            return f"has the short id {short!r} of {others[0].identifier!r}, which would be ambiguous"
        return ""

    def short_ids(self) -> Mapping[str, list[Model]]:
        return short_ids(self.catalogue, self.names.router.names_provider)

    def find_toolgroup(self, identifier: str) -> str:
        """Return what the identifier of a toolgroup means already."""
        configured = self.names.configured.toolgroups
        for name in prefixes_of(identifier):
            if name in configured or (name in self.catalogue.toolgroups and name != identifier):
                return "is a configured toolgroup" if name == identifier else f"is a tool of toolgroup {name!r}"
        registered = (name for name, each in self.catalogue.toolgroups.items() if each.owner and not each.override)
        if tool := next((name for name in registered if name.startswith(f"{identifier}/")), None):
            return f"is the toolgroup of {tool!r}, which is registered"
        return RESERVED if identifier.startswith(BUILTIN) else ""

    async def unregister(self, kind: Kind, identifier: str) -> None:
        """Delete a registration.

        Raises:
            NotFound: there is no such registration.
            Conflict: it is part of the configuration and not overridden, or it is a short id.
            Forbidden: an admin has registered it, or it is a configured toolgroup, and the caller is no admin.
        """
        configured = self.names.configured
        if kind == "tool_group" and identifier in configured.toolgroups:
            require_admin(f"{identifier!r} is a configured toolgroup", "unregistering")

        def check(marks: RegistrationMarks) -> None:
            if marks.belongs_to_admin():
                require_admin(f"An admin has registered {identifier!r}", "unregistering")

        try:
            await self.store.delete(self.tenant, kind, identifier, check)
        # There is no registration, so the name is that of the configuration, or of nothing.
        except NotFound:
            if kind == "tool_group" and identifier in configured.builtin:
                await self.remove_builtin(identifier)
                return
            if identifier not in configured.of(kind):
                if kind == "model":
                    self.refuse_short_id(identifier)
                raise
            raise Conflict(
                f"{identifier!r} is part of the configuration and cannot be unregistered.", code="configured"
            ) from None

    async def remove_builtin(self, identifier: str) -> None:
        """Store that a built-in toolgroup is removed. Raises NotFound if it already is."""
        toolgroup = self.catalogue.toolgroups.get(identifier)
        if toolgroup is None:
            raise NotFound("Toolgroup", identifier)
        await self.store.create(self.tenant, "removed_tool_group", identifier, toolgroup)

    def refuse_short_id(self, identifier: str) -> None:
        for model in find_models(self.catalogue, identifier, self.names.router.names_provider):
            raise Conflict(
                f"{identifier!r} is a short id of {model.identifier!r}. Unregister {model.identifier!r}.",
                code="short_id",
            )


def with_marks(document: R, known: Registered) -> R:
    """Return a definition with the marks of the known one that it equals."""
    marks = marks_of(known)
    update = {name: each for name, each in marks if each is not None and name in type(document).model_fields}
    return document.model_copy(update=update)


def owner_of_caller() -> Owner:
    """Return the owner of what the caller registers, which says whether the caller is an admin."""
    return Owner(attributes={ROLES: [ADMIN]}) if is_admin() else Owner()


def is_admin() -> bool:
    principal = find_principal()
    return principal is not None and principal.has_scope(ADMIN)


def may_restore(known: Registered) -> bool:
    """Return whether a definition is configured and the caller an admin.

    An equal registration is then stored, so that it can be unregistered without removing the configured toolgroup.
    """
    return known.owner is None and is_admin()


def require_admin(reason: str, change: str = "registering") -> None:
    """Raise Forbidden if the caller is no admin."""
    if not is_admin():
        raise Forbidden(
            f"{reason}, so {change} it needs the scope 'admin'. Use a key or token that has it.",
            code="insufficient_scope",
            scope="admin",
        )
