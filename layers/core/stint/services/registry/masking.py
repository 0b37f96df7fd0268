"""Masking of the credentials of registrations for the API."""

from stint.domain.content import URL
from stint.domain.llama_stack.registrations import RegisteredShield, ToolGroup
from stint.domain.llama_stack.registry import Model
from stint.tools.masking import mask, mask_url


def masked_toolgroup(group: ToolGroup) -> ToolGroup:
    """Return a toolgroup without the credentials in its args and its endpoint."""
    return group.model_copy(update={"args": mask(group.args), "mcp_endpoint": masked_endpoint(group), "sealed": None})


def masked_endpoint(group: ToolGroup) -> URL | None:
    """Return a toolgroup's endpoint without its credentials."""
    return group.mcp_endpoint and URL(uri=mask_url(group.mcp_endpoint.uri, endpoint=True))


def masked_model(model: Model) -> Model:
    """Return a model without the credentials in its metadata."""
    return model.model_copy(update={"metadata": mask(model.metadata)})


def masked_shield(shield: RegisteredShield) -> RegisteredShield:
    """Return a shield without the credentials in its parameters."""
    return shield.model_copy(update={"params": mask(shield.params)})
