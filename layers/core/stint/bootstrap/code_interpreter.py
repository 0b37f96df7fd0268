"""Composition of the code of responses, loaded when one runs code."""

from typing import TYPE_CHECKING

from stint.bootstrap.tool_providers import make_code_runner
from stint.domain.errors import InvalidRequest
from stint.services.deletions import Deletions
from stint.services.knowledge.container_files import ContainerFiles
from stint.services.responses.code_runs import CodeAccess

if TYPE_CHECKING:
    from stint.settings import Settings
    from stint.store.store import Store


def compose_code(tenant: str, settings: "Settings", store: "Store", deletions: Deletions) -> CodeAccess:
    """Return what runs the code of a tenant's responses. Raises InvalidRequest if nothing does."""
    if not settings.runs_code:
        raise InvalidRequest(
            "This stack has no code interpreter. Remove the tool, or deploy with CodeInterpreter=sandbox.",
            code="not_supported",
            param="tools",
        )
    return CodeAccess(make_code_runner(settings), ContainerFiles(tenant, store.containers, store.files, deletions.send))
