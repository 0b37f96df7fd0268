"""Routes of files.

Uploads are forms. `form_of` reads their parts, which are checked here. `FILE_FORM` describes them in the OpenAPI
document, and names those that are known.
"""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from stint.domain.errors import InvalidRequest
from stint.domain.openai.files import PURPOSE, DeletedFile, FileExpiry, FileList, FileObject, FilePurpose
from stint.domain.validation import message_of
from stint.http.json_responses import document
from stint.http.knowledge_dependencies import KnowledgeServicesDep
from stint.http.list_params import Order
from stint.http.multipart import FORM, FormRoute, form_of
from stint.http.requests import StrictRoute
from stint.http.scopes import OBJECT, requires
from stint.services.knowledge.files import NewFile

FILES = "/v1/files"
FILE = FILES + "/{file_id}"
MAX_FILES = 10_000

BINARY = {"type": "string", "format": "binary"}
FILE_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["file", "purpose"],
    "properties": {
        "file": BINARY,
        "purpose": {"type": "string", "enum": ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]},
        "expires_after[anchor]": {"type": "string", "enum": ["created_at"]},
        "expires_after[seconds]": {"type": "integer", "minimum": 3_600, "maximum": 2_592_000},
    },
}

EXPIRY_FIELDS = ("expires_after[anchor]", "expires_after[seconds]")

router = APIRouter(tags=["Files"], route_class=StrictRoute)
forms = APIRouter(tags=["Files"], route_class=FormRoute)


def describe_form(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the request body of an operation that reads a form."""
    return {"requestBody": {"required": True, "content": {FORM: {"schema": schema}}}}


async def limit_of(
    limit: Annotated[int | None, Query(ge=-1, description="-1, or none: up to 10,000")] = None,
) -> int:
    """Return the maximum number of files."""
    return MAX_FILES if limit is None or limit == -1 else min(limit, MAX_FILES)


@forms.post(FILES, response_model=FileObject, openapi_extra=describe_form(FILE_FORM))
@requires("use", repeated=OBJECT)
async def create_file(request: Request, services: KnowledgeServicesDep) -> Response:
    """Upload a file of up to 4.4 MB. Larger ones are uploaded in parts."""
    form = await form_of(request, FILE_FORM["properties"].keys())
    new = NewFile(form.file("file").filename, purpose_of(form.field("purpose")), expiry_of(form.fields))
    return document(await services.files.create(new, form.file("file").content))


@router.get(FILES, response_model=FileList)
@requires("use")
async def list_files(
    services: KnowledgeServicesDep,
    limit: Annotated[int, Depends(limit_of)],
    after: str | None = None,
    order: Order = "desc",
    purpose: FilePurpose | None = None,
) -> Response:
    """List files, the newest first."""
    return document(await services.files.list(after, limit, order, purpose))


@router.get(FILE, response_model=FileObject)
@requires("use")
async def get_file(file_id: str, services: KnowledgeServicesDep) -> Response:
    """Read a file, without its content."""
    return document(await services.files.get(file_id))


@router.get(
    FILE + "/content",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {"schema": BINARY}}, "description": "The content."}},
)
@requires("use")
async def get_file_content(file_id: str, services: KnowledgeServicesDep) -> Response:
    """Read the content of a file, the bytes that were uploaded."""
    content = await services.files.open(file_id)
    headers = {
        "content-disposition": disposition_of(content.file.filename),
        "content-length": str(content.file.bytes),
        "content-security-policy": "sandbox; default-src 'none'",
    }
    return StreamingResponse(content.pieces, media_type="application/octet-stream", headers=headers)


@router.delete(FILE, response_model=DeletedFile)
@requires("use")
async def delete_file(file_id: str, services: KnowledgeServicesDep) -> Response:
    """Delete a file, also from the vector stores that have it."""
    return document(await services.files.delete(file_id))


router.routes.extend(forms.routes)


def purpose_of(value: str) -> FilePurpose:
    """Read the purpose of a file. Raises InvalidRequest."""
    try:
        return PURPOSE.validate_python(value)
    except ValidationError as error:
        raise InvalidRequest(f"purpose: {message_of(error.errors()[0])}", param="purpose") from None


def expiry_of(fields: Mapping[str, str]) -> FileExpiry | None:
    """Read `expires_after` from the fields of a form. Raises InvalidRequest."""
    if unknown := [name for name in fields if name.startswith("expires_after") and name not in EXPIRY_FIELDS]:
        message = f"The field {unknown[0][:100]!r} is unknown. Send the fields {' and '.join(EXPIRY_FIELDS)}."
        raise InvalidRequest(message, param=unknown[0][:100])
    given = {
        name: fields[f"expires_after[{name}]"] for name in ("anchor", "seconds") if f"expires_after[{name}]" in fields
    }
    if not given:
        return None
    try:
        return FileExpiry.model_validate(given)
    except ValidationError as error:
        [problem, *_] = error.errors()
        param = f"expires_after[{problem['loc'][0]}]"
        raise InvalidRequest(f"{param}: {message_of(problem)}", param=param) from None


def disposition_of(filename: str) -> str:
    """Return the header that makes browsers save a file instead of showing it (RFC 6266)."""
    return f"attachment; filename*=UTF-8''{quote(filename, safe='')}"
