"""The catalogue of configured and registered models, toolgroups and shields.

It is merged from two sources at each reading of the registrations: the configuration, and the tenant's own. Which one
has an effect under a name is decided here, at look-up, so that neither the order of registrations nor a race matters.

  a name is                                      it means
  configured only                                the configured entry; nothing, if it is a built-in toolgroup that was
                                                 unregistered
  registered only                                the registration
  registered, and a listed model or shield       the configured entry
  registered, and a configured toolgroup or      the configured entry, unless the registration is an override
  one of its tools
  registered, and the id of a provider's model   the registration, if it means the same model or is an override
  a toolgroup `a/b`, and a registered            tool `b` of `a`, unless `a/b` is an override, or only `a/b` was
  toolgroup `a`                                  registered by an admin

Refusing such names when they are registered is not enough: the registration may be older than the rule or than the
configuration, and two requests may register at the same time.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from pydantic import ValidationError

from stint.dataclasses import dataclass, field
from stint.domain.llama_stack.registrations import (
    ModelRegisterRequest,
    Owner,
    RegisteredShield,
    ShieldRegisterRequest,
    ToolGroup,
    ToolGroupRegisterRequest,
    marks_of,
)
from stint.domain.llama_stack.registry import Model
from stint.domain.schema import Schema
from stint.store.registrations import Kind

Registered = Model | ToolGroup | RegisteredShield
S = TypeVar("S", bound=Schema)
R = TypeVar("R", Model, ToolGroup, RegisteredShield)
Stored = Mapping[tuple[str, str], bytes]
"""Stored registrations: JSON by kind and identifier."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All models, toolgroups and shields by identifier.

    `builtin` has the configured toolgroups that can be unregistered. `unlisted` has the ids of models that are served
    but not listed. `aliases` has models by the ids of Llama Stack's models for which they stand.
    `webhook_endpoints` has the JSON of the tenant's webhook endpoints, which are read with the registrations.
    """

    models: Mapping[str, Model] = field(default_factory=dict)
    toolgroups: Mapping[str, ToolGroup] = field(default_factory=dict)
    shields: Mapping[str, RegisteredShield] = field(default_factory=dict)
    builtin: frozenset[str] = frozenset()
    unlisted: frozenset[str] = frozenset()
    aliases: Mapping[str, Model] = field(default_factory=dict)
    webhook_endpoints: Mapping[str, bytes] = field(default_factory=dict)

    def of(self, kind: Kind) -> Mapping[str, Registered]:
        """Return the entries of a kind."""
        kinds: dict[Kind, Mapping[str, Registered]] = {
            "model": self.models,
            "shield": self.shields,
            "tool_group": self.toolgroups,
        }
        return kinds[kind]


class Effect(Protocol):
    """A function that returns a registration as look-ups find it; None if the configuration wins over it."""

    def __call__(self, document: R, /) -> R | None: ...


def merge(configured: Catalogue, stored: Stored, find_effect: Effect) -> Catalogue:
    """Merge stored registrations with the configuration.

    Those over which the configuration or another registration wins are omitted, and so is an unregistered built-in
    toolgroup.
    """

    def read(kind: Kind, schema: type[R]) -> dict[str, R]:
        found = ((name, find_effect(each)) for name, each in read_all(stored, kind, schema))
        return {name: each for name, each in found if each is not None}

    models, shields = read("model", Model), read("shield", RegisteredShield)
    # Only built-in ones: a record of a removal must not hide a toolgroup that was configured later under that name.
    removed = {identifier for kind, identifier in stored if kind == "removed_tool_group"} & configured.builtin
    toolgroups = {name: group for name, group in configured.toolgroups.items() if name not in removed}
    return Catalogue(
        {**configured.models, **models},
        {**toolgroups, **without_tools(read("tool_group", ToolGroup))},
        {**configured.shields, **shields},
        configured.builtin,
        unlisted=configured.unlisted,
        aliases=configured.aliases,
        webhook_endpoints={name: raw for (kind, name), raw in stored.items() if kind == "webhook_endpoint"},
    )


def without_tools(groups: Mapping[str, ToolGroup]) -> dict[str, ToolGroup]:
    """Return registered toolgroups without those whose ids are names of tools of others, whichever came first."""
    return {name: each for name, each in groups.items() if find_group(each, groups) is None}


def find_group(toolgroup: ToolGroup, groups: Mapping[str, ToolGroup]) -> str | None:
    """Return the registered toolgroup that wins over one whose id has the form `<group>/<tool>`, None if none does.

    An override wins, and what an admin has registered wins over what others have.
    """
    if toolgroup.override:
        return None
    above = (name for name in prefixes_of(toolgroup.identifier) if name != toolgroup.identifier)
    of_admin = marks_of(toolgroup).belongs_to_admin()
    return next(
        (name for name in above if name in groups and (not of_admin or marks_of(groups[name]).belongs_to_admin())),
        None,
    )


def prefixes_of(identifier: str) -> Iterator[str]:
    """Yield the id of a toolgroup, and those of the toolgroups whose tool it may name."""
    while identifier:
        yield identifier
        identifier = identifier.rpartition("/")[0]


def read_all(stored: Stored, kind: str, schema: type[S]) -> Iterator[tuple[str, S]]:
    """Read the registrations of a kind. Those that are no longer valid are skipped and logged, without their values."""
    for (found, identifier), raw in stored.items():
        if found != kind:
            continue
        try:
            yield identifier, schema.model_validate_json(raw)
        except ValidationError as error:
            # Neither the values nor the message of pydantic, which contains them: they may be credentials.
            faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['type']}" for fault in error.errors()]
            extra = {"kind": kind, "identifier": identifier, "faults": faults}
            logger.error("A stored registration is no longer valid and is ignored. Register it again", extra=extra)


def model_of(request: ModelRegisterRequest, provider_id: str, provider_model_id: str) -> Model:
    """Make the registration of a model."""
    return Model(
        identifier=request.model_id,
        provider_resource_id=provider_model_id,
        provider_id=provider_id,
        metadata=request.metadata,
        model_type=request.model_type,
        id=request.model_id,
        owned_by=provider_id,
        owner=Owner(),
    )


def toolgroup_of(request: ToolGroupRegisterRequest, owner: Owner | None) -> ToolGroup:
    """Make the registration of a toolgroup."""
    return ToolGroup(
        identifier=request.toolgroup_id,
        provider_resource_id=request.toolgroup_id,
        provider_id=request.provider_id,
        mcp_endpoint=request.mcp_endpoint,
        args=request.args,
        owner=owner,
    )


def shield_of(request: ShieldRegisterRequest, owner: Owner | None) -> RegisteredShield:
    """Make the registration of a shield. `provider_id` defaults to the deny list, which needs no configuration."""
    return RegisteredShield(
        identifier=request.shield_id,
        provider_resource_id=request.provider_shield_id or request.shield_id,
        provider_id=request.provider_id or "deny-list",
        params=request.params,
        owner=owner,
    )


def split_groups(groups: Sequence[ToolGroup]) -> tuple[Sequence[ToolGroup], Sequence[ToolGroup]]:
    """Return the toolgroups of the operator, which are configured or override others, and those of callers."""
    return (
        [group for group in groups if group.owner is None or group.override],
        [group for group in groups if group.owner is not None and not group.override],
    )
