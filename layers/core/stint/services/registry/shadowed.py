"""Registrations over which the configuration wins, and the marks with which an operator keeps some of them.

A shadowed registration stays stored and has no effect. Its owner may not know, so operators can list them with their
reasons (`cli/registry.py`), and mark those that are meant to win as overrides.

  a registration                                     listed, because            can be kept
  whose name the configuration lists                 the configured one wins    a toolgroup only
  that gives a provider's model another meaning      the configured one wins    yes
  that is a tool of another registered toolgroup     the other one wins         yes
  a shield whose model is not configured             it cannot be used          no
  that looks like another name                       people may confuse them    no: it has an effect

One that equals what wins over it is not listed, since nothing is lost.
"""

from collections.abc import Mapping
from typing import Literal

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.domain.llama_stack.registrations import RegisteredShield, ToolGroup, without_marks
from stint.domain.llama_stack.registry import Model
from stint.domain.schema import Schema
from stint.services.registry.catalogue import Catalogue, Registered, Stored, find_group, prefixes_of, read_all
from stint.services.registry.configured_names import ConfiguredNames
from stint.services.registry.model_ids import find_models
from stint.services.registry.registration_changes import RegistrationChanges
from stint.store.registrations import Kind, Registrations

ShownKind = Literal["model", "shield", "toolgroup"]
KINDS: dict[ShownKind, Kind] = {"model": "model", "shield": "shield", "toolgroup": "tool_group"}
SCHEMAS: dict[ShownKind, type[Registered]] = {"model": Model, "shield": RegisteredShield, "toolgroup": ToolGroup}


class ShadowedRegistration(Schema):
    """A registration that has no effect, or that looks like a name of the configuration.

    `can_be_kept`: an operator may mark it, and it then wins.
    """

    kind: ShownKind
    id: str
    reason: str
    can_be_kept: bool = False


@dataclass(frozen=True, slots=True)
class ShadowedRegistrations:
    """The shadowed registrations of a tenant. `ask_models` are the providers of shields that ask a model."""

    tenant: str
    store: Registrations
    names: ConfiguredNames
    ask_models: frozenset[str]

    async def list(self) -> list[ShadowedRegistration]:
        """Return the shadowed registrations, by their kinds and ids."""
        stored = await self.store.read(self.tenant)
        found, groups = [], read_groups(stored)
        for shown, kind in KINDS.items():
            for _, document in read_all(stored, kind, SCHEMAS[shown]):
                each = self.describe(shown, document, groups)
                found += [] if each is None else [each]
        return found

    def describe(
        self, kind: ShownKind, document: Registered, groups: Mapping[str, ToolGroup]
    ) -> ShadowedRegistration | None:
        """Return why a registration is shadowed; None if it is not, or equals what wins over it."""
        identifier, configured = document.identifier, self.names.configured.of(KINDS[kind])
        listed = configured.get(identifier)
        if self.names.is_shadowed(document):
            # The registration and the configuration mean the same.
            if listed is not None and without_marks(listed) == without_marks(document):
                return None
            can_be_kept = kind == "toolgroup" or (kind == "model" and listed is None)
            return ShadowedRegistration(
                kind=kind, id=identifier, reason=self.find_reason(kind, identifier), can_be_kept=can_be_kept
            )
        if isinstance(document, ToolGroup) and (group := find_group(document, groups)) is not None:
            reason = f"a tool of the registered toolgroup {group!r}"
            return ShadowedRegistration(kind=kind, id=identifier, reason=reason, can_be_kept=True)
        if isinstance(document, RegisteredShield) and self.lacks_model(document):
            reason = f"its model {document.provider_resource_id!r} is not configured: register it again"
            return ShadowedRegistration(kind=kind, id=identifier, reason=reason)
        changes = RegistrationChanges(self.tenant, self.store, self.names, Catalogue())
        if (other := changes.find_lookalike(KINDS[kind], identifier)) is not None:
            return ShadowedRegistration(kind=kind, id=identifier, reason=f"looks like {other!r}")
        return None

    def find_reason(self, kind: ShownKind, identifier: str) -> str:
        """Return what has the name of a shadowed registration."""
        configured = self.names.configured
        if kind == "toolgroup":
            name = next(each for each in prefixes_of(identifier) if each in configured.toolgroups)
            return "a configured toolgroup" if name == identifier else f"a tool of the configured toolgroup {name!r}"
        if identifier in configured.of(KINDS[kind]):
            return f"a configured {kind}"
        defined = [each.identifier for each in self.names.definitions_of(identifier) or []]
        return f"the model {defined[0]!r}" if defined and defined[0] != identifier else "a model of a provider"

    def lacks_model(self, shield: RegisteredShield) -> bool:
        """Return whether a shield of an older version names a registered model, so that it cannot be used."""
        if shield.provider_id not in self.ask_models or shield.model is not None:
            return False
        name, names_provider = shield.provider_resource_id, self.names.router.names_provider
        found = find_models(self.names.configured, name, names_provider) or self.names.short_ids.get(name, [])
        return len(found) != 1 and not names_provider(name)

    async def keep(self, kind: ShownKind, identifier: str) -> None:
        """Mark a registration, so that it wins over the configuration.

        Raises:
            NotFound: there is no such registration.
            Conflict: the configuration always wins over it, or it is not shadowed.
        """
        stored = await self.store.read(self.tenant)
        document = dict(read_all(stored, KINDS[kind], SCHEMAS[kind])).get(identifier)
        if document is None:
            raise NotFound(kind.capitalize(), identifier)
        described = self.describe(kind, document, read_groups(stored))
        if described is None or not described.can_be_kept:
            reason = "It is not shadowed" if described is None else f"It cannot be kept: {described.reason}"
            raise Conflict(f"{kind} {identifier!r} was not marked. {reason}.", code="not_shadowed")
        marked = document.model_copy(update={"override": True})
        await self.store.mark(self.tenant, KINDS[kind], identifier, marked)


def read_groups(stored: Stored) -> Mapping[str, ToolGroup]:
    """Return all registered toolgroups by their ids, also those that have no effect."""
    return dict(read_all(stored, "tool_group", ToolGroup))
