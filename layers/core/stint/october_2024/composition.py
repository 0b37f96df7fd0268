"""Composition of the services of the API of October 2024. Only its own function loads this module."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from stint.apis.agents import AgentsServices
from stint.bootstrap.adapters import Adapters
from stint.bootstrap.knowledge import KnowledgeComposition
from stint.bootstrap.knowledge_parts import KnowledgeParts
from stint.bootstrap.restore import per_tenant
from stint.dataclasses import fields
from stint.documents.document_reader import DocumentReader
from stint.october_2024.services import OctoberServices
from stint.services.inference.inference import ModelInference
from stint.services.knowledge.embeddings import TextEmbeddings
from stint.settings import Settings

if TYPE_CHECKING:
    from stint.october_2024.bank_composition import BankServices


class OctoberComposition(KnowledgeComposition):
    """The parts of a process that serves the API of October 2024."""

    def __init__(self, read_settings: Callable[[], Settings]) -> None:
        super().__init__(read_settings)
        self.make_october_services: Callable[[str], OctoberServices] = per_tenant(self.compose_october_services)

    def compose_october_services(self, tenant: str) -> OctoberServices:
        return compose_october(tenant, self.adapters, self.make_services(tenant), self.knowledge_parts)


def compose_october(
    tenant: str, adapters: Adapters, services: AgentsServices, parts: KnowledgeParts
) -> OctoberServices:
    """Make the use cases of a tenant, with those of its agents."""

    @cache
    def make_bank_services() -> "BankServices":
        from stint.october_2024.bank_composition import compose_banks  # noqa: PLC0415 - not at the start of the function

        return compose_banks(tenant, parts)

    reader = DocumentReader(adapters.fetch, adapters.check_url, adapters.document_limits)
    return OctoberServices(
        **{field.name: getattr(services, field.name) for field in fields(AgentsServices)},
        make_model_inference=cache(lambda: ModelInference(adapters.router, services.registry, reader, services.meters)),
        make_embeddings=cache(lambda: TextEmbeddings(parts.embedding_models(tenant))),
        make_banks=lambda: make_bank_services().banks,
        make_bank_queries=lambda: make_bank_services().queries,
    )
