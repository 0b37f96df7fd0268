"""The shield providers of one Settings object. Each is made when first used."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from stint.bootstrap.lazy_mapping import LazyMapping
from stint.shields.port import ShieldProvider

if TYPE_CHECKING:
    from stint.bootstrap.model_servers import ModelServer
    from stint.models.port import ChatModel
    from stint.settings import Settings

Resolve = Callable[[str], "tuple[ChatModel, str]"]
"""A function that returns the adapter of a model id, and the provider's own id."""


def make_shield_providers(
    settings: "Settings", servers: "Sequence[ModelServer]", resolve: Resolve
) -> Mapping[str, ShieldProvider]:
    """Return the shield providers by their ids. A named server is one: with its Llama Guards, or its guardrails."""
    return LazyMapping(
        {
            "deny-list": make_deny_list,
            "llama-guard": partial(make_llama_guard, resolve),
            "bedrock-guardrails": partial(make_bedrock_guardrails, settings.bedrock_region),
            **{
                server.id: partial(make_named, server, settings.bedrock_region, resolve)
                for server in servers
                if server.kind != "scripted"
            },
        }
    )


def make_deny_list() -> ShieldProvider:
    from stint.shields.deny_list import DenyList  # noqa: PLC0415

    return DenyList()


def make_llama_guard(resolve: Resolve, *, asks_model: bool = True) -> ShieldProvider:
    from stint.shields.llama_guard import LlamaGuard  # noqa: PLC0415

    return LlamaGuard(resolve, asks_model=asks_model)


def make_named(server: "ModelServer", region: str, resolve: Resolve) -> ShieldProvider:
    """Return the shields of a named server. The ids of its models need not have its prefix."""
    if server.is_bedrock:
        return make_bedrock_guardrails(server.region or region)
    prefix = f"{server.id}/"
    return make_llama_guard(lambda name: resolve(prefix + name.removeprefix(prefix)), asks_model=False)


def make_bedrock_guardrails(region: str) -> ShieldProvider:
    from stint.providers.bedrock.client import connect  # noqa: PLC0415
    from stint.shields.bedrock_guardrails import STALL_SECONDS, BedrockGuardrails  # noqa: PLC0415

    return BedrockGuardrails(lambda: connect(region or None, stall_timeout=STALL_SECONDS))
