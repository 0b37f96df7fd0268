"""Routes of containers, whose files the code of responses reads and writes.

A file is added as JSON, which names an uploaded one, or as a form with the bytes. So its route reads the body itself,
and checks it as FastAPI checks the others.
"""

from json import JSONDecodeError
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from stint.domain.openai.containers import (
    AddContainerFile,
    Container,
    ContainerFile,
    ContainerFileList,
    ContainerList,
    CreateContainer,
    DeletedContainer,
    DeletedContainerFile,
)
from stint.http.direct_calls import check_fields
from stint.http.json_responses import document
from stint.http.knowledge_dependencies import KnowledgeServicesDep
from stint.http.list_params import Limit, Order
from stint.http.multipart import FORM, FormFile, FormOrJSONRoute, form_of, is_form
from stint.http.requests import StrictRoute
from stint.http.routes.files import BINARY, disposition_of
from stint.http.scopes import OBJECT, requires

CONTAINERS = "/v1/containers"
CONTAINER = CONTAINERS + "/{container_id}"
FILES = CONTAINER + "/files"
FILE = FILES + "/{file_id}"

FILE_ID = {"type": "string", "minLength": 1, "maxLength": 200}
ADDITION = {
    "required": True,
    "content": {
        "application/json": {"schema": {"type": "object", "required": ["file_id"], "properties": {"file_id": FILE_ID}}},
        FORM: {"schema": {"type": "object", "required": ["file"], "properties": {"file": BINARY}}},
    },
}

router = APIRouter(tags=["Containers"], route_class=StrictRoute)
uploads = APIRouter(tags=["Containers"], route_class=FormOrJSONRoute)


@router.post(CONTAINERS, response_model=Container)
@requires("use", repeated=OBJECT)
async def create_container(body: CreateContainer, services: KnowledgeServicesDep) -> Response:
    """Create a container with copies of files. It expires 20 minutes after its last activity."""
    return document(await services.containers.create(body))


@router.get(CONTAINERS, response_model=ContainerList)
@requires("use")
async def list_containers(
    services: KnowledgeServicesDep,
    limit: Limit,
    after: str | None = None,
    order: Order = "desc",
    name: str | None = None,
) -> Response:
    """List containers, the newest first."""
    return document(await services.containers.list(after, limit, order, name))


@router.get(CONTAINER, response_model=Container)
@requires("use")
async def get_container(container_id: str, services: KnowledgeServicesDep) -> Response:
    """Read a container."""
    return document(await services.containers.get(container_id))


@router.delete(CONTAINER, response_model=DeletedContainer)
@requires("use")
async def delete_container(container_id: str, services: KnowledgeServicesDep) -> Response:
    """Delete a container with its files."""
    return document(await services.containers.delete(container_id))


async def read_addition(request: Request) -> AddContainerFile | FormFile:
    """Read the body of a request that adds a file to a container: an uploaded file, or the id of a stored one."""
    if is_form(request):
        form = await form_of(request, {"file", "file_id"})
        if "file" in form.files or "file_id" not in form.fields:
            return form.file("file")
        given: Any = {"file_id": form.field("file_id")}
    else:
        try:
            given = await request.json()
        except JSONDecodeError as error:
            fault = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error", "input": {}}
            raise RequestValidationError([{**fault, "ctx": {"error": error.msg}}]) from None
    try:
        addition = AddContainerFile.model_validate(given)
    except ValidationError as error:
        problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
        raise RequestValidationError(problems, body=given) from None
    check_fields(given, addition, request)
    return addition


@uploads.post(FILES, response_model=ContainerFile, openapi_extra={"requestBody": ADDITION})
@requires("use")
async def add_container_file(
    container_id: str,
    added: Annotated[AddContainerFile | FormFile, Depends(read_addition)],
    services: KnowledgeServicesDep,
) -> Response:
    """Upload a file of up to 3.5 MB into a container, or copy a stored one, in the place of one with the same name."""
    containers = services.containers
    if isinstance(added, FormFile):
        return document(await containers.upload_file(container_id, added.filename, added.content))
    return document(await containers.add_file(container_id, added))


@router.get(FILES, response_model=ContainerFileList)
@requires("use")
async def list_container_files(
    container_id: str,
    services: KnowledgeServicesDep,
    limit: Limit,
    after: str | None = None,
    order: Order = "desc",
) -> Response:
    """List the files of a container, the newest first."""
    return document(await services.containers.list_files(container_id, after, limit, order))


@router.get(FILE, response_model=ContainerFile)
@requires("use")
async def get_container_file(container_id: str, file_id: str, services: KnowledgeServicesDep) -> Response:
    """Read a file of a container, without its content."""
    return document(await services.containers.get_file(container_id, file_id))


@router.get(
    FILE + "/content",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {"schema": BINARY}}, "description": "The content."}},
)
@requires("use")
async def get_container_file_content(container_id: str, file_id: str, services: KnowledgeServicesDep) -> Response:
    """Read the content of a file of a container."""
    opened = await services.containers.open_file(container_id, file_id)
    headers = {
        "content-disposition": disposition_of(opened.file.path),
        "content-security-policy": "sandbox; default-src 'none'",
    }
    return Response(opened.content, media_type="application/octet-stream", headers=headers)


@router.delete(FILE, response_model=DeletedContainerFile)
@requires("use")
async def delete_container_file(container_id: str, file_id: str, services: KnowledgeServicesDep) -> Response:
    """Delete a file of a container."""
    return document(await services.containers.delete_file(container_id, file_id))


router.routes.extend(uploads.routes)
