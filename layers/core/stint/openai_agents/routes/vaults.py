"""Vaults of OpenAI's Agents API, and the credentials in them. No answer has a secret.

Whoever may use the API reads vaults, since sessions name them. Changes need `registry:write`, because a credential
decides which account all sessions with its vault act for.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from stint.domain.openai.lists import ListObject
from stint.domain.openai.vaults import (
    CreateCredential,
    CreateVault,
    CredentialDeleted,
    UpdateCredential,
    UpdateVault,
    Vault,
    VaultCredential,
    VaultDeleted,
    VaultStatus,
)
from stint.http.json_responses import document
from stint.http.metadata_filters import METADATA_PARAMETER, MetadataFilter
from stint.http.requests import StrictRoute
from stint.http.scopes import OBJECT, requires
from stint.openai_agents.routes.dependencies import ListWindowDep, OpenAIAgentsServicesDep

VAULTS = "/v1/vaults"
VAULT = VAULTS + "/{vault_id}"
CREDENTIALS = VAULT + "/credentials"
CREDENTIAL = CREDENTIALS + "/{credential_id}"

router = APIRouter(tags=["OpenAI Agents"], route_class=StrictRoute)


async def is_active_wanted(
    status: Annotated[list[VaultStatus] | None, Query(description="active, archived, or both")] = None,
    bracketed: Annotated[list[VaultStatus] | None, Query(alias="status[]", include_in_schema=False)] = None,
) -> bool:
    """Return whether a list is to have active entries. There are no archived ones, because nothing archives."""
    wanted = [*(status or ()), *(bracketed or ())]
    return not wanted or "active" in wanted


ActiveDep = Annotated[bool, Depends(is_active_wanted)]


@router.post(VAULTS, response_model=Vault)
@requires("registry:write", repeated=OBJECT)
async def create_vault(body: CreateVault, services: OpenAIAgentsServicesDep) -> Response:
    """Create a vault. With the header x-stint-user, it serves the sessions of that end user alone."""
    return document(await services.get_vaults().create(body))


@router.get(VAULTS, response_model=ListObject[Vault], openapi_extra=METADATA_PARAMETER)
@requires("use")
async def list_vaults(
    services: OpenAIAgentsServicesDep, window: ListWindowDep, metadata: MetadataFilter, active: ActiveDep
) -> Response:
    """List vaults by creation, newest first. `metadata[key]=value` lists those with this value."""
    if not active:
        return document(ListObject[Vault](data=[]))
    page = await services.get_vaults().list(
        after=window.after, limit=window.limit, newest_first=window.newest_first, metadata=metadata
    )
    return document(ListObject[Vault].of(page.data, page.has_more))


@router.get(VAULT, response_model=Vault)
@requires("use")
async def get_vault(vault_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Read a vault."""
    return document(await services.get_vaults().get(vault_id))


@router.post(VAULT, response_model=Vault)
@requires("registry:write")
async def update_vault(vault_id: str, body: UpdateVault, services: OpenAIAgentsServicesDep) -> Response:
    """Change the name or the metadata of a vault."""
    return document(await services.get_vaults().update(vault_id, body))


@router.delete(VAULT, response_model=VaultDeleted)
@requires("registry:write")
async def delete_vault(vault_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Delete a vault with its credentials."""
    await services.get_vaults().delete(vault_id)
    return document(VaultDeleted(id=vault_id))


@router.post(CREDENTIALS, response_model=VaultCredential)
@requires("registry:write", repeated=OBJECT)
async def create_vault_credential(vault_id: str, body: CreateCredential, services: OpenAIAgentsServicesDep) -> Response:
    """Store a credential for an MCP server. Its secrets are never returned."""
    return document(await services.get_vaults().create_credential(vault_id, body))


@router.get(CREDENTIALS, response_model=ListObject[VaultCredential], openapi_extra=METADATA_PARAMETER)
@requires("use")
async def list_vault_credentials(
    vault_id: str, services: OpenAIAgentsServicesDep, window: ListWindowDep, metadata: MetadataFilter, active: ActiveDep
) -> Response:
    """List the credentials of a vault by creation, newest first."""
    page = await services.get_vaults().list_credentials(
        vault_id, after=window.after, limit=window.limit, newest_first=window.newest_first, metadata=metadata
    )
    found = page.data if active else []
    return document(ListObject[VaultCredential].of(found, active and page.has_more))


@router.get(CREDENTIAL, response_model=VaultCredential)
@requires("use")
async def get_vault_credential(vault_id: str, credential_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Read a credential without its secrets."""
    return document(await services.get_vaults().get_credential(vault_id, credential_id))


@router.post(CREDENTIAL, response_model=VaultCredential)
@requires("registry:write")
async def update_vault_credential(
    vault_id: str, credential_id: str, body: UpdateCredential, services: OpenAIAgentsServicesDep
) -> Response:
    """Rotate the secrets of a credential, or replace its metadata."""
    return document(await services.get_vaults().update_credential(vault_id, credential_id, body))


@router.delete(CREDENTIAL, response_model=CredentialDeleted)
@requires("registry:write")
async def delete_vault_credential(vault_id: str, credential_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Delete a credential."""
    await services.get_vaults().delete_credential(vault_id, credential_id)
    return document(CredentialDeleted(id=credential_id))
