"""The shield providers of one Settings object. Each is made when first used."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from stint.bootstrap.lazy_mapping import LazyMapping
from stint.shields.port import ShieldProvider

if TYPE_CHECKING:
    from stint.bootstrap.adapters import Adapters


def make_shield_providers(adapters: "Adapters") -> Mapping[str, ShieldProvider]:
    """Return the shield providers by their ids."""
    makers = {
        "deny-list": make_deny_list,
        "llama-guard": make_llama_guard,
        "bedrock-guardrails": make_bedrock_guardrails,
    }
    return LazyMapping({name: partial(make, adapters) for name, make in makers.items()})


def make_deny_list(_: "Adapters") -> ShieldProvider:
    from stint.shields.deny_list import DenyList  # noqa: PLC0415

    return DenyList()


def make_llama_guard(adapters: "Adapters") -> ShieldProvider:
    from stint.shields.llama_guard import LlamaGuard  # noqa: PLC0415

    return LlamaGuard(adapters.router.resolve)


def make_bedrock_guardrails(adapters: "Adapters") -> ShieldProvider:
    from stint.providers.bedrock.client import connect  # noqa: PLC0415
    from stint.shields.bedrock_guardrails import STALL_SECONDS, BedrockGuardrails  # noqa: PLC0415

    region = adapters.settings.bedrock_region or None
    return BedrockGuardrails(lambda: connect(region, stall_timeout=STALL_SECONDS))
